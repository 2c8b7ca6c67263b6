"""The test site with one more app, whose limits stop nobody who asks a thousand times a second."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import gettempdir

from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.fuzz"]  # noqa: F405
ROOT_URLCONF = "tests.fuzz.urls"
MEDIA_ROOT = Path(gettempdir()) / f"mcp_django_fuzz_{os.getpid()}"
# Some times of day come twice here, and some never.
TIME_ZONE = "Europe/Berlin"
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
MCP_DJANGO = {
    **MCP_DJANGO,  # noqa: F405
    "ADMIN_SITES": ["fuzz", "admin", "workshop", "library"],
    "CALLS_PER_MINUTE": 10**9,
    "COMPLETIONS_PER_MINUTE": 10**9,
    "DRY_RUNS_PER_MINUTE": 10**9,
    "DRY_RUN_SECONDS_PER_MINUTE": 10**9,
    "FAILURES_PER_MINUTE": 10**9,
    # Far fewer than a run opens: the oldest must go.
    "MAX_STREAMS_PER_PRINCIPAL": 8,
}

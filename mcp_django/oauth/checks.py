"""The system checks of this app."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from mcp_django.auth.resource import endpoint_route
from mcp_django.checks import a_check
from mcp_django.conf import get_config
from mcp_django.oauth.setup import missing_steps


@a_check()
def check_setup(**kwargs: Any) -> Iterator[CheckMessage]:
    """mcp_django_oauth.E001: people cannot sign in, or not safely."""
    for step in missing_steps():
        yield Error(step.problem, hint=step.solution, id="mcp_django_oauth.E001")


@a_check()
def check_preflights(**kwargs: Any) -> Iterator[CheckMessage]:
    """mcp_django_oauth.W001: django-cors-headers answers preflights that are meant for us."""
    is_there = "corsheaders.middleware.CorsMiddleware" in settings.MIDDLEWARE
    urls = getattr(settings, "CORS_URLS_REGEX", "")
    if get_config().allowed_origins and is_there and re.match(urls, "/oauth/token"):
        path = re.escape(endpoint_route())
        yield Warning(
            "django-cors-headers answers the preflights of pages that sign people in, and does "
            "not know ALLOWED_ORIGINS.",
            hint=rf'CORS_URLS_REGEX = r"^/(?!{path}|oauth/|\.well-known/oauth-)"',
            id="mcp_django_oauth.W001",
        )

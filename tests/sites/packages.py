"""A site whose admin is made of packages: versions, histories, and rights on single objects."""

from __future__ import annotations

from tests.settings import *

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "reversion",
    "simple_history",
    "guardian",
    "tests.sites.parcels",
]
MIDDLEWARE = [
    *MIDDLEWARE,
    "mcp_django.middleware.CallerMiddleware",
    "simple_history.middleware.HistoryRequestMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
GUARDIAN_MONKEY_PATCH_USER = False

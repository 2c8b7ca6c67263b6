"""A site whose admin is made of packages: versions, histories, and rights on single objects.

The middleware of django-reversion opens a transaction round each POST, over a database as
`startproject` sets it up.
"""

from __future__ import annotations

from tests.databases import VENDOR
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
    "reversion.middleware.RevisionMiddleware",
]
if VENDOR == "sqlite":
    # None of the options that docs/howto/deploying.md recommends.
    DATABASES["default"] |= {"OPTIONS": {}}
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
GUARDIAN_MONKEY_PATCH_USER = False

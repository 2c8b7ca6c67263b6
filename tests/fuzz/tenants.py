"""The two states as two tenants of django-tenants, for `python -m tests.fuzz pairs --tenants`."""

from __future__ import annotations

from tests.fuzz.settings import *  # noqa: F403
from tests.fuzz.settings import INSTALLED_APPS as TENANT_APPS
from tests.sites.schemas import (  # noqa: F401
    DATABASE_ROUTERS,
    DATABASES,
    TENANT_DOMAIN_MODEL,
    TENANT_MODEL,
)

SHARED_APPS = INSTALLED_APPS = ["django_tenants", "tests.sites.estates", *TENANT_APPS]
TENANTS = ("north", "south")
MULTITENANT_RELATIVE_MEDIA_ROOT = "%s"
STORAGES = {
    "default": {"BACKEND": "django_tenants.files.storage.TenantFileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

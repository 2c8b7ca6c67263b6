"""Tenants with a schema and a host name each, by django-tenants. Always on PostgreSQL."""

from __future__ import annotations

import os

from tests.databases import postgresql
from tests.settings import *

DATABASES = {
    "default": {
        **postgresql("mcp_django_schemas", f"test_mcp_django_schemas_{os.getpid()}"),
        "ENGINE": "django_tenants.postgresql_backend",
    }
}
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
TENANT_MODEL, TENANT_DOMAIN_MODEL = "estates.Estate", "estates.Domain"
TENANT_APPS = [*INSTALLED_APPS]
SHARED_APPS = ["django_tenants", "tests.sites.estates", *TENANT_APPS]
INSTALLED_APPS = SHARED_APPS
MIDDLEWARE = ["django_tenants.middleware.main.TenantMainMiddleware", *MIDDLEWARE]
ALLOWED_HOSTS = [".localhost"]

"""Middleware of packages in front of every request, and a tenant for each user."""

from __future__ import annotations

from importlib.util import find_spec

from tests.settings import *

PROMETHEUS = bool(find_spec("django_prometheus"))
INSTALLED_APPS = [*INSTALLED_APPS, "corsheaders", "tests.sites.tenancy"]
BEFORE, AFTER = (
    [f"django_prometheus.middleware.Prometheus{name}Middleware"] if PROMETHEUS else []
    for name in ("Before", "After")
)
MIDDLEWARE = [
    *BEFORE,
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "mcp_django.middleware.CallerMiddleware",
    "tests.sites.tenancy.middleware.TenantMiddleware",
    "crum.CurrentRequestUserMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    *AFTER,
]
AUTHENTICATION_BACKENDS = ["tests.sites.tenancy.backends.NamedPermissionBackend"]
CORS_ALLOWED_ORIGINS = ["http://localhost:3000"]

"""The site that the official conformance suite is run against: fixtures only, no models."""

from __future__ import annotations

import os

SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ROOT_URLCONF = "tests.conformance_site.urls"
ASGI_APPLICATION = "tests.asgi.application"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "mcp_django",
    "tests.conformance_site",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("CONFORMANCE_DB", ":memory:"),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
MCP_DJANGO = {
    "NAME": "Conformance fixtures",
    "VERSION": "1",
    "PUBLIC_URL": "http://localhost",
    "AUTHENTICATORS": ["mcp_django.auth.Anonymous"],
    "CALLS_PER_MINUTE": 100_000,
}
SILENCED_SYSTEM_CHECKS = ["mcp_django.I002"]

"""A site for the tests. MCP_TEST_DB chooses the database: sqlite (default) or postgresql."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import gettempdir

SECRET_KEY = "not-a-secret"
DEBUG = False
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1", "[::1]"]
ROOT_URLCONF = "tests.urls"
ASGI_APPLICATION = "tests.asgi.application"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "channels",
    "mcp_django",
    "tests.shop",
    "tests.nasty",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
if os.environ.get("MCP_TEST_DB", "sqlite") == "postgresql":
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ.get("MCP_TEST_PG_NAME", "test"),
            "HOST": os.environ.get("MCP_TEST_PG_HOST", "127.0.0.1"),
            "PORT": os.environ.get("MCP_TEST_PG_PORT", "5432"),
            "USER": os.environ.get("MCP_TEST_PG_USER", "postgres"),
            "CONN_MAX_AGE": 60,
            "TEST": {"NAME": f"test_mcp_django_{os.getpid()}"},
        }
    }
else:
    # A file, not memory: tests with two connections need the real thing.
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": Path(gettempdir()) / "mcp_django.sqlite3",
            "CONN_MAX_AGE": 60,
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
            "TEST": {"NAME": Path(gettempdir()) / f"test_mcp_django_{os.getpid()}.sqlite3"},
        }
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
MCP_DJANGO = {"NAME": "Test shop", "VERSION": "1.2.3", "PUBLIC_URL": "http://testserver"}

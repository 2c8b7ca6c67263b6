"""The flight desk: a small site with real airports, to try assistants on.

Environment: DEMO_DEBUG=0 turns the safe settings of production on, DEMO_STATE names the directory
that keeps database, keys and files, DEMO_PUBLIC_URL the address that clients use, DEMO_TODAY the
day on which the desk's clock stands, as 2026-11-18: otherwise it is that of the start.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import django
from django.core.management.utils import get_random_secret_key

from demo_project import clock
from demo_project.state import ROOT, STATE, keep

PUBLIC_URL = os.environ.get("DEMO_PUBLIC_URL") or "http://127.0.0.1:8000"

SECRET_KEY = keep("secret_key", get_random_secret_key)
DEBUG = os.environ.get("DEMO_DEBUG", "1") != "0"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", urlsplit(PUBLIC_URL).hostname or "127.0.0.1"]
ROOT_URLCONF = "demo_project.urls"
ASGI_APPLICATION = "demo_project.asgi.application"
INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "oauth2_provider",
    "mcp_django",
    "mcp_django.oauth",
    "demo_project.flights",
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
        "DIRS": [ROOT / "templates"],
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

# One writer at a time is SQLite's rule. WAL lets readers go on meanwhile, and IMMEDIATE makes a
# second writer wait at the start of its transaction, not fail in the middle.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": STATE / "db.sqlite3",
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "demo_project.formats"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
MEDIA_URL = "media/"
MEDIA_ROOT = STATE / "media"
LOGIN_URL = "admin:login"
# The terminal shows e-mail; a deployment sends it.
MAIL = f"django.core.mail.backends.{'console' if DEBUG else 'smtp'}.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": MAIL}}
else:
    EMAIL_BACKEND = MAIL
DEFAULT_FROM_EMAIL = "Flight desk <desk@flights.example>"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"demo_project": {"handlers": ["console"], "level": "INFO"}},
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
if not DEBUG:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

# The demo is one process: there is nobody to link, nor to share sessions with, and no proxy that
# could limit bodies.
# Programs on the own computer of a person listen at plain http addresses of its loopback.
SILENCED_SYSTEM_CHECKS = [
    "mcp_django.W002",
    "mcp_django.W008",
    "mcp_django.W014",
    "oauth2_provider.W008",
]

TODAY = clock.today()
FIRST_DAY, LAST_DAY = clock.ends_of_schedule(TODAY)
MCP_DJANGO = {
    "NAME": "Flight desk",
    "VERSION": "1.0",
    "PUBLIC_URL": PUBLIC_URL,
    # Programs of all kinds are tried on the demo, and few publish a document about themselves.
    "REGISTRATION": "cimd+dcr",
    # Nobody's data: every change can be undone.
    "KEEP_CHANGES": ["flights"],
    "INSTRUCTIONS": (
        f"Flights of invented airlines between real airports, {FIRST_DAY} to {LAST_DAY}. The "
        f"desk's clock stands at {TODAY} 12:00 UTC: earlier flights have landed, later ones are "
        "planned. All times are UTC, delays are minutes, prices are euros. Airports are found by "
        "iata (FRA) or icao (EDDF), flights by number and scheduled_departure."
    ),
}

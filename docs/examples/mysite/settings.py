"""The project of the docs: what `startproject` writes, as far as the examples need it."""

from __future__ import annotations

SECRET_KEY = "not-a-secret"
ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
ROOT_URLCONF = "mysite.urls"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
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
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USE_TZ = True
STATIC_URL = "static/"

# docs: start settings
INSTALLED_APPS = ["daphne", *INSTALLED_APPS, "mcp_django"]
ASGI_APPLICATION = "mysite.asgi.application"
MCP_DJANGO = {"NAME": "My shop", "PUBLIC_URL": "https://shop.example.com"}
# docs: end settings

# docs: start sqlite
DATABASES["default"] |= {
    "OPTIONS": {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}
# docs: end sqlite

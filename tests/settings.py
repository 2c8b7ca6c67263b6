"""A site for the tests."""

from __future__ import annotations

from importlib.util import find_spec

from tests.databases import caches, database

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
    "django.contrib.staticfiles",
    "mcp_django",
    *(["oauth2_provider", "mcp_django.oauth"] if find_spec("oauth2_provider") else []),
    "tests.shop",
    "tests.nasty",
    "tests.library",
    "tests.workshop",
    "tests.depot",
    "django_object_actions",
    "import_export",
    # Last, so that the admin looks as it does without: see tests/browser/looks.py.
    *(["jazzmin"] if find_spec("jazzmin") else []),
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
DATABASES = {"default": database()}
CACHES = caches()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
JAZZMIN_SETTINGS = {"use_google_fonts_cdn": False}
MCP_DJANGO = {"NAME": "Test shop", "VERSION": "1.2.3", "PUBLIC_URL": "http://testserver"}
DJANGO_OBJECT_ACTIONS_DEFAULT_HTTP_METHOD = "POST"

"""The site that is measured. Its state lies in the folder that BENCH_STATE names."""

from __future__ import annotations

import os
from pathlib import Path

STATE = Path(os.environ["BENCH_STATE"])
SECRET_KEY = "only-for-measuring"
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
ROOT_URLCONF = "benchmarks.urls"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "oauth2_provider",
    "mcp_django",
    "mcp_django.oauth",
    "benchmarks.library",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": STATE / "bench.sqlite3",
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
MCP_DJANGO = {
    "NAME": "Benchmark",
    "PUBLIC_URL": "http://127.0.0.1",
    "CALLS_PER_MINUTE": 10_000_000,
    "MAX_STREAMS": 20_000,
    "MAX_STREAMS_PER_PRINCIPAL": 20_000,
    "QUERY_THREADS": 1,
    "AUDIT": os.environ.get("BENCH_AUDIT") != "0",
    "MAX_PAGE_SIZE": 1000,
    "MAX_RESPONSE": 16 * 1024 * 1024,
    "ANSWER_BUDGET": 8 * 1024 * 1024,
}
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "WARNING"}}

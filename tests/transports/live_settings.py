"""The test site in a process of its own, open to everybody."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("LIVE_DB", ":memory:"),
    }
}
if os.environ.get("LIVE_LAYER"):
    # Told by the test: a group of its own, so that tests of other processes stay apart.
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": os.environ["LIVE_LAYER"],
            "CONFIG": {
                "hosts": [("127.0.0.1", int(os.environ.get("MCP_TEST_REDIS_PORT", "6379")))],
                "prefix": os.environ["LIVE_PREFIX"],
            },
        }
    }
MCP_DJANGO = {
    "AUTHENTICATORS": ["mcp_django.auth.Anonymous"],
    "MAX_BODY": 20_000,
    # Everybody is one caller, who may have half of them.
    "WORK_THREADS": 8,
    "TOOL_TIMEOUT": float(os.environ.get("LIVE_TOOL_TIMEOUT", "60")),
}
if os.environ.get("LIVE_ORIGIN"):
    MCP_DJANGO["ALLOWED_ORIGINS"] = [os.environ["LIVE_ORIGIN"]]
if os.environ.get("LIVE_DB"):
    # One of several processes over a database that has tables.
    DATABASES["default"] |= {
        "NAME": os.environ["LIVE_DB"],
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL;",
        },
    }
    MCP_DJANGO["SESSION_CACHE"] = os.environ.get("LIVE_CACHE", "database")
    CACHES["redis"]["KEY_PREFIX"] = os.environ.get("LIVE_PREFIX", "")  # noqa: F405

"""Sessions in a cache that all processes share."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

# docs: start sessions
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "assistants": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "assistants_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}
MCP_DJANGO = {"SESSION_CACHE": "assistants"}
# docs: end sessions

# docs: start redis
CACHES["assistants"] = {
    "BACKEND": "django.core.cache.backends.redis.RedisCache",
    "LOCATION": "redis://127.0.0.1:6379/1",
    "KEY_PREFIX": "shop",
    "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 2},
}
# docs: end redis

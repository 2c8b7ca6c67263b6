"""The test site in a process of its own, open to everybody."""

from __future__ import annotations

from tests.settings import *  # noqa: F403

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
MCP_DJANGO = {
    "AUTHENTICATORS": ["mcp_django.auth.Anonymous"],
    "MAX_BODY": 20_000,
    "TOOL_TIMEOUT": 0.5,
}

"""Everybody may read what AnonymousUser may see."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

# docs: start anonymous
MCP_DJANGO = {
    "NAME": "My shop",
    "PUBLIC_URL": "https://shop.example.com",
    "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens", "mcp_django.auth.Anonymous"],
    "READ_ONLY": True,
}
# docs: end anonymous

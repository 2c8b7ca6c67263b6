"""Tokens of Django REST framework open the endpoint, too."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

INSTALLED_APPS += ["rest_framework", "rest_framework.authtoken"]  # noqa: F405

# docs: start drf
from mcp_django.auth import DRF

MCP_DJANGO = {
    "NAME": "My shop",
    "PUBLIC_URL": "https://shop.example.com",
    "AUTHENTICATORS": [
        "mcp_django.auth.PersonalTokens",
        DRF(
            "rest_framework.authentication.TokenAuthentication",
            scopes=["mcp:read"],
            header_only=True,
        ),
    ],
}
# docs: end drf

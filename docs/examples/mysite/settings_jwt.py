"""Tokens of an authorization server elsewhere open the endpoint, too."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

ROOT_URLCONF = "mysite.urls_jwt"

# docs: start jwt
from mcp_django.auth import JWTBearer

MCP_DJANGO = {
    "NAME": "My shop",
    "PUBLIC_URL": "https://shop.example.com",
    "AUTHENTICATORS": [
        "mcp_django.auth.PersonalTokens",
        JWTBearer(
            "https://login.example.com/realms/shop",
            jwks_url="https://login.example.com/realms/shop/protocol/openid-connect/certs",
            user="shop.people.user_of",
        ),
    ],
}
# docs: end jwt

"""For the developer's own machine: no token is needed there."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403

DEBUG = True

# docs: start dev_user
from mcp_django.auth import DevUser

MCP_DJANGO = {
    "NAME": "My shop",
    "AUTHENTICATORS": ["mcp_django.auth.PersonalTokens", DevUser("ada")],
}
# docs: end dev_user

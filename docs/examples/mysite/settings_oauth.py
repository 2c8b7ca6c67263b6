"""People sign in to the site itself, with mcp_django.oauth."""

from __future__ import annotations

from mysite.settings import *  # noqa: F403
from mysite.settings import INSTALLED_APPS

ROOT_URLCONF = "mysite.urls_oauth"

# docs: start oauth
INSTALLED_APPS = [*INSTALLED_APPS, "oauth2_provider", "mcp_django.oauth"]
MCP_DJANGO = {"NAME": "My shop", "PUBLIC_URL": "https://shop.example.com"}
# docs: end oauth

"""A site without the admin, sessions and messages: permissions alone decide."""

from __future__ import annotations

from tests.settings import *

#: Nor do people sign in, which takes sessions and a page.
LEFT_OUT = {
    "django.contrib.admin",
    "django.contrib.messages",
    "django.contrib.sessions",
    "oauth2_provider",
    "mcp_django.oauth",
}
INSTALLED_APPS = [name for name in INSTALLED_APPS if name not in LEFT_OUT]
MIDDLEWARE = []
TEMPLATES = []
ROOT_URLCONF = "tests.sites.plain_urls"

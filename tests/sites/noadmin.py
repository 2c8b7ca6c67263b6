"""A site without the admin, sessions and messages: permissions alone decide."""

from __future__ import annotations

from tests.settings import *

LEFT_OUT = ("admin", "messages", "sessions")
INSTALLED_APPS = [
    name for name in INSTALLED_APPS if name not in {f"django.contrib.{one}" for one in LEFT_OUT}
]
MIDDLEWARE = []
TEMPLATES = []
ROOT_URLCONF = "tests.sites.plain_urls"

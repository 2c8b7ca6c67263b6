"""Two admin sites that show different rows and fields of one model to different people."""

from __future__ import annotations

from tests.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "tests.sites.office"]
MCP_DJANGO = {**MCP_DJANGO, "ADMIN_SITES": ["office", "admin"]}
ROOT_URLCONF = "tests.sites.office.urls"

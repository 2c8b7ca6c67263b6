"""The test site in a process of its own, on the database of the test that started it."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS

DATABASES = {"default": {**DATABASES["default"], "NAME": os.environ["MCP_STDIO_DATABASE"]}}
INSTALLED_APPS = [*INSTALLED_APPS, "tests.management.stdio_site"]
print("Configured.")

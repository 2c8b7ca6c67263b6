"""The site of the tests on a database of its own, which MCP_SITE_DB names."""

from __future__ import annotations

import os

from tests.settings import *

DATABASES["default"]["NAME"] = os.environ["MCP_SITE_DB"]

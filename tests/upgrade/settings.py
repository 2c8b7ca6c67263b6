"""The site of the tests on a database of its own, which MCP_UPGRADE_DB names."""

from __future__ import annotations

import os

from tests.settings import *

DATABASES["default"]["NAME"] = os.environ["MCP_UPGRADE_DB"]
# The migrations that an older release had, in place of today's.
if "MCP_UPGRADE_FROM" in os.environ:
    MIGRATION_MODULES = {"mcp_django": f"tests.upgrade.{os.environ['MCP_UPGRADE_FROM']}"}

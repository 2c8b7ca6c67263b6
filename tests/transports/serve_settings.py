"""The site that `mcp_serve` serves in tests."""

from __future__ import annotations

from tests.transports.live_settings import *  # noqa: F403

ASGI_APPLICATION = "tests.transports.serve_site.application"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
MCP_DJANGO["PUBLIC_URL"] = "http://localhost"  # noqa: F405
SILENCED_SYSTEM_CHECKS = ["mcp_django.I002"]

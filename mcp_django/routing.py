"""The endpoint for a Channels URLRouter, served at `mcp` with and without a slash.

Clients that know HTTP+SSE only find their stream at `mcp/sse`.
"""

from __future__ import annotations

from django.urls import re_path

from mcp_django.conf import get_config
from mcp_django.transports.health import HealthApplication
from mcp_django.transports.http_sse import HTTPSSEApplication
from mcp_django.transports.streamable_http import MCPApplication

http_urlpatterns = [
    # Channels routes to ASGI applications what Django routes to views.
    re_path(r"^mcp/?$", MCPApplication.as_asgi()),  # type: ignore[arg-type]
    re_path(r"^mcp/(?:sse|messages)/?$", HTTPSSEApplication.as_asgi()),  # type: ignore[arg-type]
]
if get_config().health:
    http_urlpatterns.append(
        re_path(r"^mcp/health$", HealthApplication())  # type: ignore[arg-type]
    )

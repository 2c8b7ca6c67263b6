"""One line for a site's `asgi.py`."""

from __future__ import annotations

import re
from typing import Any

import django


def get_mcp_application(*, http: Any = None, websocket: Any = None, path: str = "mcp") -> Any:
    """The site's ASGI application, with the MCP endpoint at `path`, with and without a slash.

    `http` serves everything else (None: Django), `websocket` WebSockets. Sets Django up first, so
    it may stand before any other import of the site.
    """
    django.setup(set_prefix=False)

    from channels.routing import ProtocolTypeRouter, URLRouter
    from django.core.asgi import get_asgi_application
    from django.urls import re_path

    from mcp_django.transports.streamable_http import MCPApplication

    routes = [
        re_path(rf"^{re.escape(path.strip('/'))}/?$", MCPApplication.as_asgi()),
        re_path(r"", http or get_asgi_application()),
    ]
    applications = {"http": URLRouter(routes), "lifespan": lifespan}
    if websocket is not None:
        applications["websocket"] = websocket
    return ProtocolTypeRouter(applications)


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Servers that ask are told that there is nothing to wait for."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

"""One line for a site's `asgi.py`."""

from __future__ import annotations

import asyncio
from typing import Any

import django
from django.conf import settings


def get_mcp_application(*, http: Any = None, websocket: Any = None, path: str = "mcp") -> Any:
    """The site's ASGI application, with the MCP endpoint at `path`, with and without a slash.

    `http` serves everything else (None: Django), `websocket` WebSockets. Sets Django up first, so
    it may stand before any other import of the site. A root path that the server or
    FORCE_SCRIPT_NAME puts in front counts.
    """
    django.setup(set_prefix=False)

    from channels.routing import ProtocolTypeRouter
    from django.core.asgi import get_asgi_application

    from mcp_django.auth import resource
    from mcp_django.transports.http.http_sse import MESSAGES, STREAM, HTTPSSEApplication
    from mcp_django.transports.http.streamable_http import MCPApplication

    site = http or get_asgi_application()
    own = f"/{path.strip('/')}".rstrip("/")
    resource.routed_to(own)
    http_sse = HTTPSSEApplication.as_asgi()
    routes = {own: MCPApplication.as_asgi()}
    routes |= {f"{own}/{end}": http_sse for end in (STREAM, MESSAGES)}

    async def route(scope: Any, receive: Any, send: Any) -> None:
        application = routes.get(path_of(scope).removesuffix("/"), site)
        await application(scope, receive, send)

    applications = {"http": route, "lifespan": lifespan}
    if websocket is not None:
        applications["websocket"] = websocket
    return ProtocolTypeRouter(applications)


def path_of(scope: Any) -> str:
    """The path as URLconfs see it: the one rule of Django's request for ASGI."""
    script_name = settings.FORCE_SCRIPT_NAME or scope.get("root_path") or ""
    path: str = scope["path"]
    return path.removeprefix(script_name.rstrip("/"))


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Servers that ask wait for the records of the last calls, and for nothing else."""
    # Not sooner: Django was not set up.
    from mcp_django.audit.records import records

    while True:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            await asyncio.to_thread(records.close)
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

"""One line for a site's `asgi.py`."""

from __future__ import annotations

import asyncio
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def get_mcp_application(*, http: Any = None, websocket: Any = None, path: str = "mcp") -> Any:
    """The site's ASGI application, with the MCP endpoint at `path`, with and without a slash.

    `http` serves everything else (None: Django), `websocket` WebSockets (None: refused). Sets
    Django up where nobody did, so it may stand before any other import of the site. A root path
    that the server or FORCE_SCRIPT_NAME puts in front counts.
    """
    # A second time would set up logging again, and silence every logger that LOGGING does not
    # name. So would `get_asgi_application`.
    if not apps.ready:
        django.setup(set_prefix=False)
    if not apps.is_installed("mcp_django"):
        raise ImproperlyConfigured('"mcp_django" is missing in INSTALLED_APPS.')

    from channels.routing import ProtocolTypeRouter
    from django.core.handlers.asgi import ASGIHandler

    from mcp_django.auth import resource
    from mcp_django.conf import get_config
    from mcp_django.exposure.registry import registry
    from mcp_django.transports.health import HealthApplication
    from mcp_django.transports.http_sse import MESSAGES, STREAM, HTTPSSEApplication
    from mcp_django.transports.streamable_http import MCPApplication

    if registry.mistake:
        raise registry.mistake
    site = http or ASGIHandler()
    own = f"/{path.strip('/')}".rstrip("/")
    resource.routed_to(own)
    http_sse = HTTPSSEApplication.as_asgi()
    routes: dict[str, Any] = {own: MCPApplication.as_asgi()}
    if get_config().health:
        routes[f"{own}/health"] = HealthApplication()
    routes |= {f"{own}/{end}": http_sse for end in (STREAM, MESSAGES)}

    async def route(scope: Any, receive: Any, send: Any) -> None:
        application = routes.get(path_of(scope).removesuffix("/"), site)
        await application(scope, receive, send)

    return ProtocolTypeRouter(
        {"http": route, "lifespan": lifespan, "websocket": websocket or refuse_websocket}
    )


def path_of(scope: Any) -> str:
    """The path as URLconfs see it: the one rule of Django's request for ASGI."""
    script_name = settings.FORCE_SCRIPT_NAME or scope.get("root_path") or ""
    path: str = scope["path"]
    return path.removeprefix(script_name.rstrip("/"))


async def refuse_websocket(scope: Any, receive: Any, send: Any) -> None:
    """Where the site has none. Anybody may ask for one, and an exception would fill its log."""
    await receive()
    await send({"type": "websocket.close"})


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Servers that ask wait for the last calls, whose clients may have left, and their records."""
    # Not sooner: Django was not set up.
    from mcp_django.audit.records import records
    from mcp_django.conf import get_config
    from mcp_django.transports import shutdown
    from mcp_django.transports.call import calls_of_loop

    # The server has its handlers of signals by now, and no stream is open.
    shutdown.prepare()
    while True:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            seconds = get_config().tool_timeout
            await shutdown.until_ended(calls_of_loop, seconds=seconds)
            await asyncio.to_thread(records.close)
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

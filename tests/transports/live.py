"""Serve the test site: `python -m tests.transports.live daphne 8123`. Says when it is ready."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.transports.live_settings"

# First of all imports of the site, as in anybody's asgi.py.
from mcp_django.asgi import get_mcp_application

application = get_mcp_application()

import mcp_django as mcp  # noqa: E402  after Django is set up


def everybody(request):
    return True


@mcp.tool(read_only=True, permission=everybody)
def report(ctx: mcp.Context, then: str) -> str:
    """Report progress, then return, raise or run for too long."""
    ctx.progress(1)
    if then == "raise":
        raise ValueError(then)
    while then == "linger":
        ctx.check()
        time.sleep(0.01)
    return then


@mcp.tool(read_only=True, permission=everybody)
async def report_later(ctx: mcp.Context, then: str) -> str:
    """The same in a coroutine."""
    ctx.progress(1)
    if then == "raise":
        raise ValueError(then)
    if then == "linger":
        await asyncio.get_running_loop().create_future()
    return then


@mcp.tool(read_only=True, permission=everybody)
def requests_alive() -> int:
    """Count the requests that Daphne holds."""
    from daphne.http_protocol import WebRequest

    gc.collect()
    # Not isinstance(): it asks lazy objects for their class, which makes them.
    return sum(type(one) is WebRequest for one in gc.get_objects())


def ready() -> None:
    print("ready", flush=True)


def serve_by_daphne(port: int) -> None:
    from daphne.server import Server

    Server(application, endpoints=[f"tcp:{port}:interface=127.0.0.1"], ready_callable=ready).run()


def serve_by_uvicorn(port: int) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            ready()

    # With lifespan "on" a server does not start where nobody answers it.
    Server(uvicorn.Config(application, port=port, lifespan="on", log_level="warning")).run()


if __name__ == "__main__":
    {"daphne": serve_by_daphne, "uvicorn": serve_by_uvicorn}[sys.argv[1]](int(sys.argv[2]))

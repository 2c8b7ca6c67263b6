"""Serve the test site: `python -m tests.transports.live daphne 8123`. Says when it is ready."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import time
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.transports.live_settings"

# First of all imports of the site, as in anybody's asgi.py.
from mcp_django.asgi import get_mcp_application

application = get_mcp_application()

from django import forms  # noqa: E402

import mcp_django as mcp  # noqa: E402  after Django is set up
from mcp_django.transports import layer  # noqa: E402
from tests.shop.models import Memo  # noqa: E402

# Redis may be gone for a moment.
layer.HEARTBEAT = layer.PAUSE = 0.5


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


class Name(forms.Form):
    name = forms.CharField()


@mcp.tool(read_only=True, permission=everybody)
def wait_for(ctx: mcp.Context, file: str) -> str:
    """Report progress, wait until there is a file, and remove it."""
    ctx.progress(1)
    while not Path(file).exists():
        ctx.check()
        time.sleep(0.01)
    Path(file).unlink()
    return "gone"


@mcp.tool(read_only=True, permission=everybody, asks=True)
def greet(ctx: mcp.Context) -> str:
    """Ask for a name."""
    return f"Hello {ctx.ask('name', Name, 'Who are you?')['name']}"


@mcp.tool(read_only=True, permission=everybody)
def count_slowly(ctx: mcp.Context, number: int) -> str:
    """Count, with time to lose the connection in."""
    for step in range(1, number + 1):
        ctx.progress(step)
        time.sleep(0.2)
    return "counted"


class MemoExposure(mcp.ModelExposure):
    fields = ["text"]

    def has_view_permission(self, request, obj=None):
        return True

    def get_queryset(self, request):
        return Memo.objects.all()


mcp.unregister(Memo)
mcp.register(Memo)(MemoExposure)


# Nobody without a name may write, so these two say that they do not.
@mcp.tool(read_only=True, permission=everybody)
def make_memo(text: str) -> dict[str, str]:
    """Write something down."""
    memo = Memo.objects.create(text=text, code=text)
    return {"uri": f"django://objects/shop.memo/{memo.pk}"}


@mcp.tool(read_only=True, permission=everybody)
def change_memo(text: str) -> str:
    """Write down something else."""
    memo = Memo.objects.get(text=text)
    memo.text = f"{text}!"
    memo.save()
    return "changed"


@mcp.tool(read_only=True, permission=everybody)
def requests_alive() -> int:
    """Count the requests that Daphne holds."""
    from daphne.http_protocol import WebRequest

    gc.collect()
    # Not isinstance(): it asks lazy objects for their class, which makes them.
    return sum(issubclass(type(held), WebRequest) for held in gc.get_objects())


#: On a port of the system's choice, which nobody else can take any more.
listener = socket.create_server(("127.0.0.1", 0), backlog=128)
port = listener.getsockname()[1]


def ready() -> None:
    print("ready", port, flush=True)


def serve_by_daphne() -> None:
    from daphne.server import Server

    endpoint = f"fd:fileno={listener.fileno()}"
    Server(application, endpoints=[endpoint], ready_callable=ready).run()


def serve_by_uvicorn() -> None:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            ready()

    # With lifespan "on" a server does not start where nobody answers it.
    config = uvicorn.Config(application, lifespan="on", log_level="warning")
    Server(config).run(sockets=[listener])


if __name__ == "__main__":
    {"daphne": serve_by_daphne, "uvicorn": serve_by_uvicorn}[sys.argv[1]]()

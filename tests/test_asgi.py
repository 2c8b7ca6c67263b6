from __future__ import annotations

import asyncio

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.urls import path, re_path, resolve, reverse

from mcp_django.asgi import get_mcp_application
from mcp_django.audit.records import Gathered, records
from mcp_django.routing import http_urlpatterns
from mcp_django.transports.streamable_http import MCPApplication
from mcp_django.transports.wsgi import mcp_view
from tests.clients import CheckedClient
from tests.transports.wire import Connection
from tests.waiting import PATIENCE


async def site(scope, receive, send):
    """Another application, which says what it was asked for."""
    body = scope["path"].encode()
    await send({"type": "http.response.start", "status": 299, "headers": []})
    await send({"type": "http.response.body", "body": body})


def status_at(application, at, **scope):
    """Without a credential the endpoint answers 401. Nobody else here does."""

    async def ask():
        call = Connection(CheckedClient(application=application, path=at), b"", verb="GET")
        call.scope.update(scope)
        return (await call.whole()).status

    return asyncio.run(ask())


ROUTERS = {
    "the site": lambda: get_mcp_application(),
    "the patterns": lambda: URLRouter([*http_urlpatterns, re_path(r"", site)]),
    "anywhere": lambda: URLRouter([path("deep/down/", MCPApplication.as_asgi())]),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("given", "at", "status"),
    [
        ("the site", "/mcp", 401),
        ("the site", "/admin/", 302),
        ("the site", "/nothing/here", 404),
        ("the patterns", "/mcp", 401),
        ("the patterns", "/mcp/", 401),
        ("the patterns", "/mcp/more", 299),
        ("anywhere", "/deep/down/", 401),
        # And paths of the application in front of another one.
        ("mcp", "/mcp", 401),
        ("mcp", "/mcp/", 401),
        ("mcp", "/mcp//", 299),
        ("mcp", "/mcp/more", 299),
        ("mcp", "/mcpmore", 299),
        ("mcp", "/MCP", 299),
        ("mcp", "/x/mcp", 299),
        ("/api/v1.0/mcp/", "/api/v1.0/mcp", 401),
        ("/api/v1.0/mcp/", "/api/v1x0/mcp", 299),
        ("", "/", 401),
        ("", "/mcp", 299),
    ],
)
def test_the_endpoint_stands_at_its_path_or_where_a_site_routes_to_and_nowhere_else(
    given, at, status
):
    make = ROUTERS.get(given, lambda: get_mcp_application(http=site, path=given))

    assert status_at(make(), at) == status


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("forced", "root_path", "at", "status"),
    [
        # The specification has the root path in the path. Not every server does.
        (None, "/app", "/app/mcp", 401),
        (None, "/app/", "/app/mcp/", 401),
        (None, "/app", "/mcp", 401),
        (None, "/app", "/other/mcp", 299),
        ("/forced", "/other", "/forced/mcp", 401),
        ("/forced", "/other", "/other/mcp", 299),
    ],
)
def test_a_root_path_or_a_forced_script_name_may_stand_in_front(
    settings, forced, root_path, at, status
):
    settings.FORCE_SCRIPT_NAME = forced

    assert status_at(get_mcp_application(http=site), at, root_path=root_path) == status


@pytest.mark.django_db(transaction=True)
def test_djangos_urlconf_has_the_endpoint_as_a_view():
    """With `path("mcp", include("mcp_django.urls"))`, for whoever routes nothing to us."""
    assert reverse("mcp_django:endpoint") == "/mcp"
    assert resolve("/mcp").func is resolve("/mcp/").func is mcp_view


def test_websockets_go_where_the_site_sends_them():
    connected = []

    async def sockets(scope, receive, send):
        connected.append(scope["path"])

    application = get_mcp_application(websocket=sockets)
    asyncio.run(application({"type": "websocket", "path": "/chat"}, None, None))

    assert connected == ["/chat"]


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/", "/mcp"])
async def test_a_site_without_websockets_refuses_them_and_nothing_fails(path):
    application = get_mcp_application()
    client = ApplicationCommunicator(application, {"type": "websocket", "path": path})

    await client.send_input({"type": "websocket.connect"})

    assert await client.receive_output() == {"type": "websocket.close"}
    await client.wait()


def test_another_protocol_has_no_application():
    with pytest.raises(ValueError, match="smtp"):
        asyncio.run(get_mcp_application()({"type": "smtp"}, None, None))


@pytest.mark.asyncio
async def test_servers_that_speak_lifespan_are_answered_when_the_records_of_calls_are_written():
    written = []

    class Closing(Gathered):
        def close(self):
            written.append("written")

    inbox, outbox = asyncio.Queue(), asyncio.Queue()
    inbox.put_nowait({"type": "lifespan.startup"})
    with records.using(Closing()):
        serving = asyncio.create_task(
            get_mcp_application()({"type": "lifespan"}, inbox.get, outbox.put)
        )
        async with asyncio.timeout(PATIENCE):
            started = await outbox.get()
            before = list(written)
            inbox.put_nowait({"type": "lifespan.shutdown"})
            stopped = await outbox.get()
            await serving

    assert (before, written) == ([], ["written"])
    assert started == {"type": "lifespan.startup.complete"}
    assert stopped == {"type": "lifespan.shutdown.complete"}

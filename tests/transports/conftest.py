from __future__ import annotations

from functools import partial

import pytest
import pytest_asyncio

import mcp_django as mcp
from mcp_django.audit.records import Gathered, records
from mcp_django.auth import resource
from mcp_django.subscriptions.outbox import flush
from mcp_django.transports.http_sse import HTTPSSEApplication
from mcp_django.transports.threads import lanes
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.transports.elsewhere import Elsewhere
from tests.transports.event_stream import listening
from tests.transports.http_sse_client import HTTPSSEClient
from tests.transports.middlewares import seen
from tests.transports.session_client import SessionClient


@pytest.fixture(autouse=True)
def where_the_endpoint_is(no_application_says_where_the_endpoint_is):
    resource.routed_to("/mcp")


@pytest.fixture
def run(settings):
    """Put middleware of these names behind what the site has."""
    seen.clear()

    def add(*names):
        paths = [name if "." in name else f"tests.transports.middlewares.{name}" for name in names]
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, *paths]

    yield add
    seen.clear()


@pytest.fixture
def eve(make_user):
    """The client of another member of the staff, who may see no rows."""
    return CheckedClient(user=make_user("eve", is_staff=True))


@pytest.fixture
def orders():
    orders = [Order.objects.create(number=number) for number in "12"]
    # That they are new is news to nobody who subscribes later.
    flush()
    return orders


@pytest.fixture
def uri(orders):
    return f"django://objects/shop.order/{orders[0].pk}"


@pytest_asyncio.fixture
async def listen():
    """Open subscriptions behind their acknowledgments, which end with the test."""
    streams = []

    async def open_stream(client, *uris, **wishes):
        streams.append(await listening(client, *uris, **wishes))
        return streams[-1]

    yield open_stream
    for stream in streams:
        await stream.left()


@pytest.fixture
def elsewhere():
    """The application of HTTP+SSE in another process."""
    elsewhere = Elsewhere(HTTPSSEApplication.as_asgi())
    yield elsewhere
    elsewhere.close()


@pytest.fixture
def fresh_lanes():
    """Lanes of a size that the test sets, ended behind it."""
    lanes.close()
    yield lanes
    lanes.close()


@pytest.fixture
def patient(add_tool, gate):
    """A tool that waits at the gate, and what it found when it went on."""
    cancelled = []

    def patient(ctx: mcp.Context) -> str:
        """Wait."""
        gate.wait()
        cancelled.append(ctx.cancelled.is_set())
        return "done"

    add_tool(patient)
    return cancelled


@pytest.fixture
def offer(add_tool):
    """Offer a tool "work" that does this with its context, and is done."""

    def offer(body, **options):
        def work(ctx: mcp.Context) -> str:
            """Work."""
            body(ctx)
            return "done"

        add_tool(work, **options)

    return offer


@pytest.fixture
def party(client):
    """Begin a session of the client, in any legacy revision."""
    return partial(SessionClient.begin, client)


@pytest.fixture
def gathered():
    """The records of calls, in place of the table."""
    gathered = Gathered()
    with records.using(gathered):
        yield gathered


@pytest_asyncio.fixture
async def sse(client):
    """Make clients of HTTP+SSE, which may post to another process. Sessions end with the test."""
    sessions = []

    def make(client=client, posts=None, **options):
        session = HTTPSSEClient(client, **options)
        session.posts = posts or session.posts
        sessions.append(session)
        return session

    yield make
    for session in sessions:
        await session.leave()

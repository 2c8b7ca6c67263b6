"""What a client does not read, where the server says so in the way of Twisted."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure
from twisted.web import http
from twisted.web.test.requesthelper import DummyChannel

from mcp_django.transports import http_sse
from mcp_django.transports.http_sse import HTTPSSEApplication
from mcp_django.transports.hub import get_hub
from mcp_django.transports.responses import Brake, brake_of
from mcp_django.transports.sessions import key_of
from tests.transports.http_sse_client import HTTPSSEClient
from tests.transports.wire import PINGING
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


class Request:
    """What Daphne binds to `send`: its reader takes what it is sent, or does not."""

    def __init__(self):
        self.channel = object()
        self.producers = []

    def registerProducer(self, producer, streaming):
        assert streaming
        self.producers.append(producer)

    def unregisterProducer(self):
        self.producers.pop()

    def lose(self):
        self.channel = None
        self.producers.pop().stopProducing()


async def hand_over(request, send, event):
    await send(event)


class UnderDaphne(HTTPSSEApplication):
    """The application as Daphne calls it."""

    def __init__(self):
        self.requests = []

    async def __call__(self, scope, receive, send):
        self.requests.append(Request())
        await super().__call__(scope, receive, partial(hand_over, self.requests[-1], send))


@pytest.fixture
def application():
    return UnderDaphne()


async def called(session, text):
    """A call whose answer waits: its id."""
    waiting = get_hub().find(key_of(session.id))
    before = waiting.unsent
    params = {"name": "echo", "arguments": {"text": text}}
    number = await session.send("tools/call", params)
    async with asyncio.timeout(PATIENCE):
        while waiting.unsent == before:  # noqa: ASYNC110  nobody is told of this
            await asyncio.sleep(0)
    return number


async def test_an_answer_for_which_there_is_no_room_becomes_an_error_and_more_is_refused(
    client, application, monkeypatch
):
    session = await HTTPSSEClient(client, application=application).begin()
    application.requests[0].producers[0].pauseProducing()
    first = await called(session, "x" * 1000)
    waiting = get_hub().find(key_of(session.id))
    room = waiting.unsent + 500
    monkeypatch.setattr(http_sse, "MOST_UNSENT", room)

    second = await called(session, "x" * 1000)
    most = waiting.unsent
    monkeypatch.setattr(http_sse, "MOST_UNSENT", 1000)
    refused = await session.post({**PINGING, "id": "more"})
    application.requests[0].producers[0].resumeProducing()

    assert most < room
    assert (refused.status, refused.json["id"]) == (503, "more")
    assert "result" in await session.answer_to(first)
    assert "dropped" in (await session.answer_to(second))["error"]["message"]
    assert waiting.unsent == 0
    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


async def test_a_lost_connection_lets_go_of_what_waits(client, application):
    session = await HTTPSSEClient(client, application=application).begin()
    application.requests[0].producers[0].pauseProducing()
    await called(session, "x")

    application.requests[0].lose()
    await session.leave()

    assert get_hub().find(key_of(session.id)) is None
    assert application.requests[0].producers == []


async def test_a_server_that_ends_a_stream_waits_for_no_reader():
    request = Request()
    brake = brake_of(partial(hand_over, request))
    assert isinstance(brake, Brake)
    brake.pauseProducing()

    brake.release()

    async with asyncio.timeout(PATIENCE):
        await brake.until_room()
    assert request.producers == []


async def test_nothing_is_registered_for_a_client_that_has_left_already_or_by_other_servers():
    request = http.Request(DummyChannel())
    request.connectionLost(Failure(ConnectionLost()))

    async def send(event):
        """As uvicorn's, a method."""

    for sending in (partial(hand_over, request), send, partial(send, {"type": "x"})):
        assert brake_of(sending) is None
    assert request.producer is None

"""Clients that come back for what they may not have any more, too often, or with another token."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

import mcp_django as mcp
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.transports import hub as hubs
from mcp_django.transports.hub import get_hub
from tests.transports.session_client import SessionClient
from tests.transports.wire import Gate, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture(autouse=True)
def work(add_tool, gate):
    def work(ctx: mcp.Context) -> str:
        """Report a step, and wait."""
        ctx.progress(1)
        gate.wait()
        return "what only they may know"

    add_tool(work)


@pytest.fixture
def client(client):
    return speaking(client, LATEST_LEGACY)


async def lost(client):
    """A session, and the id of the last event of a call whose stream was lost."""
    session = await SessionClient.begin(client)
    call = await session.calling("work").opened()
    event = await call.event()
    while not event.data:
        event = await call.event()
    await call.left()
    return session, event.id


def turn_the_wheel():
    """As if fifteen seconds went by."""
    hub = get_hub()
    for _ in range(hubs.KEEP_ALIVE):
        if hub._tick is not None:
            hub._tick.cancel()
        hub._turn()


async def test_resumed_streams_count_as_any_others(client, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "MAX_STREAMS_PER_PRINCIPAL": 2}
    session, last = await lost(client)
    streams = [await session.get(last) for _ in range(2)]

    refused = await session.get(last)

    assert [one.status for one in (*streams, refused)] == [200, 200, 503]
    for stream in streams:
        await stream.left()
    assert not get_hub().streams


async def test_a_resumed_stream_gets_signs_of_life(client):
    session, last = await lost(client)
    stream = await session.get(last)
    opened = await stream.frame()

    turn_the_wheel()

    assert opened.is_comment
    assert (await stream.frame()).is_comment
    await stream.left()


async def test_a_token_that_is_revoked_hears_no_answer_on_a_stream_that_was_open(client, gate):
    session, last = await lost(client)
    stream = await session.get(last)
    await sync_to_async(lambda: [one.delete() for one in PersonalToken.objects.all()])()

    gate.open()

    assert await stream.rest() == []


async def test_the_next_look_ends_a_resumed_stream_of_a_revoked_token(client):
    session, last = await lost(client)
    stream = await session.get(last)
    await sync_to_async(lambda: [one.delete() for one in PersonalToken.objects.all()])()

    turn_the_wheel()

    assert await stream.rest() == []
    assert not get_hub().streams

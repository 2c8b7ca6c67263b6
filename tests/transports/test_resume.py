"""A legacy client that lost a stream comes back for the rest of it."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta

import pytest
from django.utils import timezone

from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.stores import sessions as store_of_sessions
from mcp_django.stores.sessions import Store
from mcp_django.transports import event_stream
from mcp_django.transports.call_log import LOST
from mcp_django.transports.hub import get_hub
from mcp_django.transports.threads import Lane
from tests.transports.event_stream import changed, turn_the_wheel
from tests.transports.session_client import id_of, text_of
from tests.transports.wire import finished
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
NEWEST = LEGACY[-1]


@pytest.fixture
def store(monkeypatch):
    """A store whose clock the test turns."""
    store = Store(clock=lambda: store.now)
    store.now = timezone.now()
    monkeypatch.setitem(store_of_sessions._stores, os.getpid(), store)
    return store


@pytest.fixture
def begun(party, offer, gate):
    """The client of a session, a call that has said something, and the event that said it."""

    def report(ctx):
        ctx.progress(1)
        gate.wait()
        ctx.progress(2)

    async def begin(revision=NEWEST):
        offer(report)
        session = await party(revision)
        call = await session.called("work", token="t")
        return session, call, await call.telling()

    return begin


async def test_a_tool_that_closes_its_stream_is_answered_when_the_client_comes_back(
    party, offer, gate
):
    def let_go(ctx):
        ctx.close_stream(retry=250)
        gate.wait()

    offer(let_go)
    session = await party(NEWEST)
    call = await session.called("work", token="t")
    primed, asked = await call.event(), await call.event()
    await call.end()
    gate.open()

    again = await session.get(primed.id)

    assert (primed.data, asked.retry) == ("", "250")
    assert text_of((await again.rest())[-1]) == "done"


async def test_a_tool_that_ends_while_its_stream_is_closed_is_answered_when_the_client_comes_back(
    party, offer, gate, monkeypatch
):
    class SlowStore(Store):
        def open_log(self, key, **options):
            gate.wait()
            super().open_log(key, **options)

    def end_meanwhile(ctx):
        ctx.close_stream(retry=250)
        assert gate.reached.wait(PATIENCE)

    monkeypatch.setitem(store_of_sessions._stores, os.getpid(), SlowStore())
    offer(end_meanwhile)
    session = await party(NEWEST)
    call = await gate.held(session.call("work", token="t"))
    await finished(Lane.WORK)
    gate.open()
    await call.next()
    primed = await call.event()
    await call.end()

    again = await session.get(primed.id)

    assert text_of((await again.rest())[-1]) == "done"


async def test_a_stream_is_not_closed_where_the_client_could_not_come_back(party, offer):
    offer(lambda ctx: ctx.close_stream())
    session = await party(Revision.V2025_06_18)

    assert text_of((await session.call("work").whole()).json) == "done"


# Who may


async def test_an_id_that_is_none_is_refused(party):
    """Which they are: tests/protocol/test_sse.py."""
    session = await party(NEWEST)

    assert [(await session.get(event_id)).status for event_id in ("", "x.1")] == [400] * 2


@pytest.mark.parametrize("what", ["connection", "session", "call"])
async def test_a_resumed_stream_ends_without_an_answer_with_what_its_client_ends(
    begun, gate, what
):
    session, call, last = await begun()
    await call.left()
    again = await session.get(last.id)
    await again.frame()

    if what == "connection":
        await again.left()
    elif what == "session":
        await session.end()
    else:
        await session.notify("notifications/cancelled", requestId=id_of(call))

    async with asyncio.timeout(PATIENCE):
        await again.task
    assert not get_hub().streams
    assert b"data:" not in again.body
    gate.open()


# When something is gone


async def test_the_call_of_a_process_that_is_gone_ends_with_an_error_told_once(
    begun, gate, store, monkeypatch
):
    monkeypatch.setattr(event_stream, "LOOK", 0.01)
    session, call, last = await begun()
    await call.left()
    store.now += store_of_sessions.LEASE + timedelta(seconds=1)

    readers = [await session.get(last.id) for _ in range(2)]

    for reader in readers:
        [error] = await reader.rest()
        # Not what becomes of the call here.
        assert error["error"] == {"code": -32603, "message": LOST}
        assert error["id"] == id_of(call)
    gate.open()


@pytest.mark.parametrize(
    ("what", "numbered", "logged"),
    [
        ("open_log", (False, False), "cannot be resumed."),
        ("append", (False, False), "from here on"),
        ("later append", (True, False), "from here on"),
    ],
)
async def test_a_store_that_is_gone_costs_the_event_ids_from_there_and_nothing_else(
    begun, gate, store, monkeypatch, caplog, what, numbered, logged
):
    append, calls = store.append, []

    def fail(*args, **options):
        calls.append(args)
        if what == "later append" and len(calls) == 1:
            return append(*args, **options)
        raise ConnectionError("gone")

    monkeypatch.setattr(store, what.removeprefix("later "), fail)
    _, call, event = await begun()
    gate.open()

    last = await call.event()
    while "result" not in last.message:
        last = await call.event()
    await call.end()

    assert (event.id is not None, last.id is not None) == numbered
    assert text_of(last.message) == "done"
    assert logged in caplog.text


# The stream that belongs to no call


@pytest.mark.parametrize("revision", LEGACY[1:], ids=lambda revision: revision.value)
async def test_a_standalone_stream_that_was_lost_tells_of_everything_and_is_the_only_one(
    party, uri, revision
):
    session = await party(revision)
    await session.answer_to("resources/subscribe", uri=uri)
    stream = await session.get()
    changed(uri)
    last = await stream.event()

    # The server does not know yet that the client has lost it.
    again = await session.get(last.id)

    assert again.status == 200
    assert {(await again.message())["method"] for _ in range(4)} == {
        "notifications/resources/updated",
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
    await stream.rest()
    newest = await session.get()
    assert newest.status == 200
    await again.rest()
    await newest.left()


async def test_a_session_lives_for_as_long_as_its_stream_and_not_the_other_way_around(
    party, store
):
    session = await party(NEWEST)
    stream = await session.get()
    began = store.session(session.key).seen
    await stream.frame()
    store.now += timedelta(minutes=20)

    for _ in range(2):
        turn_the_wheel()
        frame = await stream.frame()

    assert frame.is_comment
    assert store.session(session.key).seen > began
    # Without a word.
    store.end_session(session.key)
    turn_the_wheel()
    assert await stream.rest() == []

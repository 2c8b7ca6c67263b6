"""A stream in one process, and its messages posted to another."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from mcp_django.stores.interface import get_store
from mcp_django.transports.calls.log import log_topic
from mcp_django.transports.http import http_sse
from mcp_django.transports.http.http_sse import index_of, stream_here
from mcp_django.transports.sessions import key_of
from mcp_django.transports.streams.hub import get_hub
from tests.transports.event_stream import changed
from tests.transports.http_sse_client import settled
from tests.transports.wire import PATIENT, PINGING

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def in_memory(configure):
    configure(STORE="memory")
    return get_store()


def stream_of(session):
    return stream_here(get_hub(), key_of(session.id))


@pytest.mark.thorough
async def test_answers_are_not_dropped_while_nobody_reads_them(in_memory, elsewhere, sse):
    session = await sse(posts=elsewhere).begin()
    stream = stream_of(session)
    # As if it had not come back from its last look.
    stream._is_reading = True

    accepted = []
    while (posted := await session.post({**PINGING, "id": f"p{len(accepted)}"})).status == 202:
        accepted.append(f"p{len(accepted)}")
    await elsewhere.settled()
    stream._is_reading = False
    stream._nudged()

    assert (posted.status, len(accepted)) == (503, 63)
    assert {(await session.response())["id"] for _ in accepted} == set(accepted)
    # Their places are free again.
    assert (await session.ask("ping"))["result"] == {}


async def test_a_call_of_a_process_that_was_killed_ends_with_an_error(
    in_memory, elsewhere, sse, patient, gate
):
    session = await sse(posts=elsewhere).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    elsewhere.die()
    in_memory.clock = partial(timezone.now().__add__, timedelta(seconds=20))
    in_memory.renew(get_hub().key)
    stream_of(session)._nudged()

    error = (await session.answer_to(number))["error"]
    assert (error["code"], "gone" in error["message"]) == (-32603, True)
    gate.open()


async def test_a_session_whose_process_was_killed_is_not_found(
    in_memory, elsewhere, sse, monkeypatch
):
    session = await sse().begin()
    monkeypatch.setattr(in_memory, "renew", bool)
    in_memory.clock = partial(timezone.now().__add__, timedelta(seconds=20))
    session.posts = elsewhere

    posted = await session.post(PINGING)

    assert posted.status == 404
    assert in_memory.session(key_of(session.id)) is None
    assert await session.stream.rest() == []
    await settled()


async def test_a_stream_that_missed_what_calls_there_were_ends(in_memory, elsewhere, sse):
    session = await sse(posts=elsewhere).begin()
    index = index_of(key_of(session.id))
    in_memory.append(index, [b"unknown"] * 300)

    changed(log_topic(index))

    assert await session.stream.rest() == []
    await settled()


@pytest.mark.parametrize(("times", "is_lost"), [(1, False), (2, True)])
async def test_a_store_that_fails_is_asked_again_for_a_while(
    in_memory, elsewhere, sse, patient, gate, monkeypatch, caplog, times, is_lost
):
    monkeypatch.setattr(http_sse, "PAUSES", (0,))
    session = await sse(posts=elsewhere).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()
    append, failures = in_memory.append, [OSError("gone")] * times

    def fail_at_first(*args, **options):
        if failures:
            raise failures.pop()
        return append(*args, **options)

    monkeypatch.setattr(in_memory, "append", fail_at_first)
    gate.open()
    await elsewhere.settled()

    assert caplog.text.count("does not reach the stream") == times
    assert (await session.ask("ping"))["result"] == {}
    await settled()
    assert (number in [message["id"] for message in session.heard(None)]) is not is_lost

"""A stream in one process, and its messages posted to another."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django import forms
from django.utils import timezone

import mcp_django as mcp
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.stores.interface import Log, chosen, get_store
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import TOOLS, Change
from mcp_django.transports.calls.log import log_topic
from mcp_django.transports.http import http_sse
from mcp_django.transports.http.http_sse import HTTPSSEApplication, index_of, stream_here
from mcp_django.transports.sessions import key_of
from mcp_django.transports.streams.hub import get_hub
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.elsewhere import Elsewhere
from tests.transports.http_sse_client import HTTPSSEClient, settled
from tests.transports.wire import PATIENT

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture(
    params=[
        "memory",
        "database",
        pytest.param("redis", marks=pytest.mark.needs("redis", "channels_redis")),
    ]
)
def store(request, configure):
    if request.param == "redis":
        return request.getfixturevalue("in_redis")
    configure(STORE=request.param)
    return get_store()


@pytest.fixture
def in_redis(configure, monkeypatch):
    """With keys of its own."""
    # Not at the top: it is an extra.
    from mcp_django.stores.redis import RedisStore

    host = os.environ.get("MCP_TEST_REDIS_HOST", "127.0.0.1")
    port = os.environ.get("MCP_TEST_REDIS_PORT", "6379")
    configure(STORE="redis", STORE_URL=f"redis://{host}:{port}/9")
    store = RedisStore(prefix=f"test:{uuid4()}:")
    monkeypatch.setattr(chosen, "_store", store)
    yield store
    for key in store.client.scan_iter(f"{store.prefix}*", count=1000):
        store.client.delete(key)
    store.client.close()


@pytest.fixture
def in_memory(configure):
    configure(STORE="memory")
    return get_store()


@pytest.fixture
def elsewhere():
    elsewhere = Elsewhere(HTTPSSEApplication.as_asgi())
    yield elsewhere
    elsewhere.close()


@pytest.fixture
def divided(client, elsewhere):
    """A session whose messages are all posted elsewhere."""

    async def begin(**capabilities):
        session = HTTPSSEClient(client)
        session.posts = elsewhere
        return await session.begin(**capabilities)

    return begin


def stream_of(session):
    return stream_here(get_hub(), key_of(session.id))


@requirement("http-sse:accepted")
async def test_the_answer_comes_on_the_stream_from_wherever_it_was_made(store, divided):
    session = await divided()

    listed = await session.ask("tools/list")
    pings = [await session.send("ping") for _ in range(3)]

    assert listed["result"]["tools"]
    assert [await session.answer_to(number) for number in pings]
    await session.leave()


async def test_progress_questions_and_changes_come_as_well(store, divided, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        ctx.progress(1)
        return f"Hello {ctx.ask('who', Name, 'Who are you?')['name']}"

    order = await sync_to_async(Order.objects.create)(number="1")
    uri = f"django://objects/shop.order/{order.pk}"
    add_tool(greet, asks=True)
    session = await divided(elicitation={})
    params = {"name": "greet", "arguments": {}, "_meta": {"progressToken": "t"}}

    assert (await session.ask("resources/subscribe", {"uri": uri}))["result"] == {}
    number = await session.send("tools/call", params)
    await session.message("notifications/progress")
    question = await session.message("elicitation/create")
    said = {"action": "accept", "content": {"name": "Ada"}}
    await session.post({"jsonrpc": "2.0", "id": question["id"], "result": said})
    answer = await session.answer_to(number)
    await settled()
    publish({Change(topic=uri), Change(topic=TOOLS, server=DEFAULT_SERVER)})

    assert answer["result"]["content"][0]["text"] == "Hello Ada"
    assert (await session.message("notifications/resources/updated"))["params"] == {"uri": uri}
    await session.leave()


@pytest.mark.thorough
async def test_answers_are_not_dropped_while_nobody_reads_them(in_memory, divided, elsewhere):
    session = await divided()
    stream = stream_of(session)
    # As if it had not come back from its last look.
    stream._is_reading = True

    accepted = []
    while (posted := await session.post({**PING, "id": f"p{len(accepted)}"})).status == 202:
        accepted.append(f"p{len(accepted)}")
    await elsewhere.settled()
    stream._is_reading = False
    stream._nudged()

    assert (posted.status, len(accepted)) == (503, 63)
    assert {(await session.response())["id"] for _ in accepted} == set(accepted)
    # Their places are free again.
    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


async def test_a_call_that_is_taken_back_elsewhere_is_not_answered(
    store, divided, patient, gate, elsewhere
):
    session = await divided()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    await session.tell("notifications/cancelled", requestId=number)
    await elsewhere.settled()
    gate.open()

    assert (await session.ask("ping"))["result"] == {}
    assert session.heard(None) == []
    await session.leave()


@requirement("http-sse:close")
async def test_the_end_of_the_stream_stops_work_elsewhere(
    store, divided, patient, gate, elsewhere
):
    session = await divided()
    await session.send("tools/call", PATIENT)
    await gate.until_reached()

    await session.leave()
    await elsewhere.settled()
    gate.open()

    assert (await session.post(PING)).status == 404
    await settled()


async def test_a_call_of_a_process_that_was_killed_ends_with_an_error(
    in_memory, divided, patient, gate, elsewhere
):
    session = await divided()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    elsewhere.die()
    in_memory.clock = partial(timezone.now().__add__, timedelta(seconds=20))
    in_memory.renew(get_hub().key)
    stream_of(session)._nudged()

    error = (await session.answer_to(number))["error"]
    assert (error["code"], "gone" in error["message"]) == (-32603, True)
    gate.open()
    await session.leave()


async def test_a_session_whose_process_was_killed_is_not_found(
    in_memory, client, elsewhere, monkeypatch
):
    session = await HTTPSSEClient(client).begin()
    monkeypatch.setattr(in_memory, "renew", bool)
    in_memory.clock = partial(timezone.now().__add__, timedelta(seconds=20))
    session.posts = elsewhere

    posted = await session.post(PING)

    assert posted.status == 404
    assert in_memory.session(key_of(session.id)) is None
    assert await session.stream.rest() == []
    await settled()


async def test_a_stream_that_missed_what_calls_there_were_ends(in_memory, divided):
    session = await divided()
    index = index_of(key_of(session.id))
    in_memory.append(index, [b"unknown"] * 300)

    publish({Change(topic=log_topic(index))})

    assert await session.stream.rest() == []
    await settled()


async def test_a_log_that_is_gone_is_passed_over(in_memory, divided):
    session = await divided()
    in_memory.append(index_of(key_of(session.id)), [b"unknown"])

    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


async def test_a_session_has_only_so_many_calls_elsewhere(in_memory, divided):
    session = await divided()
    key = key_of(session.id)
    for number in range(63):
        in_memory.open_log(Log(key=f"l{number}", session=key, owner=get_hub().key))

    refused = await session.post(PING)

    assert (refused.status, refused.json["id"]) == (503, 1)
    await session.leave()


@pytest.mark.parametrize(("times", "is_lost"), [(1, False), (2, True)])
async def test_a_store_that_fails_is_asked_again_for_a_while(
    in_memory, divided, patient, gate, elsewhere, monkeypatch, caplog, times, is_lost
):
    monkeypatch.setattr(http_sse, "PAUSES", (0,))
    session = await divided()
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
    assert (number in [one["id"] for one in session.heard(None)]) is not is_lost
    await session.leave()

"""A legacy client that lost a stream comes back for the rest of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

import mcp_django as mcp
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.stores import bounds
from mcp_django.stores.interface import chosen
from mcp_django.stores.memory import MemoryStore
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import Change
from mcp_django.transports.sessions import session_topic
from mcp_django.transports.streams import hub as hubs
from mcp_django.transports.streams.hub import get_hub
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.transports.session_client import SessionClient, text_of
from tests.transports.wire import finished, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
LEGACY = [one for one in Revision if one.era is Era.LEGACY][1:]
NEWEST = LEGACY[-1]


@pytest.fixture(params=LEGACY, ids=lambda one: one.value)
def each(client, request):
    return speaking(client, request.param)


@pytest.fixture
def newest(client):
    return speaking(client, NEWEST)


@pytest.fixture
def store(monkeypatch):
    """A store in memory, whose clock the test turns."""
    found = MemoryStore(clock=lambda: found.now)
    found.now = timezone.now()
    monkeypatch.setattr(chosen, "_store", found)
    return found


@pytest.fixture
def work(add_tool, gate):
    def work(ctx: mcp.Context, steps: int = 2) -> str:
        """Report a first step, wait, and report the others."""
        ctx.progress(1)
        gate.wait()
        for step in range(2, steps + 1):
            ctx.progress(step)
        return "done"

    add_tool(work)
    return gate


async def begun(session, **arguments):
    """A call that has said something, with the event that said it."""
    call = await session.called("work", token="t", **arguments)
    event = await call.event()
    while not event.data:
        event = await call.event()
    return call, event


async def test_a_lost_stream_goes_on_where_it_was_lost(each, work):
    session = await SessionClient.begin(each)
    call, last = await begun(session)
    await call.left()
    work.open()

    again = await session.get(last.id)

    *reports, answer = await again.rest()
    assert [one["params"]["progress"] for one in reports] == [2]
    assert text_of(answer) == "done"


async def test_a_stream_that_is_resumed_before_the_call_is_done_is_live(newest, work):
    session = await SessionClient.begin(newest)
    call, last = await begun(session)
    await call.left()

    again = await session.get(last.id)
    work.open()

    assert text_of((await again.rest())[-1]) == "done"


async def test_what_arrived_already_is_not_sent_again_and_numbers_only_rise(newest, work):
    session = await SessionClient.begin(newest)
    call, first = await begun(session)
    work.open()
    second = await call.event()
    await call.end()

    from_first, from_second = await session.get(first.id), await session.get(second.id)

    assert len(await from_first.rest()) == len(await from_second.rest()) + 1
    ids = [int(one.id.rpartition(".")[2]) for one in (first, second)]
    assert ids == sorted(set(ids))
    assert first.id.rpartition(".")[0] == second.id.rpartition(".")[0]


async def test_only_the_newest_handshake_primes_a_stream(each, work):
    session = await SessionClient.begin(each)
    call = await session.called("work", token="t")

    first = await call.event()

    assert (first.data == "") is (each.revision is NEWEST)
    if not first.data:
        work.open()
        await call.left()
        again = await session.get(first.id)
        assert text_of((await again.rest())[-1]) == "done"
    else:
        work.open()
        await call.end()


async def test_a_tool_that_closes_its_stream_is_answered_when_the_client_comes_back(
    newest, add_tool, gate
):
    def slow(ctx: mcp.Context) -> str:
        """Let the connection go in between."""
        ctx.close_stream(retry=250)
        gate.wait()
        return "late"

    add_tool(slow)
    session = await SessionClient.begin(newest)
    call = await session.called("slow", token="t")
    primed, asked = await call.event(), await call.event()
    await call.end()
    gate.open()

    again = await session.get(primed.id)

    assert primed.data == ""
    assert asked.retry == "250"
    assert text_of((await again.rest())[-1]) == "late"


async def test_a_tool_that_ends_while_its_stream_is_closed_is_answered_when_the_client_comes_back(
    newest, add_tool, gate, monkeypatch
):
    class SlowStore(MemoryStore):
        def open_log(self, log):
            gate.wait()
            super().open_log(log)

    def hasty(ctx: mcp.Context) -> str:
        """Let the connection go, and end while the server still sees to that."""
        ctx.close_stream(retry=250)
        assert gate.reached.wait(PATIENCE)
        return "late"

    monkeypatch.setattr(chosen, "_store", SlowStore())
    add_tool(hasty)
    session = await SessionClient.begin(newest)
    call = session.call("hasty", token="t")
    call.start()
    await gate.until_reached()
    await finished(Lane.WORK)
    gate.open()
    await call.next()
    primed = await call.event()
    await call.end()

    again = await session.get(primed.id)

    assert text_of((await again.rest())[-1]) == "late"


async def test_a_stream_is_not_closed_where_the_client_could_not_come_back(client, add_tool):
    def hasty(ctx: mcp.Context) -> str:
        """Try to let the connection go."""
        ctx.close_stream()
        return "done"

    add_tool(hasty)
    session = await SessionClient.begin(speaking(client, Revision.V2025_06_18))

    answer = await session.call("hasty").whole()

    assert text_of(answer.json) == "done"


async def test_an_answer_that_needs_no_stream_has_no_event_ids(newest, add_tool):
    def quick() -> str:
        """Answer at once."""
        return "done"

    add_tool(quick)
    session = await SessionClient.begin(newest)

    answer = await session.call("quick").whole()

    assert answer.headers["content-type"] == "application/json"


# Who may


@pytest.mark.parametrize(
    "event_id",
    ["", "1", "x.1", "a" * 20, f"{'a' * 20}.-1", f"{'a' * 20}.01", f"{'a' * 20}.9" + "9" * 30],
)
async def test_an_id_that_is_none_is_refused(newest, event_id):
    session = await SessionClient.begin(newest)

    answer = await session.get(event_id)

    assert answer.status == 400


async def test_a_stream_of_another_session_is_not_there(newest, work, make_user):
    session = await SessionClient.begin(newest)
    other = await SessionClient.begin(newest)
    call, last = await begun(session)

    answer = await other.get(last.id)
    unknown = await other.get(f"{'a' * 24}.1")

    assert answer.status == unknown.status == 404
    assert answer.body == unknown.body
    work.open()
    await call.end()


async def test_a_session_of_another_user_is_not_there(newest, work, make_user):
    session = await SessionClient.begin(newest)
    call, last = await begun(session)
    eve = await sync_to_async(lambda: CheckedClient(user=make_user("eve", is_staff=True)))()
    thief = SessionClient(speaking(eve, NEWEST), session.id)

    stolen, unknown = await thief.get(last.id), await thief.get()

    assert stolen.status == unknown.status == 404
    assert stolen.body == unknown.body
    work.open()
    await call.end()


async def test_a_resumed_stream_ends_with_its_session(newest, work):
    session = await SessionClient.begin(newest)
    call, last = await begun(session)
    await call.left()
    again = await session.get(last.id)

    await session.end()

    assert await again.rest() == []
    work.open()


async def test_a_client_that_leaves_a_resumed_stream_is_forgotten(newest, work):
    session = await SessionClient.begin(newest)
    call, last = await begun(session)
    await call.left()
    again = await session.get(last.id)
    await again.frame()

    await again.left()

    assert again.task.done()
    work.open()


# When something is gone


async def test_the_call_of_a_process_that_is_gone_ends_with_an_error_told_once(
    newest, work, store, monkeypatch
):
    monkeypatch.setattr("mcp_django.transports.streams.event_stream.LOOK", 0.01)
    session = await SessionClient.begin(newest)
    call, last = await begun(session)
    await call.left()
    store.now += bounds.LEASE + timedelta(seconds=1)

    readers = [await session.get(last.id) for _ in range(2)]

    for reader in readers:
        (error,) = await reader.rest()
        assert error["error"]["code"] == -32603
        assert error["id"] == request_id_of(call)
    work.open()


def request_id_of(call):
    return msgspec.json.decode(call.chunks[0])["id"]


async def test_a_store_that_is_gone_costs_the_event_ids_and_nothing_else(
    newest, work, store, monkeypatch, caplog
):
    session = await SessionClient.begin(newest)

    def fail(*args, **options):
        raise ConnectionError("gone")

    monkeypatch.setattr(store, "open_log", fail)
    call, event = await begun(session)
    work.open()

    answer = (await call.rest())[-1]

    assert event.id is None
    assert text_of(answer) == "done"
    assert "cannot be resumed" in caplog.text


async def test_a_store_that_goes_in_the_middle_costs_the_event_ids_from_there(
    newest, work, store, monkeypatch, caplog
):
    session = await SessionClient.begin(newest)
    call, event = await begun(session)

    def fail(*args, **options):
        raise ConnectionError("gone")

    monkeypatch.setattr(store, "append", fail)
    work.open()

    last = await call.event()
    while "result" not in last.message:
        last = await call.event()

    assert event.id is not None
    assert last.id is None
    assert "from here on" in caplog.text


# The stream that belongs to no call


async def test_a_standalone_stream_that_was_lost_tells_of_everything_once(each):
    order = await sync_to_async(Order.objects.create)(number="1")
    uri = f"django://objects/shop.order/{order.pk}"
    session = await SessionClient.begin(each)
    await session.answer_to("resources/subscribe", uri=uri)
    stream = await session.get()
    publish({Change(topic=uri)})
    last = await stream.event()

    # The server does not know yet that the client has lost it.
    again = await session.get(last.id)

    assert again.status == 200
    methods = {(await again.message())["method"] for _ in range(4)}
    assert methods == {
        "notifications/resources/updated",
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
    async with asyncio.timeout(PATIENCE):
        await stream.task
    await again.left()


async def test_a_second_standalone_stream_is_refused_and_free_when_the_first_is_gone(each):
    session = await SessionClient.begin(each)
    first = await session.get()

    second = await session.get()
    await first.left()
    third = await session.get()

    assert (first.status, second.status, third.status) == (200, 409, 200)
    await third.left()


async def test_a_standalone_stream_follows_what_the_session_subscribes_to(each):
    order = await sync_to_async(Order.objects.create)(number="1")
    uri = f"django://objects/shop.order/{order.pk}"
    session = await SessionClient.begin(each)
    stream = await session.get()
    async with heeded(session):
        await session.answer_to("resources/subscribe", uri=uri)
    publish({Change(topic=uri)})
    heard = await stream.message()

    async with heeded(session):
        await session.answer_to("resources/unsubscribe", uri=uri)

    assert heard["params"]["uri"] == uri
    assert get_hub().streams[0].uris == ()
    await stream.left()


@asynccontextmanager
async def heeded(session):
    """Until the streams of this process know that the session has changed."""
    hub, told = get_hub(), asyncio.Event()
    topic = session_topic(session.key)
    with hub.when(told.set, topic):
        yield
        async with asyncio.timeout(PATIENCE):
            await told.wait()
            await asyncio.gather(*hub._tasks)


def turn_the_wheel():
    """As if fifteen seconds went by."""
    hub = get_hub()
    for _ in range(hubs.KEEP_ALIVE):
        hub._tick.cancel()
        hub._turn()


async def test_a_session_lives_for_as_long_as_its_stream(newest, store):
    session = await SessionClient.begin(newest)
    stream = await session.get()
    key = session.key
    begun = store.session(key).seen
    await stream.frame()
    store.now += timedelta(minutes=20)

    for _ in range(2):
        turn_the_wheel()
        frame = await stream.frame()

    assert frame.is_comment
    assert store.session(key).seen > begun
    await stream.left()


async def test_a_session_that_ended_without_a_word_ends_its_stream(newest, store):
    session = await SessionClient.begin(newest)
    stream = await session.get()
    store.end_session(session.key)

    turn_the_wheel()

    assert await stream.rest() == []

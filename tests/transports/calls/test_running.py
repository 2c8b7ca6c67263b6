from __future__ import annotations

import asyncio
import gc
from threading import Event

import msgspec
import pytest
from django.db import connection

import mcp_django as mcp
from mcp_django.exceptions import Cancelled
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.calls.output import Output
from mcp_django.transports.calls.running import RunningCall
from mcp_django.transports.http.middleware import loaded
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.wire import Connection, finished, speaking
from tests.waiting import PATIENCE

LATEST = Revision.V2025_11_25


# A client that leaves


def watcher(seen):
    """A tool that works until it is cancelled, and takes effect if it is not."""
    started = Event()
    release = Event()

    def work(ctx: mcp.Context) -> str:
        """Work, and look whether anybody waits."""
        started.set()
        release.wait(PATIENCE)
        seen["cancelled"] = ctx.cancelled.is_set()
        try:
            ctx.check()
        except Cancelled:
            seen["raised"] = True
            raise
        Order.objects.create(number="done")
        return "done"

    return work, started, release


@requirement("envelope:disconnect-cancels")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_modern_client_that_leaves_cancels_its_call(client, add_tool):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(client, "work")

    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)
    # What no server should say then.
    call.inbox.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    call.hang_up()
    await call.end()
    release.set()
    await finished(Lane.WORK)

    assert seen == {"cancelled": True, "raised": True}
    assert call.sent == []
    assert not await Order.objects.filter(number="done").aexists()


@requirement("http:disconnect-is-no-cancel")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_legacy_client_that_leaves_does_not_cancel_its_call(client, add_tool):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(speaking(client, LATEST), "work")

    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)
    call.hang_up()
    await call.end()
    release.set()
    await finished(Lane.WORK)

    assert seen == {"cancelled": False}
    assert call.sent == []
    assert await Order.objects.filter(number="done").aexists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_call_whose_client_left_while_it_waited_never_starts(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1)
    started = Event()

    def block() -> str:
        """Hold the only thread."""
        gate.wait()
        return ""

    def late() -> str:
        """Say that it started."""
        started.set()
        return ""

    add_tool(block)
    add_tool(late)
    first, second = Connection.calling(client, "block"), Connection.calling(client, "late")
    first.start()
    await gate.until_reached()
    second.start()
    second.hang_up()
    await second.end()

    gate.open()
    await first.end()
    await finished(Lane.WORK)

    assert first.status == 200
    assert second.sent == []
    assert not started.is_set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_call_that_is_over_when_its_client_leaves_tells_nobody(client, add_tool, gate):
    def block(ctx: mcp.Context) -> str:
        """Report, then wait."""
        ctx.progress(1)
        gate.wait()
        return ""

    add_tool(block)
    call = Connection.calling(client, "block", token=1)
    call.start()
    await call.next()
    await call.next()
    call.hang_up()
    await call.end()

    events = list(call.sent)
    gate.open()
    await finished(Lane.WORK)

    assert call.sent == events
    assert call.is_whole()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_server_that_stops_the_application_cancels_a_modern_call(client, add_tool):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(client, "work")
    task = call.start()
    await asyncio.to_thread(started.wait, PATIENCE)

    task.cancel()
    await asyncio.wait({task}, timeout=PATIENCE)
    release.set()
    await finished(Lane.WORK)

    assert task.cancelled()
    assert seen["cancelled"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_server_whose_receive_fails_has_lost_the_client(client, add_tool, caplog):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(client, "work")
    message = call.inbox.get_nowait()
    answers = iter([message])

    async def receive():
        for answer in answers:
            return answer
        await asyncio.to_thread(started.wait, PATIENCE)
        raise ConnectionResetError

    task = asyncio.create_task(call.application(call.scope, receive, call.send))
    async with asyncio.timeout(PATIENCE):
        await task
    release.set()
    await finished(Lane.WORK)

    assert seen["cancelled"]
    assert call.sent == []
    assert caplog.records == []


# Lanes and limits


@requirement("lifecycle:ping")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_slow_tools_of_the_project_hold_up_neither_queries_nor_ping(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1)

    def block() -> str:
        """Hold the only thread."""
        gate.wait()
        return ""

    add_tool(block)
    slow = Connection.calling(client, "block")
    slow.start()
    await gate.until_reached()

    found = await Connection.calling(client, "find_records", model="shop.order").whole()
    ping = await Connection.asking(speaking(client, LATEST), "ping").whole()

    assert found.status == ping.status == 200
    assert not slow.task.done()
    gate.open()
    await slow.end()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_full_queue_answers_503_with_the_id_and_when_to_come_back(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1, MAX_WAITING=0)

    call = await Connection.calling(client, "echo", text="x").whole()

    assert call.status == 503
    assert call.headers["retry-after"] == "1"
    assert call.json["id"] == 1
    assert call.json["error"]["code"] == -32603
    assert "busy" in call.json["error"]["message"]


@pytest.mark.thorough
@requirement("limits:handlers")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_tool_that_runs_for_too_long_is_an_error_that_the_model_reads(
    client, add_tool, gate, configure
):
    configure(TOOL_TIMEOUT=0.5)

    def block() -> str:
        """Never end."""
        gate.wait()
        return ""

    add_tool(block)

    call = await Connection.calling(client, "block").whole()
    gate.open()
    await finished(Lane.WORK)

    assert call.status == 200
    assert call.json["result"]["isError"]
    assert "0.5 seconds" in call.json["result"]["content"][0]["text"]


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "postgresql", reason="Only PostgreSQL counts them.")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_many_calls_hold_no_more_connections_than_there_are_threads(
    client, configure, fresh_lanes
):
    configure(QUERY_THREADS=2, WORK_THREADS=2)
    names = ["echo", "echo_later", "echo", "echo_later"] * 5
    calls = [Connection.calling(client, name, text="x") for name in names]
    calls += [Connection.calling(client, "find_records", model="shop.order") for _ in range(20)]

    await asyncio.gather(*(call.whole() for call in calls))

    assert {call.status for call in calls} == {200}
    # The lanes', that of the test itself, asgiref's and the one that asks. The server may take a
    # moment to see that one was closed.
    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(count_connections) > 2 + 2 + 3:
            continue


def count_connections():
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            return cursor.fetchone()[0]
    finally:
        connection.close()


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_batch_that_runs_for_too_long_is_given_up_before_its_next_message(
    client, add_tool, gate, configure
):
    configure(TOOL_TIMEOUT=0.5)
    began = Event()

    def block() -> str:
        """Wait."""
        gate.wait()
        return ""

    def begin() -> str:
        """Say that it began."""
        began.set()
        return ""

    add_tool(block)
    add_tool(begin)
    client = speaking(client, Revision.V2025_03_26)
    batch = [client.message("tools/call", {"name": name}) for name in ("block", "begin")]

    call = await Connection(client, msgspec.json.encode(batch)).whole()
    gate.open()
    await finished(Lane.WORK)

    assert call.json["error"]["code"] == -32603
    assert "0.5 seconds" in call.json["error"]["message"]
    assert not began.is_set()


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_call_leaves_nothing_to_the_garbage_collector(client):
    if loaded.chain() is not None:
        pytest.skip(
            "Middleware of this site runs around calls, and its requests may be in cycles."
        )
    await Connection.calling(client, "echo", text="x").whole()
    await finished(Lane.WORK)
    gc.collect()
    gc.disable()
    try:
        await Connection.calling(client, "echo", text="x").whole()
        await finished(Lane.WORK)
        # What nobody refers to any more, and only the collector finds.
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [one for one in gc.garbage if isinstance(one, (RunningCall, Output))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    assert left == []

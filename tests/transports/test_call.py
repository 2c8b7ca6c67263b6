"""Calls from their beginning to their end: clients that leave, limits of time and of room."""

from __future__ import annotations

import asyncio
import gc
from threading import Event

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.db import connection

import mcp_django as mcp
from mcp_django.protocol.revisions import MODERN, Revision
from mcp_django.transports.call import RunningCall, async_calls
from mcp_django.transports.middleware import loaded
from mcp_django.transports.output import Output
from mcp_django.transports.threads import Lane
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.wire import Connection, finished, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
LATEST = Revision.V2025_11_25


def ends(gathered):
    return [(entry.target, entry.outcome) for entry in gathered.ends]


async def settled():
    """Until no tool runs."""
    await finished(Lane.WORK)
    await asyncio.gather(*async_calls, return_exceptions=True)
    # Callbacks of a task run in the turn of the loop behind its end.
    await asyncio.to_thread(int)


@pytest.fixture(params=["sync", "async"])
def work(request, add_tool, gate):
    """A tool that waits, and takes effect if anybody still waits for it then."""

    def effect(ctx):
        ctx.check()
        Order.objects.create(number="done")
        return "done"

    def work(ctx: mcp.Context) -> str:
        """Work."""
        gate.wait()
        return effect(ctx)

    async def work_later(ctx: mcp.Context) -> str:
        """Work in a coroutine."""
        await asyncio.to_thread(gate.wait)
        return await sync_to_async(effect)(ctx)

    function = work if request.param == "sync" else work_later
    add_tool(function, read_only=False)
    return function.__name__


# A client that leaves


@requirement("envelope:disconnect-cancels", "http:disconnect-is-no-cancel")
@pytest.mark.parametrize("revision", [LATEST, *MODERN], ids=lambda revision: revision.value)
@pytest.mark.parametrize(
    "last", [{"type": "http.disconnect"}, {}], ids=["as ASGI says", "its server fails"]
)
async def test_a_client_that_leaves_cancels_its_call_in_the_modern_era_only(
    client, work, gate, gathered, caplog, revision, last
):
    call = await gate.held(Connection.calling(client, work))

    # What no server should say then.
    call.inbox.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    call.inbox.put_nowait(last)
    await call.end()
    gate.open()
    await settled()

    is_cancelled = revision is not LATEST
    assert call.sent == []
    assert await Order.objects.filter(number="done").aexists() is not is_cancelled
    assert ends(gathered) == [(work, "cancelled" if is_cancelled else "done")]
    assert caplog.records == []


async def test_a_call_whose_client_left_while_it_waited_never_starts(
    client, offer, patient, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1, MAX_WAITING=1)
    started = Event()
    offer(lambda ctx: started.set())
    first, second = Connection.calling(client, "patient"), Connection.calling(client, "work")
    first.start()
    await gate.until_reached()
    second.start()
    second.hang_up()
    await second.end()
    # Its place is free.
    third = Connection.calling(client, "echo", text="x")
    third.start()

    gate.open()
    for call in (first, third):
        await call.end()
    await finished(Lane.WORK)

    assert (first.status, third.status) == (200, 200)
    assert second.sent == []
    assert not started.is_set()


# Limits


@requirement("lifecycle:ping")
async def test_slow_tools_of_the_project_hold_up_neither_queries_nor_ping(
    client, patient, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1)
    slow = await gate.held(Connection.calling(client, "patient"))

    page = await Connection.calling(client, "find_records", model="shop.order").whole()
    ping = await Connection.asking(speaking(client, LATEST), "ping").whole()

    assert page.status == ping.status == 200
    assert not slow.task.done()
    gate.open()
    await slow.end()


@pytest.mark.thorough
@requirement("limits:handlers")
async def test_a_tool_that_runs_for_too_long_is_an_error_that_the_model_reads(
    client, work, gate, gathered, configure, caplog
):
    """Also an async one that is stuck in a thread."""
    configure(TOOL_TIMEOUT=0.5)

    call = await Connection.calling(client, work).whole()
    gate.open()
    await settled()

    assert call.status == 200
    assert call.json["result"]["isError"]
    assert "0.5 seconds" in call.json["result"]["content"][0]["text"]
    assert ends(gathered) == [(work, "cancelled")]
    assert caplog.records == []


@pytest.mark.thorough
async def test_a_batch_that_runs_for_too_long_is_given_up_before_its_next_message(
    client, offer, patient, gate, configure
):
    configure(TOOL_TIMEOUT=0.5)
    began = Event()
    offer(lambda ctx: began.set())
    client = speaking(client, Revision.V2025_03_26)
    batch = [client.message("tools/call", {"name": name}) for name in ("patient", "work")]

    call = await Connection(client, msgspec.json.encode(batch)).whole()
    gate.open()
    await finished(Lane.WORK)

    assert call.json["error"]["code"] == -32603
    assert "0.5 seconds" in call.json["error"]["message"]
    assert not began.is_set()


@pytest.mark.thorough
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
        left = [held for held in gc.garbage if isinstance(held, (RunningCall, Output))]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    assert left == []


# Async tools


#: Middleware around a call: an async tool inside of any has an event loop of its own.
AROUND = pytest.mark.parametrize("middleware", [(), ("function",)], ids=["alone", "middleware"])


@AROUND
@pytest.mark.parametrize(
    "error", [ValueError, TimeoutError, StopAsyncIteration, SystemExit, asyncio.CancelledError]
)
async def test_whatever_an_async_tool_raises_is_an_internal_error(
    client, add_tool, run, middleware, error
):
    run(*middleware)

    async def burst() -> str:
        """Raise."""
        raise error("secret")

    add_tool(burst)

    call = await Connection.calling(client, "burst").whole()

    assert call.json["error"]["message"] == "Internal error"
    assert b"secret" not in call.body
    # Here, and not in a test that reads the log: of SystemExit asyncio tells when the task goes.
    gc.collect()


@AROUND
async def test_async_tools_run_on_the_servers_loop_and_leave_no_connection_open(
    client, staff, add_tool, run, middleware
):
    run(*middleware)
    loop = asyncio.get_running_loop()
    raw = []

    async def look(request) -> bool:
        """Use the database, on this very loop where nothing is around."""
        await Order.objects.acount()
        raw.append(await sync_to_async(lambda: connection.connection)())
        assert await request.auser() == staff
        return asyncio.get_running_loop() is loop

    add_tool(look)

    call = await Connection.calling(client, "look").whole()

    assert call.json["result"]["structuredContent"] == {"result": not middleware}
    # Around it is middleware in a thread, which keeps its connection.
    if not middleware:
        with pytest.raises(Exception, match="closed"):
            raw[0].cursor()


async def test_a_full_lane_says_when_to_come_back_and_takes_the_end_of_an_async_tool(
    client, add_tool, patient, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1, MAX_WAITING=1)
    started, release = asyncio.Event(), asyncio.Event()

    async def effect() -> str:
        """Take effect."""
        started.set()
        await release.wait()
        return "done"

    add_tool(effect)
    calls = [Connection.calling(client, name) for name in ("effect", "patient", "echo")]
    calls[0].start()
    async with asyncio.timeout(PATIENCE):
        await started.wait()
    calls[1].start()
    await gate.until_reached()
    calls[2].start()
    refused = await Connection.calling(client, "echo", text="x").whole()

    release.set()
    await asyncio.gather(*async_calls)
    gate.open()
    for call in calls:
        await call.end()

    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert (refused.json["id"], refused.json["error"]["code"]) == (4, -32603)
    assert "busy" in refused.json["error"]["message"]
    assert calls[0].json["result"]["content"][0]["text"] == "done"

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

import mcp_django as mcp
from mcp_django.handlers.dispatch import PendingAnswer
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.calls import running
from mcp_django.transports.calls.running import RunningCall
from mcp_django.transports.exchanges import Exchange
from tests.shop.models import Order
from tests.transports.wire import Connection, speaking
from tests.waiting import PATIENCE

LATEST = Revision.V2025_11_25


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_of_a_modern_client_that_leaves_is_cancelled(client, add_tool):
    started, ended = asyncio.Event(), asyncio.Event()

    async def sleep(ctx: mcp.Context) -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            assert ctx.cancelled.is_set()
            ended.set()
            raise
        return ""

    add_tool(sleep)
    call = Connection.calling(client, "sleep")
    call.start()

    async with asyncio.timeout(PATIENCE):
        await started.wait()
        call.hang_up()
        await call.end()
        await ended.wait()

    assert call.sent == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_of_a_legacy_client_that_leaves_goes_on_to_its_end(client, add_tool):
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        """Wait until released."""
        started.set()
        await release.wait()
        ended.set()
        return ""

    add_tool(sleep)
    call = Connection.calling(speaking(client, LATEST), "sleep")
    call.start()

    async with asyncio.timeout(PATIENCE):
        await started.wait()
        call.hang_up()
        await call.end()
        release.set()
        await ended.wait()
        await asyncio.gather(*running.async_calls)

    assert call.sent == []


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_that_runs_for_too_long_is_an_error_that_the_model_reads(
    client, add_tool, configure, caplog
):
    configure(TOOL_TIMEOUT=0.5)

    async def sleep() -> str:
        """Never end."""
        await asyncio.get_running_loop().create_future()
        return ""

    add_tool(sleep)

    call = await Connection.calling(client, "sleep").whole()

    assert call.json["result"]["isError"]
    assert "0.5 seconds" in call.json["result"]["content"][0]["text"]
    assert caplog.records == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_as_many_async_tools_run_at_once_as_calls_may_wait(client, add_tool, configure):
    configure(MAX_WAITING=1)
    started, release = asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        """Wait until released."""
        started.set()
        await release.wait()
        return ""

    add_tool(sleep)
    first = Connection.calling(client, "sleep")
    first.start()
    async with asyncio.timeout(PATIENCE):
        await started.wait()

    second = await Connection.calling(client, "sleep").whole()
    release.set()
    await first.end()

    assert (first.status, second.status) == (200, 503)
    assert second.headers["retry-after"] == "1"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "error", [ValueError, TimeoutError, StopAsyncIteration, SystemExit, asyncio.CancelledError]
)
async def test_whatever_an_async_tool_raises_is_an_internal_error(client, add_tool, error):
    async def burst() -> str:
        """Raise."""
        raise error("secret")

    add_tool(burst)

    call = await Connection.calling(client, "burst").whole()

    assert call.json["error"]["message"] == "Internal error"
    assert b"secret" not in call.body


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_can_say_what_to_do_next(client, add_tool):
    async def refuse() -> str:
        """Refuse."""
        raise mcp.ToolError("Ask for tomorrow.")

    add_tool(refuse)

    call = await Connection.calling(client, "refuse").whole()

    assert call.json["result"]["content"][0]["text"] == "Ask for tomorrow."
    assert call.json["result"]["isError"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_async_tools_run_on_the_servers_loop_and_leave_no_connection_open(client, add_tool):
    loop = asyncio.get_running_loop()
    raw = []

    async def look(request) -> bool:
        """Use the database, on this very loop."""
        await Order.objects.acount()
        raw.append(await sync_to_async(lambda: connection.connection)())
        assert (await request.auser()).username == "staff"
        return asyncio.get_running_loop() is loop

    add_tool(look)

    call = await Connection.calling(client, "look").whole()

    assert call.json["result"]["structuredContent"] == {"result": True}
    with pytest.raises(Exception, match="closed"):
        raw[0].cursor()


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_that_is_stuck_in_a_thread_does_not_delay_its_answer(
    client, add_tool, gate, configure
):
    configure(TOOL_TIMEOUT=0.5)

    async def wait() -> str:
        """Wait in a thread."""
        await sync_to_async(gate.wait)()
        return ""

    add_tool(wait)

    call = await Connection.calling(client, "wait").whole()
    held = len(running.async_calls)
    gate.open()
    await asyncio.gather(*running.async_calls, return_exceptions=True)

    assert call.json["result"]["isError"]
    assert held == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_the_end_of_an_async_tool_is_told_however_full_the_lane_is(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1, MAX_WAITING=1)
    started, release = asyncio.Event(), asyncio.Event()

    async def effect() -> str:
        """Take effect."""
        started.set()
        await release.wait()
        return "done"

    def block() -> str:
        """Hold the only thread."""
        gate.wait()
        return ""

    add_tool(effect)
    add_tool(block)
    calls = [Connection.calling(client, name) for name in ("effect", "block", "echo")]
    calls[0].start()
    async with asyncio.timeout(PATIENCE):
        await started.wait()
    calls[1].start()
    await gate.until_reached()
    calls[2].start()
    refused = await Connection.calling(client, "echo", text="x").whole()

    release.set()
    await asyncio.gather(*running.async_calls)
    gate.open()
    for call in calls:
        await call.end()

    assert refused.status == 503
    assert calls[0].json["result"]["content"][0]["text"] == "done"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_tool_cancelled_before_its_first_step_complains_of_nothing():
    async def never():
        raise AssertionError("It never runs.")

    tool = running.begin(
        PendingAnswer(awaitable=never(), settle=lambda returned: None, give_up=bool)
    )
    tool.cancel()
    await asyncio.wait({tool}, timeout=PATIENCE)
    # Callbacks of a task run in the turn of the loop behind its end.
    await asyncio.to_thread(int)

    assert tool.cancelled()
    assert not running.async_calls


@pytest.mark.asyncio
async def test_an_async_tool_does_not_begin_when_its_client_left_in_the_same_moment():
    """Its first hop is done, and the loop hears of the disconnect first."""

    async def never():
        raise AssertionError("It never runs.")

    def again(**run):
        raise AssertionError("Nothing runs again.")

    call = RunningCall(Exchange(), make=again)
    hop = asyncio.get_running_loop().create_future()
    hop.set_result(PendingAnswer(awaitable=never(), settle=lambda returned: None, give_up=bool))
    call.cancelled.set()

    call._worked(hop)

    assert not running.async_calls
    assert call.is_over

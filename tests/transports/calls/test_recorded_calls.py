"""Calls whose clients leave, or whose time is over, are recorded all the same."""

from __future__ import annotations

import asyncio

import pytest

import mcp_django as mcp
from mcp_django.audit.records import Gathered, records
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.calls.running import async_calls
from tests.transports.wire import Connection, finished, speaking
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gathered():
    gathered = Gathered()
    with records.using(gathered):
        yield gathered


def ends(gathered):
    return [(one.target, one.outcome) for one in gathered.ends]


@pytest.fixture
def sleep(add_tool):
    started = asyncio.Event()

    async def sleep() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.get_running_loop().create_future()
        return ""

    add_tool(sleep, read_only=False)
    return started


@pytest.mark.asyncio
async def test_an_async_tool_whose_client_leaves_has_a_record(client, sleep, gathered):
    call = Connection.calling(client, "sleep")
    call.start()

    async with asyncio.timeout(PATIENCE):
        await sleep.wait()
        call.hang_up()
        await call.end()
        await asyncio.gather(*async_calls, return_exceptions=True)
        # Callbacks of a task run in the turn of the loop behind its end.
        await asyncio.to_thread(int)

    assert ends(gathered) == [("sleep", "cancelled")]


@pytest.mark.thorough
@pytest.mark.asyncio
async def test_an_async_tool_that_is_too_slow_has_a_record(client, sleep, gathered, configure):
    configure(TOOL_TIMEOUT=0.5)

    call = await Connection.calling(client, "sleep").whole()

    assert call.json["result"]["isError"]
    assert ends(gathered) == [("sleep", "cancelled")]


@pytest.mark.asyncio
async def test_an_async_tool_that_is_done_has_one_record(client, gathered):
    await Connection.calling(client, "echo_later", text="x").whole()

    assert ends(gathered) == [("echo_later", "done")]


@pytest.mark.asyncio
async def test_an_async_tool_that_finds_no_room_has_a_record(client, gathered, monkeypatch):
    monkeypatch.setattr("mcp_django.transports.calls.running.get_config", lambda: NoRoom)

    call = await Connection.calling(client, "echo_later", text="x").whole()

    assert call.status == 503
    assert ends(gathered) == [("echo_later", "cancelled")]


class NoRoom:
    max_waiting = 0
    tool_timeout = 60


@pytest.mark.asyncio
async def test_a_sync_tool_whose_client_leaves_is_recorded_with_how_it_ended(
    client, add_tool, gathered, gate
):
    def stop(ctx: mcp.Context) -> str:
        """Stop when nobody waits."""
        gate.wait()
        ctx.check()
        return ""

    add_tool(stop)
    call = Connection.calling(client, "stop")
    call.start()
    await gate.until_reached()
    call.hang_up()
    await call.end()

    gate.open()
    await finished(Lane.WORK)

    assert ends(gathered) == [("stop", "cancelled")]


@pytest.mark.asyncio
async def test_a_legacy_client_that_left_is_told_nothing_and_the_record_says_done(
    client, add_tool, gathered, gate
):
    def go_on() -> str:
        """Go on."""
        gate.wait()
        return ""

    add_tool(go_on)
    call = Connection.calling(speaking(client, Revision.V2025_11_25), "go_on")
    call.start()
    await gate.until_reached()
    call.hang_up()
    await call.end()

    gate.open()
    await finished(Lane.WORK)

    assert ends(gathered) == [("go_on", "done")]

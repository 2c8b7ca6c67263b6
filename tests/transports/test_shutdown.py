from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading

import pytest

from mcp_django.transports import shutdown
from mcp_django.transports.shutdown import Shutdown, end_process, prepare
from mcp_django.transports.threads import Lane
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def handlers():
    """Puts back what the process does when it is told to stop."""
    before = {number: signal.getsignal(number) for number in shutdown.SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_streams_say_their_last_words_before_the_server_hears_of_the_signal(
    client, monkeypatch, listen
):
    monkeypatch.setattr(shutdown, "FAREWELL", 0.05)
    heard = asyncio.Event()
    stream, cancelled = [await listen(client, toolsListChanged=True) for _ in range(2)]

    # As Daphne does when it stops, and others after the time that they wait.
    cancelled.task.cancel()
    Shutdown(signal.SIGTERM, lambda number, frame: heard.set())(signal.SIGTERM, None)

    assert not heard.is_set()
    for ended in (stream, cancelled):
        (last,) = await ended.rest()
        assert last["result"]["resultType"] == "complete"
    async with asyncio.timeout(PATIENCE):
        await heard.wait()


async def test_the_servers_own_handler_is_kept_behind_ours_once_if_it_is_one(handlers):
    def stop(number, frame):
        raise NotImplementedError

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    prepare()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    signal.signal(signal.SIGTERM, stop)
    await asyncio.to_thread(prepare)
    # Only the main thread can.
    assert signal.getsignal(signal.SIGTERM) is stop

    prepare()
    prepare()

    ours = signal.getsignal(signal.SIGTERM)
    assert isinstance(ours, Shutdown)
    assert ours.otherwise is stop


@pytest.mark.thorough
@pytest.mark.parametrize("runs_on", [False, True])
async def test_a_tool_that_runs_on_does_not_keep_the_process(
    fresh_lanes, gate, monkeypatch, caplog, runs_on
):
    exits = []
    monkeypatch.setattr(os, "_exit", exits.append)
    monkeypatch.setattr(logging, "shutdown", bool)
    job = gate.wait if runs_on else gate.reached.set
    work = fresh_lanes[Lane.WORK].start(job, seconds=5, cancelled=threading.Event())
    await gate.until_reached()

    await asyncio.to_thread(end_process)

    assert exits == [0] * runs_on
    assert ("A tool still ran" in caplog.text) is runs_on
    gate.open()
    await work

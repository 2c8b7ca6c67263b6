from __future__ import annotations

import asyncio
import logging
import os
import threading

import pytest

from mcp_django.exposure.primitives import Lane
from mcp_django.transports.shutdown import end_process

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def exits(monkeypatch):
    """The codes that the process would have ended with."""
    found = []
    monkeypatch.setattr(os, "_exit", found.append)
    monkeypatch.setattr(logging, "shutdown", bool)
    return found


async def test_where_nothing_runs_the_threads_end_and_the_process_goes_on(fresh_lanes, exits):
    work = fresh_lanes[Lane.WORK].start(
        threading.get_native_id, seconds=5, cancelled=threading.Event()
    )
    await work

    await asyncio.to_thread(end_process)

    assert exits == []


@pytest.mark.thorough
async def test_a_thread_that_runs_on_does_not_keep_the_process(fresh_lanes, exits, gate, caplog):
    work = fresh_lanes[Lane.WORK].start(gate.wait, seconds=5, cancelled=threading.Event())
    await gate.until_reached()

    await asyncio.to_thread(end_process)

    assert exits == [0]
    assert "A tool still ran" in caplog.text
    gate.open()
    await work

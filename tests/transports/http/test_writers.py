"""Few tasks write to many streams: nobody waits for somebody else's slow reader."""

from __future__ import annotations

import asyncio

import pytest

from mcp_django.transports.http.responses import GULP, Writers
from tests.waiting import PATIENCE

pytestmark = pytest.mark.asyncio


class Stream:
    """Written to, it takes that at once, or when its reader reads."""

    def __init__(self, *, reads=True):
        self.reads = asyncio.Event()
        self.is_written = asyncio.Event()
        self.tasks = []
        if reads:
            self.reads.set()

    async def write(self):
        self.tasks.append(asyncio.current_task())
        await self.reads.wait()
        self.is_written.set()


async def written(streams):
    async with asyncio.timeout(PATIENCE):
        for stream in streams:
            await stream.is_written.wait()


async def test_more_streams_than_go_at_once_are_written_each_once():
    writers, streams = Writers(), [Stream() for _ in range(2 * GULP + 1)]

    for stream in streams:
        writers.add(stream)
    await written(streams)

    assert {len(stream.tasks) for stream in streams} == {1}
    assert len({task for stream in streams for task in stream.tasks}) == 3


async def test_readers_that_do_not_read_keep_nobody_waiting():
    writers = Writers()
    slow = [Stream(reads=False) for _ in range(3)]
    quick = [Stream() for _ in range(3)]

    for pair in zip(slow, quick, strict=True):
        for stream in pair:
            writers.add(stream)
    await written(quick)
    later = Stream()
    writers.add(later)
    await written([later])

    assert not any(stream.is_written.is_set() for stream in slow)
    for stream in slow:
        stream.reads.set()
    await written(slow)

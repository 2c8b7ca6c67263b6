from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from mcp_django.transports.stdio_lines import LineReader, LineWriter, lines_of
from tests.waiting import LONG_PATIENCE, PATIENCE


@pytest.fixture
def pipe():
    """Both ends; whoever closes one says so with -1."""
    ends = list(os.pipe())
    yield ends
    for end in ends:
        if end >= 0:
            os.close(end)


def close(pipe, index):
    os.close(pipe[index])
    pipe[index] = -1


async def lines(reader):
    taken = []
    async with asyncio.timeout(PATIENCE):
        try:
            while True:
                taken.append(await reader.line())
        except EOFError:
            return taken


@pytest.mark.thorough
@pytest.mark.asyncio
async def test_what_nobody_asks_for_is_not_read_without_bounds(pipe):
    reader = LineReader(pipe[0], limit=100_000, ended=bool)
    os.set_blocking(pipe[1], False)
    sent = 0
    quiet = 0
    while quiet < 20:
        try:
            sent += os.write(pipe[1], b"x" * 999 + b"\n")
            quiet = 0
        except BlockingIOError:
            quiet += 1
            await asyncio.sleep(0.01)

    assert sent < 500_000
    close(pipe, 1)
    assert sum(len(line) + 1 for line in await lines(reader)) == sent


@pytest.mark.asyncio
async def test_a_loop_that_is_over_is_told_nothing(pipe):
    async def begin():
        return LineReader(pipe[0], limit=10, ended=bool)

    reader = await asyncio.to_thread(asyncio.run, begin())
    close(pipe, 1)

    await asyncio.to_thread(reader._thread.join, PATIENCE)
    assert not reader._thread.is_alive()


# Writing


@pytest.mark.asyncio
async def test_lines_never_mix(pipe):
    writer = LineWriter(pipe[1], closed=bool)
    long = [bytes([65 + index]) * 100_000 for index in range(8)]
    found = bytearray()

    def read():
        while chunk := os.read(pipe[0], 4096):
            found.extend(chunk)

    reading = threading.Thread(target=read)
    reading.start()
    await asyncio.gather(*(writer.write(lines_of([line])) for line in long))
    assert await writer.flush(PATIENCE)
    close(pipe, 1)
    reading.join(PATIENCE)

    assert sorted(bytes(found).splitlines()) == long
    writer.close()


@pytest.mark.asyncio
async def test_who_writes_waits_for_a_reader_that_does_not_read(pipe):
    writer = LineWriter(pipe[1], closed=bool)
    await writer.write(b"x" * 2_000_000 + b"\n")
    more = asyncio.create_task(writer.write(b"more\n"))

    assert not await writer.flush(0.05)

    assert not more.done()
    writer.close()
    async with asyncio.timeout(PATIENCE):
        await more
    # The thread writes on until somebody reads or nobody can.
    close(pipe, 0)
    await asyncio.to_thread(writer._thread.join, PATIENCE)
    assert not writer._thread.is_alive()


# The pipes of a process

#: In a process whose input does not block and which has no standard error.
PROGRAM = """
import os, sys, django
os.close(2)
os.set_blocking(0, False)
django.setup()
from mcp_django.transports.stdio import take_streams
pipes = take_streams()
print("printed")
os.write(1, b"raw")
os.write(pipes.output, str((os.read(0, 10), os.get_blocking(pipes.input))).encode())
"""


@pytest.mark.thorough
def test_without_standard_error_nothing_is_printed_anywhere():
    """Where what is printed goes otherwise: tests/management/test_mcp_stdio.py."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        input=b"hello",
        stdout=subprocess.PIPE,
        timeout=LONG_PATIENCE,
        check=True,
    )

    assert done.stdout == b"(b'', True)"

"""Lines of two file descriptors, each in a thread of its own.

A pipe of Windows cannot be waited for, a file of POSIX cannot either, and a pipe whose reader does
not read must not hold up the event loop.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

from mcp_django.protocol.render import cancelled, notification
from mcp_django.transports.call import RunningCall
from mcp_django.transports.event_stream import EventStream
from mcp_django.transports.exchanges import Reply, StreamSpec
from mcp_django.transports.notifier import Reader
from mcp_django.transports.responses import ResponseStream

CHUNK = 64 * 1024
#: Bytes that a waiting line counts for in addition to its own: a million may be empty.
OVERHEAD = 256
#: Bytes that wait for a slow reader before writers have to wait as well.
ROOM = 1024 * 1024

#: None: a line that was too long to be kept.
Line: TypeAlias = bytes | None


class LineReader:
    """Start it on the loop that asks for the lines."""

    def __init__(self, fd: int, *, limit: int, ended: Callable[[], None]) -> None:
        """`limit`: bytes of the longest line, and of lines that are read before anybody asks.

        `ended` is called on the loop at the end of input.
        """
        self.fd = fd
        self.limit = limit
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[Line | EOFError] = asyncio.Queue()
        self._changed = threading.Condition()
        self._held = 0
        self.has_ended = False
        self._thread = threading.Thread(target=self._run, name="mcp-stdin", daemon=True)
        self._thread.start()

    async def line(self) -> Line:
        """The next line, without its end. Raises EOFError after the last one."""
        line = await self._lines.get()
        if isinstance(line, EOFError):
            raise line
        with self._changed:
            self._held -= weight(line)
            self._changed.notify()
        return line

    # In the thread

    def _run(self) -> None:
        # A terminal that went away is an end as well.
        with suppress(OSError):
            for line in self._split():
                with self._changed:
                    self._changed.wait_for(lambda: self._held < self.limit)
                    self._held += weight(line)
                tell(self._loop, partial(self._lines.put_nowait, line))
        # Whoever reads the end finds it said.
        self.has_ended = True
        tell(self._loop, partial(self._lines.put_nowait, EOFError()))
        tell(self._loop, self._ended)

    def _split(self) -> Iterator[Line]:
        with open(self.fd, "rb", buffering=CHUNK, closefd=False) as file:
            while line := file.readline(self.limit + 1):
                is_whole = len(line) <= self.limit or line.endswith(b"\n")
                yield line.removesuffix(b"\n") if is_whole else None
                # The rest of a line that is too long is not kept.
                while not (is_whole or not line or line.endswith(b"\n")):
                    line = file.readline(CHUNK)


def weight(line: Line) -> int:
    return OVERHEAD + len(line or b"")


class LineWriter:
    """Everything is written in order, line by line, and never two lines at once."""

    def __init__(self, fd: int, *, closed: Callable[[], None]) -> None:
        """`closed` is called on the loop, once nobody reads any more."""
        self.fd = fd
        self._loop = asyncio.get_running_loop()
        self._closed = closed
        #: Lines for the thread. None: write nothing more.
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        #: Bytes that are not written yet.
        self._size = 0
        self._is_over = False
        self._room = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="mcp-stdout", daemon=True)
        self._thread.start()

    async def write(self, lines: bytes) -> None:
        """Queue whole lines, after waiting for room. A closed output drops them."""
        await self.until_room()
        if lines and not self._is_over:
            self._size += len(lines)
            self._waiting.put(lines)

    async def until_room(self) -> None:
        await self._until_below(ROOM)

    async def flush(self, seconds: float) -> bool:
        """Whether all was written within that time."""
        try:
            async with asyncio.timeout(seconds):
                await self._until_below(1)
        except TimeoutError:
            return False
        return True

    async def _until_below(self, size: int) -> None:
        while self._size >= size and not self._is_over:
            self._room.clear()
            await self._room.wait()

    def close(self) -> None:
        """Write nothing more."""
        self._is_over = True
        self._room.set()
        self._waiting.put(None)

    def _wrote(self, size: int) -> None:
        self._size -= size
        self._room.set()

    # In the thread

    def _run(self) -> None:
        while (lines := self._waiting.get()) is not None and not self._is_over:
            try:
                left = memoryview(lines)
                while left:
                    left = left[os.write(self.fd, left) :]
            except OSError:
                self._is_over = True
                tell(self._loop, self._closed)
            tell(self._loop, partial(self._wrote, len(lines)))


def tell(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call it on the loop, unless the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


def lines_of(messages: Sequence[bytes]) -> bytes:
    """Messages have no line break: JSON writes one inside of a text as two characters."""
    return b"".join(message + b"\n" for message in messages)


# Calls and subscriptions whose messages are lines of one output.


class LineCall(RunningCall):
    """A call that nobody resumes: there is no stream that could be lost alone."""

    async def tell(self, writer: LineWriter) -> Reply | None:
        """Write what comes before the answer, and return that. None: the client took it back."""

        async def say(messages: Sequence[bytes]) -> None:
            await writer.write(lines_of(messages))

        try:
            await self.pass_on(say)
            if not self.is_cancelled:
                return self.result()
            # A person may still look at what the call asked, and that is over, too.
            await asyncio.wait({self._work})
            await self.pass_on(say)
            return None
        finally:
            self.leave()

    def cancel(self) -> None:
        super().cancel()
        # Also where the answer is ready and waits to be written.
        self.is_cancelled = True
        # What it has said until now is not wanted any more.
        self.output.take(self.revision)


class LineResponse(ResponseStream):
    async def open(self) -> None:
        """Nothing comes before the first message."""

    async def keep_alive(self) -> None:
        """A pipe needs none."""


class LineStream(EventStream):
    """A subscription, or the standalone stream of a legacy session."""

    def __init__(
        self, spec: StreamSpec, writer: LineWriter, *, source: Reader, opened: Callable[[], object]
    ) -> None:
        """`opened` is called once the stream gets every change."""
        if spec.request_id is not None:
            # 2026-07-28 wants the answer of a subscription that the server ends in one chapter,
            # and notifications/cancelled in another. Clients ignore the second of the two.
            farewell = cancelled(spec.request_id, reason="The server ended the subscription.")
            spec = replace(spec, last=(*spec.last, notification(farewell, spec.revision)))

        async def send(event: dict[str, Any]) -> None:
            await writer.write(event.get("body", b""))

        super().__init__(spec, LineResponse(send), source=source)
        self._opened_to = opened

    async def _greet(self) -> None:
        await super()._greet()
        self._opened_to()

    async def reload(self) -> None:
        """Return when it follows what its session subscribes to now."""
        await self._reload(since=self.hub.loop.time())

    def leave(self) -> None:
        """The client takes it back: from here on nothing is written."""
        self.response.has_ended = True
        self.end()

    def _frame(self, message: bytes) -> bytes:
        return lines_of([message])

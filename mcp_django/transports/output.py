"""What a call says before its answer, from whatever thread, in the order in which it was said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

from mcp_django.protocol.jsonrpc import Notification
from mcp_django.protocol.render import log_message, notification
from mcp_django.protocol.revisions import Revision

#: Log messages of one call in a second.
MOST_LINES = 20
#: Seconds between two values of progress, each of which is kept for a client that comes back.
PACE = 0.02

Clock = Callable[[], float]


class Waker:
    """Wakes a task that waits for something. Not part of what it waits for, which would be a cycle
    of references and leave each call to the garbage collector.
    """

    __slots__ = ("_event", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def wake(self) -> None:
        """On the loop."""
        self._event.set()

    def wake_soon(self) -> None:
        """From any thread."""
        # Without its loop nobody is left who reads.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.wake)

    def wake_in(self, seconds: float) -> asyncio.TimerHandle:
        """On the loop, later."""
        return self._loop.call_later(seconds, self.wake)

    async def wait(self, seconds: float | None = None) -> bool:
        """Until something happened. False: nothing did in that time."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Output:
    """Of several values of progress the last and highest is sent. Of too many log messages some
    are left out, and one more counts them. Everything else is sent.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        *,
        wake_in: Callable[[float], object],
        clock: Clock = time.monotonic,
    ) -> None:
        """`wake` is called from any thread, and `wake_in` by the reader."""
        self._wake = wake
        self._wake_in = wake_in
        self._clock = clock
        self._paced_until = float("-inf")
        self._lock = Lock()
        self._unsent: dict[Any, Notification | bytes] = {}
        self._count = 0
        self._highest: dict[Any, float] = {}
        self._lines = Lines(clock)
        self._is_closed = False
        #: Set where the call wants its stream to be closed: milliseconds until the client comes.
        self.released: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self._unsent

    def add(self, message: Notification) -> None:
        """Progress or a log message: a call has nothing else to say."""
        token = message.params.get("progressToken")
        with self._lock:
            if self._is_closed:
                return
            if token is None:
                self._keep(*self._lines.take(message))
            elif message.params["progress"] > self._highest.get(token, float("-inf")):
                self._highest[token] = message.params["progress"]
                # Not where the earlier value stood: what was said between them came before.
                self._unsent.pop(("progress", token), None)
                self._unsent["progress", token] = message
        self._wake()

    def _keep(self, *messages: Notification | bytes) -> None:
        for message in messages:
            self._count += 1
            self._unsent[self._count] = message

    def say(self, message: bytes) -> None:
        """A message of the transport itself, which is encoded already."""
        with self._lock:
            self._keep(message)
        self._wake()

    def close(self) -> None:
        """The answer is there. What code says that runs on is heard by nobody."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._keep(*self._lines.left_out())

    def release(self, milliseconds: int) -> None:
        self.released = milliseconds
        self._wake()

    def take(self, revision: Revision) -> list[bytes]:
        """The messages that were not taken yet. Progress alone has to wait for its pace."""
        if not self._unsent:
            return []
        with self._lock:
            if self._has_to_wait():
                self._wake_in(PACE)
                return []
            unsent, self._unsent = self._unsent, {}
            self._paced_until = self._clock() + PACE
        return [
            message if isinstance(message, bytes) else notification(message, revision)
            for message in unsent.values()
        ]

    def _has_to_wait(self) -> bool:
        if self._is_closed or self._clock() >= self._paced_until:
            return False
        # Numbers are the keys of all else, which keeps its order.
        return all(isinstance(key, tuple) for key in self._unsent)


class Lines:
    """The log messages of one call: so many a second, and one that counts the others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends = float("-inf")
        self._room = 0
        self._dropped = 0
        self._level = ""

    def take(self, message: Notification) -> list[Notification]:
        """What of it may be sent now."""
        lines: list[Notification] = []
        now = self._clock()
        if now >= self._ends:
            lines = self.left_out()
            self._ends, self._room = now + 1, MOST_LINES - len(lines)
        if not self._room:
            self._dropped += 1
            self._level = message.params["level"]
            return lines
        self._room -= 1
        return [*lines, message]

    def left_out(self) -> list[Notification]:
        if not self._dropped:
            return []
        said = f"{self._dropped} messages were left out: a call sends {MOST_LINES} in a second."
        self._dropped = 0
        # The level of one that was wanted is wanted.
        return [log_message(self._level, said)]

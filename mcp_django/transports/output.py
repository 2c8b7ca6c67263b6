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
        clock: Callable[[], float] = time.monotonic,
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
        #: Until when log messages are counted, and how many more of them are sent by then.
        self._second_ends = float("-inf")
        self._room = 0
        #: Log messages that were left out, and the level of the last one.
        self._dropped = 0
        self._level = ""
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
                self._add_line(message)
            elif message.params["progress"] > self._highest.get(token, float("-inf")):
                self._highest[token] = message.params["progress"]
                # Not where the earlier value stood: what was said between them came before.
                self._unsent.pop(("progress", token), None)
                self._unsent["progress", token] = message
        self._wake()

    def _keep(self, message: Notification | bytes) -> None:
        self._count += 1
        self._unsent[self._count] = message

    def _add_line(self, message: Notification) -> None:
        now = self._clock()
        if now >= self._second_ends:
            self._second_ends, self._room = now + 1, MOST_LINES
            self._tell_left_out()
        if self._room:
            self._room -= 1
            self._keep(message)
        else:
            self._dropped += 1
            self._level = message.params["level"]

    def _tell_left_out(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            text = f"{dropped} messages were left out: a call sends {MOST_LINES} in a second."
            self._room -= 1
            # The level of one that was wanted is wanted.
            self._keep(log_message(self._level, text))

    def say(self, message: bytes) -> None:
        """A message of the transport itself, which is encoded already."""
        with self._lock:
            self._keep(message)
        self._wake()

    def close(self) -> None:
        """The answer is there. What code says that runs on is heard by nobody."""
        with self._lock:
            self._is_closed = True
            self._tell_left_out()

    def release(self, milliseconds: int) -> None:
        self.released = milliseconds
        self._wake()

    def take(self, revision: Revision) -> list[bytes]:
        """The messages that were not taken yet. Progress alone has to wait for its pace."""
        if not self._unsent:
            return []
        with self._lock:
            # Numbers are the keys of all else, which keeps its order.
            is_progress = all(isinstance(key, tuple) for key in self._unsent)
            if is_progress and not self._is_closed and self._clock() < self._paced_until:
                self._wake_in(PACE)
                return []
            unsent, self._unsent = self._unsent, {}
            self._paced_until = self._clock() + PACE
        return [
            message if isinstance(message, bytes) else notification(message, revision)
            for message in unsent.values()
        ]

"""Records of calls on their way to the table: a bounded queue and one thread.

A call only puts its end into the queue. The thread makes entries of what has gathered and writes
them, many rows at a time, over a connection of its own: so a record stays when the tool's
transaction rolls back.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event
from typing import TypeAlias

from django.db import Error, InterfaceError, OperationalError, connections

from mcp_django.audit.ends import End
from mcp_django.audit.rows import write_ends

logger = logging.getLogger("mcp_django")

#: Rows in one statement.
BATCH = 200
#: Entries that may wait. More are lost, newest first: what led up to a flood is worth more.
ROOM = 10_000
#: Seconds that an entry waits for others.
GATHER = 0.5
#: Seconds without an entry after which the connection is closed.
QUIET = 10.0
#: Seconds between attempts while the database is locked or gone. The last one repeats.
PAUSES = (0.1, 0.5, 2.0, 5.0)
#: Seconds that a call waits for its record at most.
PATIENCE = 2.0
#: Seconds for what is left when the process ends.
FAREWELL = 5.0

#: What becomes an entry, and what to set once that is written.
Waiting: TypeAlias = tuple[End, Event | None]


class Writer:
    """Any thread may put, event loops as well. The thread starts at the first entry."""

    def __init__(
        self,
        *,
        write: Callable[[Sequence[End]], None] = write_ends,
        room: int = ROOM,
        gather: float = GATHER,
        quiet: float = QUIET,
        pauses: Sequence[float] = PAUSES,
        patience: float = PATIENCE,
    ) -> None:
        self.write = write
        self.room = room
        self.gather = gather
        self.quiet = quiet
        self.pauses = pauses
        self.patience = patience
        self.forget()

    def forget(self) -> None:
        """Start anew. After a fork the entries are the parent's, and its thread is not here."""
        self._waiting: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stop = Event()
        self._is_urgent = False
        #: As many as have to wait before who puts one looks after the thread: it may be missing,
        #: asleep, or too slow for what comes. Set under the lock, read without.
        self._enough = 0
        #: While the database makes trouble no call waits for it.
        self._is_troubled = False
        self._told = 0
        #: Entries that were never written, since this process started.
        self.lost = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def put(self, end: End, *, wait: bool = False) -> None:
        """Take an end; with `wait`, return when it is written, if that is soon. Never raises."""
        if wait and not self._is_troubled and may_wait():
            self._put_and_wait(end)
            return
        # In this order. Whoever lowers the number afterwards looks into the queue afterwards, too.
        self._waiting.append((end, None))
        if len(self._waiting) >= self._enough:
            with self._changed:
                self._look_after()

    def _put_and_wait(self, end: End) -> None:
        written = Event()
        with self._changed:
            if len(self._waiting) >= self.room:
                self.lost += 1
                return
            self._waiting.append((end, written))
            self._is_urgent = True
            if not self._look_after():
                return
        if not written.wait(self.patience):
            self._is_troubled = True

    def _look_after(self) -> bool:
        """Lose what has no room, and see to it that the thread runs. Whether it does."""
        is_running = self._is_running()
        room = self.room if is_running else len(self._waiting) - 1
        while len(self._waiting) > room:
            self._waiting.pop()
            self.lost += 1
        self._enough = self.room + 1 if is_running else 0
        self._changed.notify()
        return is_running

    def close(self, seconds: float = FAREWELL) -> None:
        """Write what is left and end the thread. The next entry starts another."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._enough = 0
            self._stop.set()
            self._changed.notify_all()
        if thread is None:
            return
        thread.join(seconds)
        if thread.is_alive():
            with self._changed:
                self.lost += len(self._waiting)
                self._waiting.clear()
        self._tell()

    def _is_running(self) -> bool:
        is_ending = self._stop.is_set()
        if self._thread is not None and self._thread.is_alive() and not is_ending:
            return True
        self._stop = Event()
        thread = threading.Thread(
            target=self._run, args=(self._stop,), name="mcp-calls", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # Late at the end of a process there are no new threads.
            return False
        self._thread = thread
        atexit.unregister(self.close)
        atexit.register(self.close)
        return True

    # In the thread.

    def _run(self, stop: Event) -> None:
        quiet: float | None = self.quiet
        try:
            while (batch := self._take(quiet, stop)) is not None:
                if batch:
                    self._write(batch, stop)
                else:
                    close_connections()
                quiet = self.quiet if batch else None
            close_connections()
        finally:
            with self._changed:
                # Whatever ended it: who puts the next one starts another.
                stop.set()
                if stop is self._stop:
                    self._enough = 0

    def _take(self, quiet: float | None, stop: Event) -> list[Waiting] | None:
        """What to write next; nothing after a quiet spell, None at the end."""

        def is_due() -> bool:
            return self._is_urgent or len(self._waiting) >= BATCH or stop.is_set()

        def expect(enough: int) -> None:
            # Another thread may have taken over from one that is to stop.
            self._enough = 0 if stop.is_set() else min(enough, self.room + 1)

        with self._changed:
            expect(1)
            if not self._changed.wait_for(lambda: self._waiting or stop.is_set(), quiet):
                return []
            expect(BATCH)
            self._changed.wait_for(is_due, self.gather)
            expect(self.room + 1)
            if not self._waiting:
                return None
            self._is_urgent = len(self._waiting) > BATCH and self._is_urgent
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _write(self, batch: list[Waiting], stop: Event) -> None:
        attempts = 0
        while True:
            try:
                close_obsolete()
                self.write([end for end, _ in batch])
                self._is_troubled = False
                break
            except (OperationalError, InterfaceError) as error:
                if self._is_over(error, attempts, stop):
                    self.lost += len(batch)
                    break
            except Exception as error:
                self._write_singly(batch, error, stop)
                break
            attempts += 1
        for _, written in batch:
            if written is not None:
                written.set()
        self._tell()

    def _is_over(self, error: Error, attempts: int, stop: Event) -> bool:
        """Wait for another attempt. Whether there is none."""
        if not attempts:
            logger.warning("Records of calls have to wait for the database: %s", error)
        self._is_troubled = True
        close_connections()
        self._tell()
        with self._changed:
            pause = self.pauses[min(attempts, len(self.pauses) - 1)]
            is_stopped = self._changed.wait_for(stop.is_set, pause)
        # At the end there is one more: the connection may just have been an old one.
        return is_stopped and attempts > 0

    def _write_singly(self, batch: list[Waiting], error: Exception, stop: Event) -> None:
        """One that the database refuses must not take the others with it."""
        if len(batch) == 1:
            self.lost += 1
            logger.error("A record of a call cannot be written: %s", error)
            return
        for one in batch:
            self._write([one], stop)

    def _tell(self) -> None:
        lost, self._told = self.lost - self._told, self.lost
        if lost:
            logger.error("%d records of calls were lost, %d in all.", lost, self.lost)


def may_wait() -> bool:
    """Whether this thread may wait for the writer: not one that may hold what that waits for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return not any(one.in_atomic_block for one in connections.all(initialized_only=True))
    return False


def close_obsolete() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


def close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # One that cannot even be closed is dropped by Django all the same.
        with suppress(Error):
            connection.close()

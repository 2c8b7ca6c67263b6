"""Thread lanes: where everything runs that may touch the database.

Two lanes, so that slow tools of the project never hold up a quick read. Threads are ours and keep
their connections, unlike asgiref's one global thread. A thread cannot be stopped: one that
outlives its limit is counted, and a lane that is half full of them takes no more work.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.exposure.tools import Lane

T = TypeVar("T")


class Executor(Protocol):
    async def run(
        self, job: Callable[[], T], *, seconds: float, cancelled: threading.Event
    ) -> T: ...


class ThreadLane:
    """A bounded pool with a bounded queue."""

    def __init__(self, name: str, *, size: int, max_waiting: int) -> None:
        self.name = name
        self.size = size
        self.max_waiting = max_waiting
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0
        self._waiting = 0
        self._zombies = 0

    @property
    def zombies(self) -> int:
        """Threads that still run a call which nobody waits for any more."""
        return self._zombies

    async def run(self, job: Callable[[], T], *, seconds: float, cancelled: threading.Event) -> T:
        """Run `job` in a thread of this lane.

        Raises Busy when the queue is full or too many threads are lost, TimeoutError when the job
        has *run* for `seconds` (`cancelled` is set then), Cancelled when it was cancelled
        before it began, and whatever the job raises.
        """
        loop = asyncio.get_running_loop()
        run = Run(job, loop=loop, cancelled=cancelled, done=self._done)
        with self._lock:
            if self._waiting >= self.max_waiting or self._zombies * 2 >= max(self.size, 2):
                raise Busy
            self._waiting += 1
        self._threads().submit(contextvars.copy_context().run, run, self._begin)
        timer = loop.call_later(seconds, run.look, seconds, self._lost)
        try:
            return await run.future  # type: ignore[no-any-return]  # a future of T
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finally:
            timer.cancel()

    def _threads(self) -> ThreadPoolExecutor:
        # Threads do not survive a fork, so a child that inherits a pool starts its own.
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pool = ThreadPoolExecutor(
                    max_workers=self.size, thread_name_prefix=f"mcp-{self.name}"
                )
                self._pid = os.getpid()
            return self._pool

    def _begin(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _lost(self) -> None:
        with self._lock:
            self._zombies += 1

    def _done(self, was_lost: bool) -> None:  # noqa: FBT001  a callback
        if was_lost:
            with self._lock:
                self._zombies -= 1

    def close(self) -> None:
        """End the threads and their connections. The next job starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            for _ in range(self.size):
                pool.submit(connections.close_all)
            pool.shutdown(wait=True)


class Run:
    """One job in a thread, and the future that the loop waits on."""

    def __init__(
        self,
        job: Callable[[], Any],
        *,
        loop: asyncio.AbstractEventLoop,
        cancelled: threading.Event,
        done: Callable[[bool], None],
    ) -> None:
        self.job = job
        self.loop = loop
        self.cancelled = cancelled
        self.future: asyncio.Future[Any] = loop.create_future()
        self.started: float | None = None
        self.ended = False
        self.lost = False
        self._done = done
        self._lock = threading.Lock()

    def __call__(self, begin: Callable[[], None]) -> None:
        """In the thread."""
        begin()
        self.started = time.monotonic()
        result: Any = None
        error: BaseException | None = None
        try:
            if self.cancelled.is_set():
                raise Cancelled
            close_old_connections()
            result = self.job()
        except BaseException as raised:  # handed to whoever waits
            error = raised
        finally:
            close_old_connections()
            with self._lock:
                self.ended = True
                was_lost = self.lost
            self._done(was_lost)
        try:
            self.loop.call_soon_threadsafe(self.settle, result, error)
        except RuntimeError:
            return  # the loop is gone, and with it everybody who waited

    def settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def look(self, seconds: float, lost: Callable[[], None]) -> None:
        """On the loop, when the time may be over. Waiting for a thread is not running."""
        if self.future.done():
            return
        ran = 0.0 if self.started is None else time.monotonic() - self.started
        if ran < seconds:
            self.loop.call_later(max(seconds - ran, 0.01), self.look, seconds, lost)
            return
        with self._lock:
            if self.ended:
                return
            self.lost = True
        lost()
        self.cancelled.set()
        self.future.set_exception(TimeoutError())


def close_old_connections() -> None:
    for connection in connections.all(initialized_only=True):
        connection.close_if_unusable_or_obsolete()


class InlineLane:
    """Runs jobs in the thread that called `async_to_sync`: a test's thread and its transaction."""

    async def run(self, job: Callable[[], T], *, seconds: float, cancelled: threading.Event) -> T:
        return await sync_to_async(job, thread_sensitive=True)()


class Lanes:
    """The lanes of this process. Made at first need, never while Django starts."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, Executor] = {}
        self._lock = threading.Lock()

    def __getitem__(self, lane: Lane) -> Executor:
        found = self._lanes.get(lane)
        if found is None:
            with self._lock:
                found = self._lanes.setdefault(lane, make_lane(lane))
        return found

    @contextmanager
    def using(self, executor: Executor) -> Iterator[None]:
        """Run everything on `executor` meanwhile, for tests."""
        with self._lock:
            kept, self._lanes = self._lanes, dict.fromkeys(Lane, executor)
        try:
            yield
        finally:
            self._lanes = kept

    def close(self) -> None:
        with self._lock:
            lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            if isinstance(lane, ThreadLane):
                lane.close()


def make_lane(lane: Lane) -> ThreadLane:
    config = get_config()
    size = config.work_threads if lane is Lane.WORK else query_threads()
    return ThreadLane(lane.value, size=size, max_waiting=config.max_waiting)


def query_threads() -> int:
    config = get_config()
    if config.query_threads is not None:
        return config.query_threads
    # More threads make SQLite slower: sqlite3 gives the GIL away for each row.
    is_sqlite = any(connections[alias].vendor == "sqlite" for alias in connections)
    return 1 if is_sqlite else 4


lanes = Lanes()

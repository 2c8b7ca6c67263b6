"""One lane of threads, and what runs in it.

Threads are ours and keep their connections, unlike asgiref's one global thread. A thread cannot
be stopped: one that outlives its limit is counted, and a lane that is half full of them takes no
more work.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from asgiref import sync
from django.db import Error, connections

from mcp_django.exceptions import Busy, Cancelled

T = TypeVar("T")

#: A copied context is not enough for asgiref's `Local`, which holds Django's language, time zone
#: and script prefix: it also asks whose thread this is.
take_over: Callable[[contextvars.Context], Any] = getattr(sync, "_restore_context", bool)


class OutOfTime(Exception):
    """A job ran for longer than it may. Not TimeoutError, which a job may raise by itself."""


class ThreadLane:
    """A bounded pool with a bounded queue."""

    def __init__(self, name: str, *, size: int, max_waiting: int) -> None:
        self.name = name
        self.size = size
        self.max_waiting = max_waiting
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._zombies = 0

    @property
    def waiting(self) -> int:
        """Jobs that no thread has begun."""
        return self._waiting

    @property
    def zombies(self) -> int:
        """Threads that run a job whose time is over."""
        return self._zombies

    def start(
        self,
        job: Callable[[], T],
        *,
        seconds: float,
        cancelled: threading.Event,
        is_owed: bool = False,
    ) -> asyncio.Future[T]:
        """Run `job` in a thread of this lane, and return the future of what it returns or raises.

        The future fails with OutOfTime when the job has *run* for `seconds`, and with Cancelled
        when `cancelled` was set before it began. Cancelling the future sets `cancelled`.
        Raises Busy when the queue is full or too many threads are lost, except for a job that is
        owed: the end of a call whose effects are there.
        """
        run = Run(job, lane=self, seconds=seconds, cancelled=cancelled)
        with self._lock:
            if not is_owed and self._is_full():
                raise Busy
            self._waiting += 1
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.size, f"mcp-{self.name}")
            place = self._pool.submit(contextvars.copy_context().run, run.work)
        run.watch(place)
        return run.future

    def _is_full(self) -> bool:
        return self._waiting >= self.max_waiting or self._zombies * 2 >= max(self.size, 2)

    # Told by runs, from any thread.

    def leave_queue(self) -> None:
        with self._lock:
            self._waiting -= 1

    def lose(self, run: Run) -> bool:
        """Count the thread of a run as lost, unless the run has ended meanwhile."""
        with self._lock:
            if not run.has_ended:
                run.is_lost = True
                self._zombies += 1
            return run.is_lost

    def end(self, run: Run) -> None:
        with self._lock:
            run.has_ended = True
            if run.is_lost:
                self._zombies -= 1

    def close(self) -> None:
        """End the threads and their connections. The next job starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            # Each thread takes one, since none goes on before all have.
            together = threading.Barrier(self.size)
            for _ in range(self.size):
                pool.submit(close_together, together)
            pool.shutdown(wait=True)


class Run:
    """One job in a thread, and the future that the loop waits on."""

    def __init__(
        self,
        job: Callable[[], Any],
        *,
        lane: ThreadLane,
        seconds: float,
        cancelled: threading.Event,
    ) -> None:
        self.job = job
        self.lane = lane
        self.seconds = seconds
        self.cancelled = cancelled
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.started: float | None = None
        self.has_ended = False
        self.is_lost = False

    # In the thread.

    def work(self) -> None:
        self.started = time.monotonic()
        self.lane.leave_queue()
        result: Any = None
        error: Exception | None = None
        try:
            take_over(contextvars.copy_context())
            if self.cancelled.is_set():
                raise Cancelled
            result = with_fresh_connections(self.job)
        except BaseException as raised:  # handed to whoever waits
            error = as_exception(raised)
        self.lane.end(self)
        # Without its loop nobody is left who waits.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._settle, result, error)

    # On the loop.

    def watch(self, place: Future[Any]) -> None:
        self._place = place
        self._timer = self.loop.call_later(self.seconds, self._look)
        self.future.add_done_callback(self._answered)

    def _settle(self, result: Any, error: Exception | None) -> None:
        self._timer.cancel()
        if self.future.done():
            discard(result)
        elif error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def _answered(self, future: asyncio.Future[Any]) -> None:
        if not future.cancelled():
            return
        self.cancelled.set()
        if self._place.cancel():
            self._timer.cancel()
            self.lane.leave_queue()

    def _look(self) -> None:
        """When the time may be over. Waiting for a thread is not running."""
        ran = 0.0 if self.started is None else time.monotonic() - self.started
        if ran < self.seconds:
            self._timer = self.loop.call_later(max(self.seconds - ran, 0.01), self._look)
        elif self.lane.lose(self):
            self.cancelled.set()
            if not self.future.done():
                self.future.set_exception(OutOfTime())


def as_exception(raised: BaseException) -> Exception:
    """What a future may carry: StopIteration it refuses, SystemExit would end the server."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    error = RuntimeError(f"{type(raised).__name__} instead of an answer.")
    error.__cause__ = raised
    return error


def discard(result: Any) -> None:
    """What holds a coroutine has `close`: a coroutine that nobody awaits complains otherwise."""
    getattr(result, "close", bool)()


def with_fresh_connections(job: Callable[[], T]) -> T:
    close_old_connections()
    try:
        return job()
    finally:
        close_old_connections()


def close_old_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # One that cannot even be closed is dropped by Django all the same.
        with suppress(Error):
            connection.close_if_unusable_or_obsolete()


def close_together(together: threading.Barrier) -> None:
    connections.close_all()
    together.wait(timeout=10)

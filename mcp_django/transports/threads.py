"""The lanes of this process: where everything runs that may touch the database.

There are three, so that neither slow tools of the project nor a write to the store that waits for
one of them delays a quick read.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from asgiref import sync
from asgiref.sync import sync_to_async
from django.db import connections

from mcp_django.auth.authenticate import ADDRESS
from mcp_django.conf import get_config
from mcp_django.connections import keep_connections, refresh_connections, release_connections
from mcp_django.exceptions import Busy, Cancelled
from mcp_django.exposure.primitives import BUILT_IN, WRITES, Lane, code_uri
from mcp_django.transports.exchanges import Exchange

# One lane of threads, and what runs in it.
#
# Threads are ours and keep their connections, unlike asgiref's one global thread. A thread
# cannot be stopped: one that outlives its limit is counted, and a lane that is half full of them
# takes no more work.
#
# Callers take turns. A caller with a hundred waiting jobs delays the job of another caller by
# one of its own, not by a hundred.
#
# Threads that read SQLite at the same time fight for the interpreter's lock, which sqlite3 gives
# away for each row. So functions of the site run one at a time there. One that takes long gives up
# its turn, and the others run next to it.

T = TypeVar("T")

#: A copied context is not enough for asgiref's `Local`, which holds Django's language, time zone
#: and script prefix: it also asks whose thread this is.
take_over: Callable[[contextvars.Context], Any] = getattr(sync, "_restore_context", bool)


class OutOfTime(Exception):
    """A job ran for longer than it may. Not TimeoutError, which a job may raise by itself."""


def share_of(most: int) -> int:
    """How much of a queue for `most` waiting jobs a single caller may fill."""
    return max(1, most // 4)


#: Seconds that a job may hold up others that take turns with it.
LONGEST_TURN = 0.05


class WaitingJobs:
    """Waiting jobs, in a queue for each caller. Needs a lock around it."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Run]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def count(self, caller: str) -> int:
        """The waiting jobs of this caller."""
        return len(self._queues.get(caller, ()))

    def count_strangers(self) -> int:
        """The waiting jobs of those who go by an address."""
        return sum(len(jobs) for name, jobs in self._queues.items() if name.startswith(ADDRESS))

    def add(self, run: Run) -> None:
        self._queues.setdefault(run.caller, deque()).append(run)
        self._size += 1

    def remove(self, run: Run) -> bool:
        """Whether the job was still waiting."""
        queue = self._queues.get(run.caller)
        if queue is None or run not in queue:
            return False
        queue.remove(run)
        self._size -= 1
        if not queue:
            del self._queues[run.caller]
        return True

    def next(self, may_run: Callable[[Run], bool]) -> Run | None:
        """The oldest job of the caller whose turn it is, among those whose oldest job may run."""
        return next((queue[0] for queue in self._queues.values() if may_run(queue[0])), None)

    def take(self, run: Run) -> None:
        """Remove what `next` has returned. Other callers have their turn before this one."""
        self.remove(run)
        if run.caller in self._queues:
            self._queues.move_to_end(run.caller)


class Worker(threading.Thread):
    """A thread of a lane: it runs what it is called for and what waits by then, and is idle."""

    def __init__(self, lane: ThreadLane, name: str) -> None:
        # Python does not wait for it at the end of a process. `lanes.close` does.
        super().__init__(name=name, daemon=True)
        self.lane = lane
        calls: SimpleQueue[Run | None] = SimpleQueue()
        #: Run this job; None: end. Once for each time that the worker is idle.
        self.call = calls.put
        self._next_call = calls.get

    def run(self) -> None:
        keep_connections()
        while (job := self._next_call()) is not None:
            while job is not None:
                job.context.run(job.work)
                job = self.lane.follow(self, job)
        connections.close_all()


class ThreadLane:
    """Some threads and a bounded queue, which callers share."""

    def __init__(
        self, name: str, *, size: int, max_waiting: int, takes_turns: bool = False
    ) -> None:
        """With `takes_turns`, jobs run one at a time, for as long as each is quick."""
        self.name = name
        self.size = size
        self.max_waiting = max_waiting
        self.takes_turns = takes_turns
        self.workers: list[Worker] = []
        self._lock = threading.Lock()
        #: The last one that became idle is called first: its connection is the warmest.
        self._idle: list[Worker] = []
        self._queue = WaitingJobs()
        #: Jobs that run, by caller.
        self._running: Counter[str] = Counter()
        #: The job whose turn it is.
        self._turn: Run | None = None
        #: Threads that run a job whose time is over.
        self.lost_threads = 0

    @property
    def waiting(self) -> int:
        """Jobs that no thread has begun."""
        return len(self._queue)

    def start(
        self,
        job: Callable[[], T],
        *,
        seconds: float,
        cancelled: threading.Event,
        is_owed: bool = False,
        caller: str = "",
    ) -> asyncio.Future[T]:
        """Run `job` in a thread of this lane, and return the future of what it returns or raises.

        The future fails with OutOfTime when the job has *run* for `seconds`, and with Cancelled
        when `cancelled` was set before it began. Cancelling the future sets `cancelled`.
        Raises Busy when the queue is full, when the share of `caller` is, or when too many threads
        are lost, except for a job that is owed: the end of a call whose effects are there.
        No `caller` is the process itself, which has no share.
        """
        run = Run(job, lane=self, seconds=seconds, cancelled=cancelled, caller=caller)
        with self._lock:
            if not is_owed and self._is_full_for(caller):
                raise Busy
            self._queue.add(run)
            self._call_idle()
        run.watch()
        return run.future

    def _is_full_for(self, caller: str) -> bool:
        share = share_of(self.max_waiting)
        most = share if caller else self.max_waiting
        # The rest is for users, however many addresses anonymous callers have.
        of_strangers = max(1, self.max_waiting - share)
        return (
            self.waiting >= self.max_waiting
            or self._queue.count(caller) >= most
            or (caller.startswith(ADDRESS) and self._queue.count_strangers() >= of_strangers)
            or self.lost_threads * 2 >= max(self.size, 2)
        )

    def _may_run(self, run: Run) -> bool:
        """No caller has all threads, where there are several."""
        if self._turn is not None:
            return False
        return not run.caller or self._running[run.caller] < max(1, self.size - 1)

    def _call_idle(self) -> None:
        """Give what may run to workers that are idle or not yet there."""
        while self._idle or len(self.workers) < self.size:
            run = self._queue.next(self._may_run)
            if run is None:
                return
            worker = self._idle.pop() if self._idle else self._hire()
            worker.call(self._begin(run))

    def _hire(self) -> Worker:
        worker = Worker(self, f"mcp-{self.name}_{len(self.workers)}")
        worker.start()
        self.workers.append(worker)
        return worker

    def _begin(self, run: Run) -> Run:
        self._queue.take(run)
        self._running[run.caller] += 1
        if self.takes_turns:
            self._turn = run
        return run

    # Told by workers and runs, from any thread.

    def follow(self, worker: Worker, ended: Run) -> Run | None:
        """What a worker runs next. None: it is idle."""
        with self._lock:
            if self._turn is ended:
                self._turn = None
            run = self._queue.next(self._may_run)
            if run is not None:
                self._begin(run)
            elif worker in self.workers:
                self._idle.append(worker)
            else:
                worker.call(None)
            self._call_idle()
        return run

    def withdraw(self, run: Run) -> bool:
        """Whether the job was still waiting. It never runs then."""
        with self._lock:
            return self._queue.remove(run)

    def hurry(self) -> float:
        """Start others next to a job that takes too long. Returns when to look next."""
        with self._lock:
            slow = self._turn
            ran = 0.0 if slow is None else slow.seconds_run()
            if slow is None or ran < LONGEST_TURN:
                return LONGEST_TURN - ran
            self._turn = None
            self._call_idle()
        return LONGEST_TURN

    def lose(self, run: Run) -> bool:
        """Count the thread of a run as lost, unless the run has ended meanwhile."""
        with self._lock:
            if not run.has_ended:
                run.is_lost = True
                self.lost_threads += 1
            return run.is_lost

    def end(self, run: Run) -> None:
        with self._lock:
            run.has_ended = True
            if run.is_lost:
                self.lost_threads -= 1
            self._running[run.caller] -= 1
            if not self._running[run.caller]:
                del self._running[run.caller]

    def close(self) -> None:
        """End the threads and their connections, after what waits. The next job starts others."""
        while self.workers:
            with self._lock:
                workers, self.workers = self.workers, []
                idle, self._idle = self._idle, []
                for worker in idle:
                    worker.call(None)
            for worker in workers:
                worker.join()


class Run:
    """One job in a thread, and the future that the loop waits on."""

    def __init__(
        self,
        job: Callable[[], Any],
        *,
        lane: ThreadLane,
        seconds: float,
        cancelled: threading.Event,
        caller: str = "",
    ) -> None:
        self.job = job
        self.lane = lane
        self.seconds = seconds
        self.cancelled = cancelled
        self.caller = caller
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.started: float | None = None
        self.has_ended = False
        self.is_lost = False

    # In the thread.

    def work(self) -> None:
        self.started = time.monotonic()
        result: Any = None
        error: Exception | None = None
        try:
            take_over(contextvars.copy_context())
            if self.cancelled.is_set():
                raise Cancelled
            refresh_connections()
            try:
                result = self.job()
            finally:
                release_connections()
        except BaseException as raised:  # handed to whoever waits
            error = as_exception(raised)
        self.lane.end(self)
        # Without its loop nobody is left who waits.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._settle, result, error)

    # On the loop.

    def seconds_run(self) -> float:
        """Waiting for a thread is not running."""
        return 0.0 if self.started is None else time.monotonic() - self.started

    def watch(self) -> None:
        # Soon, where another job may be in the way.
        seconds = min(self.seconds, LONGEST_TURN) if self.lane.takes_turns else self.seconds
        self._timer = self.loop.call_later(seconds, self._look)
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
        if self.lane.withdraw(self):
            self._timer.cancel()

    def _look(self) -> None:
        """When the time may be over, or that of another."""
        ran = self.seconds_run()
        if ran < self.seconds:
            left = max(self.seconds - ran, 0.01)
            if self.lane.takes_turns and self.started is None:
                left = min(left, self.lane.hurry())
            self._timer = self.loop.call_later(left, self._look)
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


# Which threads answer an exchange, by what it asks for.

BUILT_IN_READS = BUILT_IN - WRITES
#: Methods that write to the store, where others may be in the way for a while.
STORED = frozenset(
    {"initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)


def lane_of(exchange: Exchange) -> Lane:
    """Code of the project may be slow. Everything of ours is quick, or is stopped, except what
    a store has to write. Of a long body nobody knows yet what it asks for.
    """
    if exchange.read_body is not None:
        return Lane.WORK
    stored = [call.request.method in STORED for call in exchange.requests]
    opens_http_sse = exchange.verb == "GET" and exchange.session_id is None
    is_stored = all(stored) and (stored or exchange.notices)
    if exchange.verb == "DELETE" or opens_http_sse or is_stored:
        return Lane.STORE
    if any(stored) or exchange.notices:
        return Lane.WORK
    for params in (call.request.params for call in exchange.requests):
        # Nobody has looked at what came yet.
        name, parts = params.get("name"), (params, params.get("arguments"), params.get("ref"))
        if isinstance(name, str) and name not in BUILT_IN_READS:
            return Lane.WORK
        uris = [part["uri"] for part in parts if isinstance(part, dict) and "uri" in part]
        if any(map(code_uri, uris)):
            return Lane.WORK
    return Lane.QUERY


class InlineLane:
    """Runs jobs in the thread that called `async_to_sync`: a test's thread and its transaction."""

    def start(self, job: Callable[[], T], **options: Any) -> asyncio.Future[T]:
        return asyncio.ensure_future(sync_to_async(job, thread_sensitive=True)())

    def close(self) -> None:
        """Nothing of its own runs."""


class Lanes:
    """The lanes of this process. Made at first need, never while Django starts."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start again. Neither threads nor locks survive a fork."""
        self._lanes: dict[Lane, ThreadLane | InlineLane] = {}
        self._lock = threading.Lock()

    def __getitem__(self, lane: Lane) -> ThreadLane | InlineLane:
        existing = self._lanes.get(lane)
        if existing is None:
            with self._lock:
                existing = self._lanes.setdefault(lane, make_lane(lane))
        return existing

    @contextmanager
    def using(self, lane: InlineLane) -> Iterator[None]:
        """Run everything on `lane` meanwhile, for tests."""
        usual, self._lanes = self._lanes, dict.fromkeys(Lane, lane)
        try:
            yield
        finally:
            self._lanes = usual

    def close(self) -> None:
        with self._lock:
            lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            lane.close()


def make_lane(lane: Lane) -> ThreadLane:
    config = get_config()
    is_sqlite = any(connections[alias].vendor == "sqlite" for alias in connections)
    sizes = {
        # More threads make SQLite slower: sqlite3 gives the GIL away for each row.
        Lane.QUERY: config.query_threads or (1 if is_sqlite else 4),
        Lane.WORK: config.work_threads,
        # Only one writes at a time to SQLite.
        Lane.STORE: 1 if is_sqlite else 2,
    }
    return ThreadLane(
        lane.value,
        size=sizes[lane],
        max_waiting=config.max_waiting,
        takes_turns=lane is Lane.WORK and is_sqlite,
    )


lanes = Lanes()
# Before the end of the process closes what the last calls need, such as the writer of records.
# Where Python has no place for that, afterwards.
getattr(threading, "_register_atexit", atexit.register)(lanes.close)
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=lanes.forget)

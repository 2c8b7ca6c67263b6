"""The threads of this process that may touch the database, in three lanes.

So neither slow tools of the project nor a write to the store that waits for one of them delays a
quick read. Within a lane nobody waits for somebody else's query:

- A caller has at most half of the threads, and a quarter of the queue.
- Callers take turns. A hundred waiting jobs of one delay the job of another by one, not by a
  hundred. Callers without a user wait behind the others.
- A caller whose job took long is slow for ten times as long. Slow callers wait behind the others,
  and together they never have the last thread.
- A thread cannot be stopped. One that outlives its limit is counted, and a lane in which they are
  more than half takes no more work.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import enum
import os
import threading
import time
from collections import OrderedDict, deque
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
from mcp_django.exposure.primitives import BUILT_IN, WRITES, code_uri
from mcp_django.transports.exchanges import Exchange

T = TypeVar("T")


class Lane(enum.Enum):
    """Which threads run a call: few and quick, or many and slow."""

    QUERY = "query"
    WORK = "work"
    #: For what sessions and streams keep. On SQLite it waits while a tool of the project writes,
    #: and no call that only reads waits with it.
    STORE = "store"


#: A copied context is not enough for asgiref's `Local`, which holds Django's language, time zone
#: and script prefix: it also asks whose thread this is.
take_over: Callable[[contextvars.Context], Any] = getattr(sync, "_restore_context", bool)

#: Seconds after which a job is slow.
LONGEST_TURN = 0.05
#: Seconds between two looks whether what waits may run.
LONGEST_LOOK = 0.5
#: For so many times the length of a slow job its caller is slow.
SLOW_FOR = 10
#: Slow callers that a lane remembers.
MOST_SLOW = 1_000


class OutOfTime(Exception):
    """A job ran for longer than it may. Not TimeoutError, which a job may raise by itself."""


def share_of(most: int) -> int:
    """Return how much of a queue for `most` waiting jobs a single caller may fill."""
    return max(1, most // 4)


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
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        #: Jobs that threads are to run at once. None: end.
        self._begun: SimpleQueue[Run | None] = SimpleQueue()
        #: By caller. Whose job began last is last.
        self._queues: OrderedDict[str, deque[Run]] = OrderedDict()
        self._running: set[Run] = set()
        #: Soon, where another job may be in the way. Else the caller may be slow no longer.
        self.look_every = LONGEST_TURN if takes_turns else LONGEST_LOOK
        #: By caller, the time until which it is slow.
        self._slow: OrderedDict[str, float] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Jobs that no thread has begun."""
        return sum(map(len, self._queues.values()))

    @property
    def lost_threads(self) -> int:
        """Threads that run a job whose time is over."""
        return sum(run.is_lost for run in self._running)

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
            self._queues.setdefault(caller, deque()).append(run)
            self._start()
        run.watch()
        return run.future

    def _is_full_for(self, caller: str) -> bool:
        share, waiting = share_of(self.max_waiting), self.waiting
        most = share if caller else self.max_waiting
        is_stranger = caller.startswith(ADDRESS)
        return (
            waiting >= self.max_waiting
            or len(self._queues.get(caller, ())) >= most
            # The rest is for users, however many addresses anonymous callers have.
            or (is_stranger and self._waiting_strangers() >= max(1, self.max_waiting - share))
            or self.lost_threads * 2 > self.size
        )

    def _waiting_strangers(self) -> int:
        return sum(len(runs) for name, runs in self._queues.items() if name.startswith(ADDRESS))

    # With the lock

    def _start(self) -> None:
        """Give to threads what may run."""
        while (run := self._take()) is not None:
            # A thread that is idle takes it, and there is one.
            if len(self._running) > len(self._threads):
                name = f"mcp-{self.name}_{len(self._threads)}"
                # Python does not wait for it at the end of a process. `lanes.close` does.
                thread = threading.Thread(
                    target=self._work, args=[self._begun], name=name, daemon=True
                )
                thread.start()
                self._threads.append(thread)
            self._begun.put(run)

    def _take(self) -> Run | None:
        """Take the job that runs next out of its queue. None: nothing may run."""
        now = time.monotonic()
        if not self._queues or not self._has_room(now):
            return None
        callers = sorted(self._queues, key=lambda caller: self._is_behind(caller, now))
        caller = next((caller for caller in callers if self._may_begin(caller, now)), None)
        if caller is None:
            return None
        queue = self._queues[caller]
        run = queue.popleft()
        if queue:
            self._queues.move_to_end(caller)
        else:
            del self._queues[caller]
        self._running.add(run)
        return run

    def _has_room(self, now: float) -> bool:
        if self.takes_turns and not all(run.is_slow(now) for run in self._running):
            return False
        return len(self._running) < self.size

    def _may_begin(self, caller: str, now: float) -> bool:
        own = sum(run.caller == caller for run in self._running)
        # Nor has it the last one with a second job: two callers would have all.
        if caller and (own >= max(1, self.size // 2) or (own and self._is_last())):
            return False
        if not self._is_slow(caller, now):
            return True
        slow = sum(run.is_slow(now) or self._is_slow(run.caller, now) for run in self._running)
        return slow < max(1, self.size - 1)

    def _is_last(self) -> bool:
        return len(self._running) + 1 == self.size

    def _is_behind(self, caller: str, now: float) -> bool:
        # Strangers come from as many addresses as they like, each of which would have its turn.
        return self._is_slow(caller, now) or caller.startswith(ADDRESS)

    def _is_slow(self, caller: str, now: float) -> bool:
        return now < self._slow.get(caller, 0)

    def _end(self, run: Run) -> None:
        self._running.remove(run)
        now = time.monotonic()
        if run.caller and run.is_slow(now):
            until = now + SLOW_FOR * (now - run.started)
            self._slow[run.caller] = max(until, self._slow.pop(run.caller, 0))
            if len(self._slow) > MOST_SLOW:
                self._slow.popitem(last=False)

    # In a thread. A pool of concurrent.futures takes 12 microseconds more for each job, and closes
    # no connection of a thread that ends.

    def _work(self, begun: SimpleQueue[Run | None]) -> None:
        keep_connections()
        while (run := begun.get()) is not None:
            # What a job leaves in its context ends with it.
            outcome = run.context.run(run.work)
            with self._lock:
                self._end(run)
                self._start()
            run.settle_soon(*outcome)
        connections.close_all()

    # From any thread

    def withdraw(self, run: Run) -> bool:
        """Return whether the job was still waiting. It never runs then."""
        with self._lock:
            queue = self._queues.get(run.caller, ())
            if run not in queue:
                return False
            self._queues[run.caller].remove(run)
            if not queue:
                del self._queues[run.caller]
            return True

    def start_waiting(self) -> None:
        """Start what may run by now: time went by."""
        with self._lock:
            self._start()

    def lose(self, run: Run) -> bool:
        """Count the thread of a run as lost. Return whether the run still goes on."""
        with self._lock:
            run.is_lost = run in self._running
            return run.is_lost

    def close(self) -> None:
        """End the threads and their connections, after what waits. The next job starts others."""
        while self._threads:
            with self._lock:
                threads, self._threads = self._threads, []
                # Others that start from here on are not ended.
                begun, self._begun = self._begun, SimpleQueue()
            for _ in threads:
                begun.put(None)
            for thread in threads:
                thread.join()


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
        #: Waiting for a thread is not running.
        self.started = float("inf")
        self.is_lost = False

    def is_slow(self, now: float) -> bool:
        return now - self.started > LONGEST_TURN

    # In the thread

    def work(self) -> tuple[Any, Exception | None]:
        """Return what the job returns, or what it raises."""
        self.started = time.monotonic()
        try:
            take_over(contextvars.copy_context())
            if self.cancelled.is_set():
                raise Cancelled
            refresh_connections()
            try:
                return self.job(), None
            finally:
                release_connections()
        except BaseException as raised:  # handed to whoever waits
            return None, as_exception(raised)

    def settle_soon(self, result: Any, error: Exception | None) -> None:
        # Without its loop nobody is left who waits.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._settle, result, error)

    # On the loop

    def watch(self) -> None:
        self._timer = self.loop.call_later(min(self.seconds, self.lane.look_every), self._look)
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
        ran = max(0.0, time.monotonic() - self.started)
        if ran < self.seconds:
            left = max(self.seconds - ran, 0.01)
            if not ran:
                self.lane.start_waiting()
                left = min(left, self.lane.look_every)
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

#: All but the tools that take their time by design: an export reads thousands of records.
QUICK_TOOLS = BUILT_IN - WRITES - {"export_records"}
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
        if isinstance(name, str) and name not in QUICK_TOOLS:
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
        Lane.QUERY: config.query_threads or (2 if is_sqlite else 4),
        Lane.WORK: config.work_threads,
        Lane.STORE: 2,
    }
    # Threads that read SQLite at the same time fight for the interpreter's lock, which sqlite3
    # gives away for each row, and only one writes.
    return ThreadLane(
        lane.value, size=sizes[lane], max_waiting=config.max_waiting, takes_turns=is_sqlite
    )


lanes = Lanes()
# Before the end of the process closes what the last calls need, such as the writer of records.
# Where Python has no place for that, afterwards.
getattr(threading, "_register_atexit", atexit.register)(lanes.close)
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=lanes.forget)

"""The lanes of this process: where everything runs that may touch the database.

Three lanes, so that slow tools of the project never hold up a quick read, nor does a write to the
store that waits for one of them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from mcp_django.conf import get_config
from mcp_django.exposure.tools import Lane
from mcp_django.transports.threads import ThreadLane

T = TypeVar("T")


class Executor(Protocol):
    def start(
        self,
        job: Callable[[], T],
        *,
        seconds: float,
        cancelled: threading.Event,
        is_owed: bool = False,
    ) -> asyncio.Future[T]: ...

    def close(self) -> None: ...


class InlineLane:
    """Runs jobs in the thread that called `async_to_sync`: a test's thread and its transaction."""

    def start(
        self,
        job: Callable[[], T],
        *,
        seconds: float,
        cancelled: threading.Event,
        is_owed: bool = False,
    ) -> asyncio.Future[T]:
        return asyncio.ensure_future(sync_to_async(job, thread_sensitive=True)())

    def close(self) -> None:
        """Nothing of its own runs."""


class Lanes:
    """The lanes of this process. Made at first need, never while Django starts."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew. Neither threads nor the meaning of a lock survive a fork."""
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
        kept, self._lanes = self._lanes, dict.fromkeys(Lane, executor)
        try:
            yield
        finally:
            self._lanes = kept

    def close(self) -> None:
        with self._lock:
            lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            lane.close()


def make_lane(lane: Lane) -> ThreadLane:
    sizes = {Lane.QUERY: query_threads, Lane.WORK: work_threads, Lane.STORE: store_threads}
    return ThreadLane(lane.value, size=sizes[lane](), max_waiting=get_config().max_waiting)


def query_threads() -> int:
    config = get_config()
    if config.query_threads is not None:
        return config.query_threads
    # More threads make SQLite slower: sqlite3 gives the GIL away for each row.
    return 1 if is_sqlite() else 4


def work_threads() -> int:
    return get_config().work_threads


def store_threads() -> int:
    # Only one writes at a time to SQLite.
    return 1 if is_sqlite() else 2


def is_sqlite() -> bool:
    return any(connections[alias].vendor == "sqlite" for alias in connections)


lanes = Lanes()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=lanes.forget)

"""What the thread of a call has PostgreSQL do, which may be stopped from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from django.db import connections

T = TypeVar("T")

#: Seconds that a server may take to hear that a statement is not wanted any more.
PATIENCE = 2.0


class Statements:
    """Knows the connections of a job for as long as it has them, and not a moment longer: the
    next job of the thread gets the same ones.

    Other databases than PostgreSQL have nothing here but the deadline of each statement.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._connections: tuple[Any, ...] = ()

    def run(self, job: Callable[[], T]) -> T:
        """In the thread: do the job, whose statements may be stopped."""
        found = tuple(own_connections())
        if not found:
            return job()
        self._set(found)
        try:
            return job()
        finally:
            # Waits until nobody is about to stop anything here.
            self._set(())

    def _set(self, found: tuple[Any, ...]) -> None:
        with self._lock:
            self._connections = found

    @property
    def may_run(self) -> bool:
        return bool(self._connections)

    def stop(self) -> None:
        """In another thread: end the statement that runs, if one does. Never raises."""
        with self._lock:
            for wrapper in self._connections:
                raw = wrapper.connection
                # A connection that comes or goes meanwhile runs nothing.
                with suppress(Exception):
                    cancel(raw)


def own_connections() -> Iterator[Any]:
    """Those of this thread, connected or not yet."""
    for alias, settings in connections.settings.items():
        # By their names first: a driver that is not there is nobody's business here.
        if "postg" in settings["ENGINE"]:
            with suppress(Exception):
                yield connections[alias]


def cancel(raw: Any) -> None:
    """As psycopg 3.2, psycopg 3 and psycopg2 have it."""
    if hasattr(raw, "cancel_safe"):
        raw.cancel_safe(timeout=PATIENCE)
    elif raw is not None:
        raw.cancel()

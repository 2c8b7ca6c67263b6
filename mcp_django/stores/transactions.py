"""How writes beside calls get along with the transactions of calls and of the site."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.cache import BaseCache, caches
from django.db import Error, connections, router, transaction
from django.db.models import QuerySet

from mcp_django.conf import get_config

# On SQLite a transaction that has read cannot write any more once somebody else has written: it
# fails at once, however long it might wait. So what this process writes outside of calls waits
# for a moment in which none of them may be between its first read and its first write.
#
# Transactions that begin as IMMEDIATE have the lock before they read, and need none of this.

#: Seconds that a call waits at its beginning for somebody who waits to write, at most.
YIELDS = 0.05
#: Milliseconds that such a writer waits for other processes, while calls wait for it.
BUSY = 50


class Turns:
    """Calls that may write run together; a writer outside of calls runs alone."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start again. Neither calls nor locks survive a fork."""
        self._changed = threading.Condition()
        self._calls = 0
        self._writers = 0
        self._mine = threading.local()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Run a call that may write, or that is in a transaction of the project."""
        if not any(map(is_deferred, connections.settings.values())):
            yield
            return
        self._enter()
        self._mine.is_call = True
        try:
            yield
        finally:
            self._mine.is_call = False
            self._leave()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let writers run while a call waits, and reads and writes nothing."""
        if not self._is_call:
            yield
            return
        self._leave()
        try:
            yield
        finally:
            self._enter()

    @property
    def _is_call(self) -> bool:
        return getattr(self._mine, "is_call", False)

    def _enter(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._writers, YIELDS)
            self._calls += 1

    def _leave(self) -> None:
        with self._changed:
            # Not below: a call that forked was counted before.
            self._calls = max(self._calls - 1, 0)
            self._changed.notify_all()

    def is_free(self, using: str) -> bool:
        """Return whether a write over this connection would wait for no call now."""
        return not (self._calls and is_deferred(connections.settings[using]))

    @contextmanager
    def alone(self, using: str) -> Iterator[None]:
        """Run a write that belongs to no call, over a connection that no call uses meanwhile.

        Waits for calls, but not longer than one may take. Fails where another process has the
        lock: calls must not wait for that.
        """
        if self._is_call or not is_deferred(connections.settings[using]):
            yield
            return
        with self._changed:
            self._writers += 1
            self._changed.wait_for(lambda: not self._calls, get_config().tool_timeout)
        try:
            with impatient(using):
                yield
        finally:
            with self._changed:
                self._writers -= 1
                self._changed.notify_all()


@contextmanager
def impatient(using: str) -> Iterator[None]:
    """Wait for the locks of other processes for a moment only."""
    connection: Any = connections[using]
    connection.ensure_connection()
    database = connection.connection
    [usual] = database.execute("PRAGMA busy_timeout").fetchone()
    database.execute(f"PRAGMA busy_timeout = {BUSY}")
    try:
        yield
    finally:
        if connection.connection is database:
            database.execute(f"PRAGMA busy_timeout = {usual}")


def is_deferred(settings: Any) -> bool:
    """Return whether it is SQLite, with transactions that take the lock when they first write."""
    mode = str(settings["OPTIONS"].get("transaction_mode") or "DEFERRED")
    return settings["ENGINE"].endswith("sqlite3") and mode.upper() == "DEFERRED"


turns = Turns()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=turns.forget)


#: PostgreSQL: deadlock_detected, lock_not_available, serialization_failure.
STATES = frozenset({"40P01", "55P03", "40001"})
#: MySQL and MariaDB: lock wait timeout, deadlock, record changed since it was read.
NUMBERS = frozenset({1205, 1213, 1020})


def is_contention(error: Error) -> bool:
    """Return whether a database says that others write to the same rows."""
    number, text = (error.args[0] if error.args else None), str(error)
    state = getattr(error.__cause__, "sqlstate", None)
    return state in STATES or number in NUMBERS or "is locked" in text


#: Rows that are deleted in one statement, so that nobody waits long for it.
MOST_DELETED = 5_000


def delete_in_chunks(rows: QuerySet[Any]) -> int:
    """Delete the rows, and return how many there were."""
    deleted = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:MOST_DELETED]):
        # A range: no database takes lists of so many everywhere.
        deleted += rows.filter(pk__gte=keys[0], pk__lte=keys[-1]).delete()[0]
    return deleted


# Transactions of whoever calls the store, where its cache is in a database.


def database_of(cache: BaseCache) -> str | None:
    """Return the alias of the database in which the cache is, None for any other cache."""
    model = getattr(cache, "cache_model_class", None)
    return None if model is None else router.db_for_write(model)


def session_database() -> str | None:
    """Return the alias of the database in which sessions are, if they are in one."""
    return database_of(caches[get_config().session_cache])


def is_inside(using: str | None) -> bool:
    """Return whether this thread is in a transaction that a store must not write in. Those around
    each test of Django's TestCase do not count.
    """
    if using is None or not connections[using].in_atomic_block:
        return False
    try:
        # Django's own test of it, which knows its TestCase.
        with transaction.atomic(using=using, durable=True, savepoint=False):
            return False
    except RuntimeError:
        return True


def after_transaction(work: Callable[[], object]) -> None:
    """Have a store written at once, or after the commit where this thread `is_inside`."""
    using = session_database()
    if is_inside(using):
        transaction.on_commit(work, using=using, robust=True)
    else:
        work()

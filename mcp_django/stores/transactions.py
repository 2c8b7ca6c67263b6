"""How the store "database" touches its tables: apart from whatever its callers do.

It writes in transactions of its own, over the connection of its thread, so what it keeps does not
roll back with a tool. A second connection inside of another transaction would not help: on SQLite
it waits for that very transaction. So callers that middleware may have put into a transaction ask
`is_inside`, and write when that is over.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.apps import apps
from django.db import Error, IntegrityError, OperationalError, connections, router, transaction
from django.db.models import Model, QuerySet

from mcp_django.conf import get_config
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError

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
        """Around a call that may write, or that runs in a transaction of the project."""
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
        """Within a call: it waits for a writer, and reads and writes nothing meanwhile."""
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

    @contextmanager
    def alone(self, using: str) -> Iterator[None]:
        """Around a write that belongs to no call, over a connection that no call uses meanwhile.

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
    """Waits for the locks of other processes for a moment only."""
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
    """Whether it is SQLite, with transactions that take the lock when they first write."""
    mode = str(settings["OPTIONS"].get("transaction_mode") or "DEFERRED")
    return settings["ENGINE"].endswith("sqlite3") and mode.upper() == "DEFERRED"


turns = Turns()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=turns.forget)


# What databases say when others write to the same rows, and trying again.

T = TypeVar("T")

#: PostgreSQL: deadlock_detected, lock_not_available, serialization_failure.
STATES = frozenset({"40P01", "55P03", "40001"})
#: MySQL and MariaDB: lock wait timeout, deadlock, record changed since it was read.
NUMBERS = frozenset({1205, 1213, 1020})

#: Seconds for all attempts.
PATIENCE = 5.0
#: Seconds before the second attempt, at most; doubled for each further one.
PAUSE = 0.005
LONGEST_PAUSE = 0.2
#: Who loses a race for a key finds another one free, or the row gone. More is a mistake of ours.
MOST_COLLISIONS = 5


def is_contention(error: Error) -> bool:
    number, text = (error.args[0] if error.args else None), str(error)
    state = getattr(error.__cause__, "sqlstate", None)
    return state in STATES or number in NUMBERS or "is locked" in text


logger = logging.getLogger("mcp_django")

P = ParamSpec("P")
M = TypeVar("M", bound=Model)


def alias() -> str:
    """Of all tables of the store, for reading, too: a replica would know of nothing yet."""
    return router.db_for_write(apps.get_model("mcp_django", "Session"))


def rows(model: type[M]) -> QuerySet[M]:
    return model._default_manager.using(alias())


def written(function: Callable[P, T]) -> Callable[P, T]:
    """Runs in a transaction of its own, and again where other writers were in the way.

    Raises RuntimeError inside of a transaction, as `is_inside` has it, and ProtocolError with
    status 503 where others are in the way for too long.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        end, pause, collisions = time.monotonic() + PATIENCE, PAUSE, 0
        while True:
            try:
                with transaction.atomic(using=alias(), durable=True):
                    limit_waiting(connections[alias()])
                    return function(*args, **kwargs)
            except IntegrityError:
                collisions += 1
                if collisions > MOST_COLLISIONS:
                    raise
            except OperationalError as error:
                if not is_contention(error):
                    raise
                if time.monotonic() >= end:
                    logger.warning("What sessions are to remember cannot be written: %s", error)
                    sentence = "The database is busy. Try again later."
                    raise ProtocolError(INTERNAL_ERROR, sentence, status=503) from error
            time.sleep(random.uniform(0, pause))  # noqa: S311  not a secret
            pause = min(2 * pause, LONGEST_PAUSE)

    return run


def limit_waiting(connection: Any) -> None:
    """Until the transaction ends: PostgreSQL waits for rows that others hold for as long as they
    do. SQLite, MySQL and MariaDB have limits of their own.
    """
    if connection.vendor == "postgresql":
        # The driver's own cursor: this statement is none of the project's queries.
        with connection.wrap_database_errors, connection.connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{PATIENCE:g}s"])


def is_inside() -> bool:
    """Whether this thread is in a transaction that a store must not write in. Those around each
    test of Django's TestCase do not count.
    """
    if not connections[alias()].in_atomic_block:
        return False
    try:
        # Django's own test of it, which knows its TestCase.
        with transaction.atomic(using=alias(), durable=True, savepoint=False):
            return False
    except RuntimeError:
        return True


def after_transaction(work: Callable[[], object]) -> None:
    """Have a store written at once, or after the commit where this thread `is_inside`."""
    if is_inside():
        transaction.on_commit(work, using=alias(), robust=True)
    else:
        work()


def drop(found: QuerySet[Any]) -> int:
    """Delete in one statement: no signals, nothing is loaded, nothing cascades."""
    # It returns None where it sees that nothing can match, as for a list without members.
    return found._raw_delete(found.db) or 0


def put(row: Model, *, fields: list[str]) -> None:
    """Insert a row, or replace these fields of the one with its primary key."""
    using = alias()
    features = connections[using].features
    key = row._meta.pk.name
    type(row)._default_manager.using(using).bulk_create(
        [row],
        update_conflicts=True,
        update_fields=fields,
        # MySQL and MariaDB take any key that collides; these tables have one.
        unique_fields=[key] if features.supports_update_conflicts_with_target else None,
    )

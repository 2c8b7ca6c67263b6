"""A deadline for one statement, on the databases that have one, and what databases refuse."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DataError, InternalError, OperationalError, connections

from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError

TOO_SLOW = "The query took too long. Narrow it: filter on fewer records or ask for fewer fields."
#: MySQL and MariaDB: an emoji compared with a latin1 or utf8mb3 column.
MIXED = frozenset({1267, 1270, 1271, 3988})
#: SQLite: a sum beyond 64 bits, a date that has no place in Python's calendar.
BEYOND = frozenset({"integer overflow", "user-defined function raised exception"})
#: Opcodes of SQLite's virtual machine between two looks at the clock.
STEPS = 20_000


@contextmanager
def limited(using: str) -> Iterator[None]:
    """Run statements under the deadline. QueryError for a slow one and for impossible values.

    In a transaction on PostgreSQL a statement that failed breaks the transaction, as everywhere.
    """
    connection: Any = connections[using]
    connection.ensure_connection()
    start, stop = DEADLINES.get(connection.vendor, (nothing, nothing))
    start(connection, get_config().statement_timeout)
    try:
        yield
    except OperationalError as error:
        if is_timeout(error):
            raise QueryError(TOO_SLOW) from None
        if error.args[:1] and error.args[0] in MIXED:
            raise QueryError("This text has characters that the column cannot hold.") from None
        if error.args[:1] and error.args[0] in BEYOND:
            raise QueryError("The database cannot work with values as large as these.") from None
        raise
    except (DataError, InternalError):
        raise QueryError("The database cannot compare these values.") from None
    finally:
        stop(connection, 0)


def nothing(connection: Any, seconds: float) -> None:
    """No deadline on this database, or nothing to take back."""


def sqlite_start(connection: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    connection.connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS)


def sqlite_stop(connection: Any, seconds: float) -> None:
    connection.connection.set_progress_handler(None, 0)


def session_start(connection: Any, seconds: float) -> None:
    """Set once for each connection: set and reset would be two round trips for each read.

    A transaction takes the setting back when it rolls back. Django then has a new list of commit
    hooks, and the old one kept here says so.
    """
    hooks = connection.run_on_commit if connection.in_atomic_block else None
    raw, known_hooks, known_seconds = getattr(connection, MARK, (None, None, None))
    is_in_force = raw is connection.connection and known_seconds == seconds
    if is_in_force and (known_hooks is None or known_hooks is hooks):
        return
    # The driver's own cursor: this statement is none of the project's queries.
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(*SETTINGS[connection.vendor](connection, seconds))
    setattr(connection, MARK, (connection.connection, hooks, seconds))


#: What a connection wrapper remembers: the driver's connection, the hooks, the seconds.
MARK = "_mcp_django_deadline"


def postgresql_setting(connection: Any, seconds: float) -> tuple[str, list[Any]]:
    return "SELECT set_config('statement_timeout', %s, false)", [str(int(seconds * 1000))]


def mysql_setting(connection: Any, seconds: float) -> tuple[str, list[Any]]:
    if connection.mysql_is_mariadb:
        return "SET SESSION max_statement_time = %s", [seconds]
    return "SET SESSION max_execution_time = %s", [int(seconds * 1000)]


def lift_deadlines() -> None:
    """Give this thread's connections back as they were, where others than we go on using them."""
    for connection in connections.all(initialized_only=True):
        raw, _, _ = getattr(connection, MARK, (None, None, None))
        if raw is None:
            continue
        delattr(connection, MARK)
        # A transaction that failed takes the setting back itself, and lets nothing else run.
        if raw is connection.connection and not connection.needs_rollback:
            with connection.wrap_database_errors, connection.connection.cursor() as cursor:
                cursor.execute(RESETS[connection.vendor](connection))


def postgresql_reset(connection: Any) -> str:
    return "RESET statement_timeout"


def mysql_reset(connection: Any) -> str:
    name = "max_statement_time" if connection.mysql_is_mariadb else "max_execution_time"
    return f"SET SESSION {name} = DEFAULT"


RESETS: dict[str, Callable[[Any], str]] = {
    "postgresql": postgresql_reset,
    "mysql": mysql_reset,
}
Setting = Callable[[Any, float], tuple[str, list[Any]]]
SETTINGS: dict[str, Setting] = {"postgresql": postgresql_setting, "mysql": mysql_setting}
DEADLINES = {
    "sqlite": (sqlite_start, sqlite_stop),
    "postgresql": (session_start, nothing),
    "mysql": (session_start, nothing),
}


def is_timeout(error: OperationalError) -> bool:
    """SQLite: interrupted. PostgreSQL: 57014. MariaDB: 1969. MySQL: 3024."""
    state = getattr(error.__cause__, "sqlstate", None)
    number = error.args[0] if error.args else None
    return str(number) == "interrupted" or state == "57014" or number in (1969, 3024)

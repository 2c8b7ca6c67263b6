"""A deadline for one statement, on the databases that have one, and what databases refuse."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import DataError, Error, InternalError, OperationalError, connections

from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError, ToolError
from mcp_django.stores.transactions import is_contention

# Waiting for others who write to the same rows, and saying so where that took too long.


@contextmanager
def contended() -> Iterator[None]:
    """Turn what a database says of others who write into a ToolError."""
    try:
        yield
    except OperationalError as error:
        if not is_contention(error):
            raise
        raise ToolError(
            "Somebody else is changing the same data right now. Nothing was changed. Send the "
            "same call again."
        ) from error


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
    is_sqlite, seconds = connection.vendor == "sqlite", get_config().statement_timeout
    if is_sqlite:
        end = time.monotonic() + seconds
        connection.connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)
    elif (setting := setting_of(connection)) is not None:
        set_deadline(connection, setting, seconds)
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
        if is_sqlite:
            connection.connection.set_progress_handler(None, 0)


class Setting(NamedTuple):
    """The deadline of a session: what sets it, in which unit, and what takes it back."""

    statement: str
    unit: Callable[[float], Any]
    reset: str


SETTINGS = {
    "postgresql": Setting(
        "SELECT set_config('statement_timeout', %s, false)",
        lambda seconds: str(int(seconds * 1000)),
        "RESET statement_timeout",
    ),
    "mysql": Setting(
        "SET SESSION max_execution_time = %s",
        lambda seconds: int(seconds * 1000),
        "SET SESSION max_execution_time = DEFAULT",
    ),
    "mariadb": Setting(
        "SET SESSION max_statement_time = %s",
        float,
        "SET SESSION max_statement_time = DEFAULT",
    ),
}


def setting_of(connection: Any) -> Setting | None:
    is_mariadb = connection.vendor == "mysql" and connection.mysql_is_mariadb
    return SETTINGS.get("mariadb" if is_mariadb else connection.vendor)


#: What a connection wrapper remembers: the driver's connection, the commit hooks, the seconds, and
#: what takes them back.
MARK = "_mcp_django_deadline"
NO_MARK = (None, None, None, None)


def set_deadline(connection: Any, setting: Setting, seconds: float) -> None:
    """Set the deadline once for each connection: to set and reset it each time would take two
    round trips for each read.

    A transaction takes the setting back when it rolls back. Django then has a new list of commit
    hooks, which is not the one kept here.
    """
    hooks = connection.run_on_commit if connection.in_atomic_block else None
    raw, known_hooks, known_seconds, _ = getattr(connection, MARK, NO_MARK)
    is_in_force = raw is connection.connection and known_seconds == seconds
    if is_in_force and (known_hooks is None or known_hooks is hooks):
        return
    # The driver's own cursor: this statement is not a query of the project.
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(setting.statement, [setting.unit(seconds)])
    setattr(connection, MARK, (connection.connection, hooks, seconds, setting.reset))


def lift_deadlines() -> None:
    """Give this thread's connections back as they were, since others go on using them."""
    for connection in connections.all(initialized_only=True):
        raw, _, _, reset = getattr(connection, MARK, NO_MARK)
        if raw is None:
            continue
        delattr(connection, MARK)
        # A transaction that failed takes the setting back itself, and lets nothing else run.
        if raw is connection.connection and not connection.needs_rollback:
            with connection.wrap_database_errors, connection.connection.cursor() as cursor:
                cursor.execute(reset)


def raise_lost_database(error: Exception) -> None:
    """Raise an error of the database again, which ended a question of rights to code of the site.

    The answer is not "no" then: lists would be shorter and nobody would know why. A missing table
    is a mistake of the code that asks, as any other.
    """
    if isinstance(error, Error) and not is_missing_table(error):
        raise error


def is_missing_table(error: Error) -> bool:
    """SQLite: no such table. PostgreSQL: 42P01. MariaDB and MySQL: 1146."""
    state = getattr(error.__cause__, "sqlstate", None)
    return "no such table" in str(error) or state == "42P01" or error.args[:1] == (1146,)


def is_timeout(error: OperationalError) -> bool:
    """SQLite: interrupted. PostgreSQL: 57014. MariaDB: 1969. MySQL: 3024."""
    state = getattr(error.__cause__, "sqlstate", None)
    number = error.args[0] if error.args else None
    return str(number) == "interrupted" or state == "57014" or number in (1969, 3024)

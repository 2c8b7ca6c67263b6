"""A deadline for one statement, on the databases that have one, and what databases refuse."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from django.db import (
    DataError,
    Error,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
    transaction,
)

from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError, ToolError
from mcp_django.stores.transactions import is_contention
from mcp_django.tracing import span_of

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
    end: Callable[[], None] | None = None
    try:
        if not hasattr(connection, HAS_DEADLINE):  # that of a block around this one
            end = set_deadline(connection, get_config().statement_timeout)
            setattr(connection, HAS_DEADLINE, True)
        try:
            if end is None:
                yield
            else:
                with span_of("query", {"db.system.name": connection.vendor}):
                    yield
        finally:
            if end is not None:
                delattr(connection, HAS_DEADLINE)
                end()
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


#: What a connection wrapper has while a deadline is in force.
HAS_DEADLINE = "_mcp_django_has_deadline"


def set_deadline(connection: Any, seconds: float) -> Callable[[], None]:
    """Let each statement run for so many seconds, on databases that can. Return what leaves the
    connection as it was: the site goes on with it, or, behind a pooler, anybody does.
    """
    if connection.connection is None:
        connection.ensure_connection()
    if connection.vendor == "sqlite":
        end, raw = time.monotonic() + seconds, connection.connection
        raw.set_progress_handler(lambda: time.monotonic() > end, STEPS)
        return partial(raw.set_progress_handler, None, 0)
    if connection.vendor == "postgresql":
        connection.execute_wrappers.append(partial(execute_in_time, seconds))
        return partial(connection.execute_wrappers.pop)
    if connection.vendor == "mysql":
        # MariaDB counts seconds, and MySQL milliseconds.
        if connection.mysql_is_mariadb:
            name, value = "max_statement_time", seconds
        else:
            name, value = "max_execution_time", int(seconds * 1000)
        run_statement(connection, f"SET SESSION {name} = %s", [value])
        return partial(take_back, connection, f"SET SESSION {name} = DEFAULT")
    return lambda: None  # Others have none.


def execute_in_time(
    seconds: float,
    execute: Callable[..., Any],
    sql: str,
    params: Any,
    many: bool,  # noqa: FBT001
    context: Any,
) -> Any:
    """Run one statement of PostgreSQL: a wrapper as `connection.execute_wrapper` takes it.

    PostgreSQL forgets the setting with the transaction, before a pooler may give the session to
    somebody else. Each statement has its own, so that one which fails takes no other along.
    """
    connection, milliseconds = context["connection"], str(int(seconds * 1000))
    with ExitStack() as stack:
        if connection.in_atomic_block:
            stack.callback(take_back, connection, "SET LOCAL statement_timeout TO DEFAULT")
        else:
            stack.enter_context(transaction.atomic(using=connection.alias))
        run_statement(
            connection, "SELECT set_config('statement_timeout', %s, true)", [milliseconds]
        )
        return execute(sql, params, many, context)


def take_back(connection: Any, statement: str) -> None:
    # A transaction that failed takes the setting back itself, and lets nothing else run.
    with suppress(Error):
        run_statement(connection, statement)


def run_statement(connection: Any, statement: str, parameters: Sequence[Any] = ()) -> None:
    """Run a statement that is not a query of the project: by a cursor of the driver."""
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)


def raise_lost_database(error: Exception) -> None:
    """Raise an error of the database again, which ended a question of rights to code of the site.

    The answer is not "no" then: lists would be shorter and nobody would know why. A missing table
    is a mistake of the code that asks, as any other.
    """
    if isinstance(error, Error) and not is_missing_table(error):
        raise error


def raise_unreachable_database(error: Exception) -> None:
    """Raise an error of a database that will answer later. Any other comes again each time."""
    if not isinstance(error, OperationalError | InterfaceError):
        return
    if not (is_missing_table(error) or is_timeout(error)):
        raise error


def is_missing_table(error: Error) -> bool:
    """SQLite: no such table. PostgreSQL: 42P01. MariaDB and MySQL: 1146."""
    state = getattr(error.__cause__, "sqlstate", None)
    return "no such table" in str(error) or state == "42P01" or error.args[:1] == (1146,)


def is_timeout(error: Error) -> bool:
    """SQLite: interrupted. PostgreSQL: 57014. MariaDB: 1969. MySQL: 3024."""
    state = getattr(error.__cause__, "sqlstate", None)
    number = error.args[0] if error.args else None
    return str(number) == "interrupted" or state == "57014" or number in (1969, 3024)

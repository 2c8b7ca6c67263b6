"""Entries into the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import connections, router, transaction

from mcp_django.audit.ends import End
from mcp_django.audit.entries import Entry
from mcp_django.models import CallRecord

FIELDS: dict[str, Any] = {field.attname: field for field in CallRecord._meta.concrete_fields}

#: Where a database has no limit of its own.
MOST_PARAMS = 10_000
AT, USER = Entry._fields.index("at"), Entry._fields.index("user_id")


def write_rows(entries: Sequence[Entry]) -> None:
    """Insert them together, or none. Raises what the database raises.

    Not `bulk_create`: that takes four times as long, on a core that calls need.
    """
    alias = router.db_for_write(CallRecord)
    connection = connections[alias]
    # A batch has few users. Asking a field is as dear as the insertion itself.
    users = {entry.user_id for entry in entries if entry.user_id is not None}
    keys = {user: FIELDS["user_id"].get_db_prep_save(user, connection) for user in users}
    rows = [prepared(entry, keys, connection) for entry in entries]
    most = (connection.features.max_query_params or MOST_PARAMS) // len(Entry._fields)
    together = transaction.atomic(using=alias) if len(rows) > most else nullcontext()
    with together, connection.cursor() as cursor:
        for start in range(0, len(rows), most):
            part = rows[start : start + most]
            # One statement, not many: SQLite gives the interpreter's lock away for each.
            cursor.execute(insertion(connection, len(part)), list(chain.from_iterable(part)))


def write_ends(ends: Sequence[End]) -> None:
    """The same for what calls have left of themselves."""
    write_rows([end.entry() for end in ends])


def insertion(connection: Any, count: int) -> str:
    """The statement for so many rows. Nothing in it comes from a caller."""
    quote = connection.ops.quote_name
    columns = ", ".join(quote(FIELDS[name].column) for name in Entry._fields)
    row = f"({', '.join(['%s'] * len(Entry._fields))})"
    values = ", ".join([row] * count)
    return f"INSERT INTO {quote(CallRecord._meta.db_table)} ({columns}) VALUES {values}"  # noqa: S608


def adapted(at: datetime, connection: Any) -> Any:
    """The time as this database wants it."""
    if at.tzinfo is connection.timezone and not connection.features.supports_timezones:
        # What it would do first, at three times the cost of all the rest.
        at = at.replace(tzinfo=None)
    return connection.ops.adapt_datetimefield_value(at)


def prepared(entry: Entry, keys: Mapping[Any, Any], connection: Any) -> list[Any]:
    """The values as this database wants them. Those of most columns are texts and numbers."""
    values = list(entry)
    values[AT] = adapted(entry.at, connection)
    values[USER] = keys.get(entry.user_id)
    if entry.arguments is not None:
        values[-1] = FIELDS["arguments"].get_db_prep_save(entry.arguments, connection)
    return values

"""How a database is emptied behind a test that commits.

Django also writes all content types and permissions again, which takes fifteen times as long as
to empty the tables. Here their rows stay, if the test has not changed them.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.cache import caches
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

KEPT = {ContentType._meta.db_table, Permission._meta.db_table}
#: The rows of these tables as Django has written them, by the alias of the database.
written: dict[str, Any] = {}

empty_as_django = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]


def kept_rows(connection: BaseDatabaseWrapper) -> Any:
    """None if the database does not have these tables."""
    if not set(connection.introspection.table_names()) >= KEPT:
        return None
    with connection.cursor() as cursor:
        rows = []
        for table in sorted(KEPT):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} ORDER BY id")
            rows.append(cursor.fetchall())
    return rows


def empty(connection: BaseDatabaseWrapper) -> None:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    # Sessions may be in the table of a cache, which is of no model.
    tables = {getattr(caches[alias], "_table", "") for alias in caches}
    names += [*tables.intersection(connection.introspection.table_names())]
    with (
        connection.constraint_checks_disabled(),
        transaction.atomic(using=connection.alias),
        connection.cursor() as cursor,
    ):
        for name in sorted({*names} - KEPT):
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(name)}")


def empty_databases(case: Any) -> None:
    """In place of `TransactionTestCase._fixture_teardown`."""
    if case.available_apps is not None or case.serialized_rollback:
        empty_as_django(case)
        return
    found = [connections[alias] for alias in case._databases_names(include_mirrors=False)]
    if not all(written.get(one.alias) and written[one.alias] == kept_rows(one) for one in found):
        empty_as_django(case)
        written.update({connection.alias: kept_rows(connection) for connection in found})
    for connection in found:
        empty(connection)

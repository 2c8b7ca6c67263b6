"""The database connections of this package's own threads, which keep them between calls.

Threads of a server must not. Under ASGI, Django runs each request in a thread of its own and
forgets it, with the connection that is open there, so `CONN_MAX_AGE` leaves more and more of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections, transaction

#: Seconds that a connection of ours is kept where the site closes its own after each request.
KEPT = 60.0
#: Seconds without a call after which a connection is asked whether it still works.
QUIET = 1.0


class LastUse(threading.local):
    at = 0.0


_last_use = LastUse()


# Tenants, as the middleware of a site sets them for its thread. django-tenants and its like give
# each a schema, and switch the schema of one connection.


#: Where the rows of a tenant are: alias, name of the database, schema.
Place: TypeAlias = tuple[str, Hashable, Hashable]


def current_place(using: str) -> Place:
    """Return where this thread reads from now. No query."""
    connection = connections[using]
    return using, connection.settings_dict["NAME"], getattr(connection, "schema_name", None)


@cache
def has_tenants() -> bool:
    """Return whether a database of the site has schemas for tenants. Most have none, and each call
    asks.
    """
    for alias in connections:
        # A driver that is not there is nobody's business here.
        with suppress(Exception):
            if hasattr(connections[alias], "set_tenant"):
                return True
    return False


def current_tenant() -> str:
    """Return the schema that this thread works in; an empty text for the one that all share."""
    if not has_tenants():
        return ""
    schema = getattr(connections[DEFAULT_DB_ALIAS], "schema_name", None)
    is_shared = schema in (None, "", getattr(settings, "PUBLIC_SCHEMA_NAME", "public"))
    return "" if is_shared else str(schema)


@dataclass(frozen=True)
class TenantSchema:
    """Where a connection works."""

    alias: str
    name: str
    #: What the package knows of the tenant.
    tenant: Any = field(compare=False, repr=False)


#: Those of the connections of one thread. Nothing without tenants.
TenantSchemas: TypeAlias = tuple[TenantSchema, ...]


def current_schemas() -> TenantSchemas:
    """Return those of this thread, for another one that goes on with its work. No query."""
    if not has_tenants():
        return ()
    opened: Any = connections.all(initialized_only=True)
    return tuple(
        TenantSchema(connection.alias, connection.schema_name, connection.tenant)
        for connection in opened
        if hasattr(connection, "set_tenant")
    )


@contextmanager
def entered(schemas: TenantSchemas) -> Iterator[None]:
    """Have this thread work in these schemas: one of ours, which no middleware runs in. Also
    decorates a function."""
    for schema in schemas:
        connections[schema.alias].set_tenant(schema.tenant)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for schema in schemas:
            connections[schema.alias].set_schema_to_public()  # type: ignore[attr-defined]


def keep_connections() -> None:
    """Have this thread keep its connections. For threads that we start, since they are few.

    Nor do they use a pool: views would wait for the connections that we keep, and would get some
    with the settings of our sessions, such as a time limit for each statement.
    """
    for alias in connections:
        # A driver that is not there is nobody's business here.
        with suppress(Exception):
            settings = connections[alias].settings_dict
            if settings["CONN_MAX_AGE"] == 0:
                options = {**settings["OPTIONS"]}
                options.pop("pool", None)
                # Other threads have their connections from the same dictionary.
                own = {**settings, "CONN_MAX_AGE": KEPT, "OPTIONS": options}
                connections[alias].settings_dict = own


def refresh_connections() -> None:
    """Before a call: leave no connection that is too old, or was lost since the last one."""
    # The end of the last call was the same moment, as far as connections grow old.
    if time.monotonic() - _last_use.at <= QUIET:
        return
    close_old_connections()
    for connection in connections.all(initialized_only=True):
        with suppress(Error):
            if connection.connection is not None and not connection.is_usable():
                connection.close()


def release_connections() -> None:
    """After a call."""
    close_old_connections()
    _last_use.at = time.monotonic()


def close_old_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # One that cannot even be closed is dropped by Django all the same.
        with suppress(Error):
            connection.close_if_unusable_or_obsolete()


def close_connections() -> None:
    """At the end of a thread. One in a transaction belongs to a test, under `async_to_sync`."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            with suppress(Error):
                connection.close()


def apart(using: str) -> AbstractContextManager[Any]:
    """For a read that may fail, such as of a missing table: a transaction around it goes on."""
    connection = connections[using]
    return transaction.atomic(using=using) if connection.in_atomic_block else nullcontext()

"""How the store "database" touches its tables: apart from whatever its callers do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import connections, router, transaction
from django.db.models import Model, QuerySet

from mcp_django.models import Session
from mcp_django.stores.contention import until_done

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Model)


def alias() -> str:
    """Of all tables of the store, for reading, too: a replica would know of nothing yet."""
    return router.db_for_write(Session)


def rows(model: type[M]) -> QuerySet[M]:
    return model._default_manager.using(alias())


def written(function: Callable[P, T]) -> Callable[P, T]:
    """Runs in a transaction of its own, and once more where others were in the way.

    Raises RuntimeError inside of a transaction: what a store keeps must not roll back with a
    tool. (Those round each test of Django's TestCase do not count.)
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        def work() -> T:
            with transaction.atomic(using=alias(), durable=True):
                return function(*args, **kwargs)

        return until_done(work)

    return run


def looked_up(function: Callable[P, T]) -> Callable[P, T]:
    """Reads what is committed. Raises RuntimeError inside of a transaction, as `written` does:
    what that sees may be old.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if connections[alias()].in_atomic_block:
            # Django's own test of it, which knows its TestCase.
            with transaction.atomic(using=alias(), durable=True, savepoint=False):
                pass
        return function(*args, **kwargs)

    return run


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

"""The rows that a caller may see: the site's part, kept apart from ours."""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn, TypeVar

from django.db import connections
from django.db.models import Q, QuerySet
from django.db.models.query import ModelIterable
from django.db.models.sql import Query
from django.db.models.sql.where import WhereNode

from mcp_django.exceptions import Leak
from mcp_django.exposure.guard import GuardedQuery, Policy, Sealed


class GuardedQuerySet(QuerySet[Any]):
    """Declared columns of visible rows: it shows and never changes anything, and makes no objects.

    An instance would hold every column, and `update()` and `delete()` would leave the guard.
    """

    def _fetch_all(self) -> None:
        if self._iterable_class is ModelIterable:
            raise Leak("A guarded queryset has columns, no instances.")
        super()._fetch_all()

    def iterator(self, chunk_size: int | None = None) -> NoReturn:
        raise Leak("A guarded queryset is read at once.")

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Leak("A guarded queryset is for reading.")

    update = delete = create = bulk_create = bulk_update = _refuse
    get_or_create = update_or_create = raw = _refuse
    _update = _raw_delete = _refuse


def is_plain(query: Any) -> bool:
    """Every row of the model, nothing added: no need for a subquery or a seal."""
    return not query.where.children and len(query.alias_refcount) <= 1 and is_mergeable(query)


def is_mergeable(query: Any) -> bool:
    """Whether our conditions can stand beside the site's without changing what either means."""
    return bool(
        query.combinator is None
        and query.low_mark == 0
        and query.high_mark is None
        and not query.distinct
        and not query.annotations
        and not query.extra
        and not query.extra_tables
        and query.group_by is None
        and not query._filtered_relations
        and not any(multiplies(join) for join in query.alias_map.values())
        and type(query) is Query
    )


def multiplies(join: Any) -> bool:
    field = getattr(join, "join_field", None)
    return field is not None and bool(field.one_to_many or field.many_to_many)


def guarded_query(base: Any, policy: Policy) -> GuardedQuery:
    """A query over the rows of `base` that compiles only what `policy` allows.

    The ordering of the site and of the model is dropped: it may sort by anything.
    """
    given: Any = base.query
    if given.model._meta.concrete_model._meta.db_table != policy.table:
        raise Leak("get_queryset() answered with another model.")
    ours: Any
    if is_plain(given):
        ours = GuardedQuery(given.model)
    elif is_mergeable(given):
        ours = given.chain(klass=GuardedQuery)
        ours.select_related = False
        ours.clear_deferred_loading()
        ours.select_for_update = False
        sealed = Sealed(ours.where.children, ours.where.connector, ours.where.negated)
        ours.where = WhereNode([sealed])
        ours.sealed_aliases = frozenset(ours.alias_refcount)
    else:
        ours = GuardedQuery(given.model)
        # Not `where.add`: it would take the condition out of its seal.
        ours.where = WhereNode([sealed_rows(base)])
    ours.clear_ordering(force=True)
    ours.policy = policy
    return ours  # type: ignore[no-any-return]


def guarded(base: Any, policy: Policy) -> GuardedQuerySet:
    """The same as a queryset, for subqueries and counts."""
    query = guarded_query(base, policy)
    return GuardedQuerySet(base.model, query=query, using=base._db, hints=base._hints)


AnyRows = TypeVar("AnyRows", bound="QuerySet[Any]")


def settled(rows: AnyRows) -> AnyRows:
    """The same rows on one database: a router may name another replica whenever it is asked."""
    return rows.using(rows.db)


def sealed_rows(base: QuerySet[Any]) -> Sealed:
    """`pk IN (the site's query)`, as one condition.

    The site's query keeps its class: one that adds a tenant while it compiles must still do so.
    """
    holder = Query(base.model)
    holder.get_initial_alias()
    rows: Any = base.values("pk")
    if rows.query.is_sliced and not may_be_limited(rows.db):
        kind: Any = type(rows.query)
        rows.query.__class__ = as_table(kind)
    return Sealed([holder.build_where(Q(pk__in=rows))])


def may_be_limited(using: str) -> bool:
    """Whether IN takes a query with LIMIT. MySQL and MariaDB want it in a table of its own."""
    features: Any = connections[using].features
    return bool(features.allow_sliced_subqueries_with_in)


@cache
def as_table(base: Any) -> type[Query]:
    """A query of the same class that stands in FROM of another: `(SELECT * FROM (...))`."""

    class TableQuery(base):  # type: ignore[misc]
        def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
            sql, params = super().as_sql(compiler, connection)
            # Django wrote it, with the values kept apart.
            return f"(SELECT * FROM {sql} AS mcp_rows)", params  # noqa: S608

    return TableQuery

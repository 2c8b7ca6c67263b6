"""Stage two: a query of this class cannot be compiled unless everything in it was declared.

The check runs inside `pre_sql_setup`, where Django has resolved names to columns and made every
join, and has not yet written SQL. Clones, counts, `exists()` and subqueries keep the class, so
they are checked as well. What the site's own `get_queryset` brought is sealed and not judged.

Not held by the class: `update()` and `delete()` give the query another one, which is why
`GuardedQuerySet` refuses both and no guarded queryset leaves this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NoReturn, TypeVar

from django.db import connections
from django.db.models import (
    Avg,
    Count,
    Func,
    Max,
    Min,
    Model,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    expressions,
    lookups,
)
from django.db.models.expressions import Star
from django.db.models.functions import RowNumber
from django.db.models.functions import datetime as dates
from django.db.models.query import ModelIterable
from django.db.models.sql import Query
from django.db.models.sql.compiler import PositionRef, SQLCompiler
from django.db.models.sql.datastructures import BaseTable, Join
from django.db.models.sql.where import NothingNode, WhereNode

from mcp_django.exceptions import Leak
from mcp_django.exposure.paths import FILTER, GROUP, MAX_HOPS, METRIC, ORDER, RETURN, Column, Trail

#: What may be counted, and whose smallest and largest value may be shown.
COUNTED, EXTREME = "counted", "extreme"

LOOKUPS = frozenset({
    "exact", "iexact", "in", "isnull", "contains", "icontains", "startswith", "istartswith",
    "endswith", "iendswith", "gt", "gte", "lt", "lte", "range", "search", "has_key", "overlap",
})  # fmt: skip
#: As Django writes the values of an array.
ARRAY = {"function": "ARRAY", "template": "%(function)s[%(expressions)s]"}
#: Exact classes, not subclasses: a site's own expression may hold anything.
TRANSPARENT = frozenset(
    {
        expressions.OrderBy,
        expressions.Ref,
        expressions.ColPairs,
        PositionRef,
        Value,
        dates.ExtractYear,
        dates.ExtractMonth,
        dates.ExtractDay,
        dates.ExtractWeek,
        dates.ExtractWeekDay,
        dates.ExtractQuarter,
        dates.ExtractHour,
        dates.ExtractMinute,
    }
)
#: In groups only: elsewhere nobody asks for them.
BUCKETS = frozenset(
    {
        dates.TruncYear,
        dates.TruncQuarter,
        dates.TruncMonth,
        dates.TruncWeek,
        dates.TruncDay,
        dates.TruncHour,
    }
)
#: The use that each makes of its column.
AGGREGATES: Mapping[Any, str] = {
    Count: COUNTED,
    Sum: METRIC,
    Avg: METRIC,
    Min: EXTREME,
    Max: EXTREME,
}


class SiteCondition(WhereNode):
    """A condition that the site wrote. Only `guarded_query` and `rows_of_site` make one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenModel:
    """What paths of other models may use of one whose records a caller may read.

    Trails begin at the model. A relation leads to one record, whose rows are not narrowed.
    """

    columns: Mapping[str, frozenset[Column]]
    relations: Mapping[Trail, type[Model]]
    #: Relations to one record or to many, through which related records may be counted.
    counted: Mapping[Trail, type[Model]]
    #: Whether the caller sees only a part of the rows.
    is_narrowed: bool

    @cached_property
    def all_columns(self) -> frozenset[Column]:
        return frozenset().union(*self.columns.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class PathRule:
    """What a query may touch without a listing: columns that open models show, behind relations
    that open models show. It judges the joins that were compiled and knows no path.
    """

    root: type[Model]
    models: Mapping[type[Model], OpenModel]

    def allows(self, trail: Trail, column: str, *, use: str) -> bool:
        """Whether the column may be put to this use, of the record itself or of a related one."""
        return any(
            (rest, column) in self.models[model].columns.get(use, ())
            for model, rest in self._ways(self.root, trail, left=MAX_HOPS)
        )

    def allows_join(self, trail: Trail) -> bool:
        """Whether the joins lead to the columns of a related record, or are on the way there."""
        return any(
            not rest
            or any(known[: len(rest)] == rest for known, _ in self.models[model].all_columns)
            for model, rest in self._ways(self.root, trail, left=MAX_HOPS)
        )

    def allows_count(self, trail: Trail) -> bool:
        """Whether the joins lead, over open relations alone, to records that may be counted."""
        return bool(trail) and self._leads_on(self.root, trail, left=MAX_HOPS)

    def _leads_on(self, model: type[Model], trail: Trail, *, left: int) -> bool:
        return not trail or any(
            self._leads_on(target, trail[len(relation) :], left=left - 1)
            for relation, target in self.models[model].counted.items()
            if left and trail[: len(relation)] == relation
        )

    def is_narrowed(self, model: type[Model]) -> bool:
        return model in self.models and self.models[model].is_narrowed

    def _ways(
        self, model: type[Model], trail: Trail, *, left: int
    ) -> Iterator[tuple[type[Model], Trail]]:
        """Each open model that the trail leads to by relations, and the rest of the trail."""
        yield model, trail
        for relation, target in self.models[model].relations.items():
            if trail[: len(relation)] == relation and left and target in self.models:
                yield from self._ways(target, trail[len(relation) :], left=left - 1)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What one query may touch, worked out from declared paths, and by a rule beyond them."""

    table: str
    columns: Mapping[str, frozenset[Column]]
    joins: frozenset[Trail] = frozenset()
    rule: PathRule | None = None
    #: Whether one of its columns is compared with the query around it, which judges that.
    is_correlated: bool = False

    def allows(self, trail: Trail, column: str, *, use: str) -> bool:
        return (trail, column) in self.columns.get(use, ()) or (
            self.rule is not None and self.rule.allows(trail, column, use=use)
        )

    def allows_join(self, trail: Trail) -> bool:
        return trail in self.joins or (self.rule is not None and self.rule.allows_join(trail))

    @property
    def is_for_groups(self) -> bool:
        """Whether the query shows groups and what is measured of them, and no records."""
        return GROUP in self.columns


class GuardedQuery(Query):
    policy: Policy
    #: Aliases that were joined before the caller came.
    site_aliases: frozenset[str] = frozenset()

    def get_compiler(self, *args: Any, **kwargs: Any) -> SQLCompiler:
        compiler: Any = super().get_compiler(*args, **kwargs)
        kind: Any = type(compiler)
        compiler.__class__ = guarded_compiler(kind)
        return compiler  # type: ignore[no-any-return]

    def change_aliases(self, change_map: dict[str | None, str]) -> None:
        # A query that becomes a subquery renames its tables: the seal must follow.
        super().change_aliases(change_map)
        self.site_aliases = frozenset(change_map.get(one, one) for one in self.site_aliases)


@cache
def guarded_compiler(base: Any) -> type[SQLCompiler]:
    """A compiler of the same backend that asks the policy first."""

    class GuardedCompiler(base):  # type: ignore[misc]
        def pre_sql_setup(self, *args: Any, **kwargs: Any) -> Any:
            inspection = Inspection(self.query)
            inspection.layout()
            result = super().pre_sql_setup(*args, **kwargs)
            extra_select, order_by, _ = result
            inspection.run(self.select, extra_select, order_by)
            return result

    return GuardedCompiler


class Inspection:
    """One look at a resolved query. Raises Leak, which is always our bug and never an answer."""

    def __init__(self, query: GuardedQuery) -> None:
        self.query = query
        self.policy = query.policy
        self.trails: dict[str, Trail] = {}

    def layout(self) -> None:
        query: Any = self.query
        odd = (
            query.combinator,
            query.extra,
            query.extra_tables,
            query.select_related,
            query.distinct,
            # True would group by every column.
            query.group_by is not None
            and not (self.policy.is_for_groups and isinstance(query.group_by, tuple)),
            query._filtered_relations,
        )
        if any(odd) or query.get_meta().db_table != self.policy.table:
            raise Leak(f"Unexpected parts in the query: {odd}")

    def run(self, select: Any, extra_select: Any, order_by: Any) -> None:
        self.joins()
        shown, ordered = (GROUP, GROUP) if self.policy.is_for_groups else (RETURN, ORDER)
        self.visit(self.query.where, use=FILTER)
        for expression, _, _ in select:
            self.visit(expression, use=shown)
        for expression, *_ in (*extra_select, *order_by):
            self.visit(expression, use=ordered)
        for expression in self.query.group_by or ():  # type: ignore[union-attr]
            self.visit(expression, use=GROUP)

    def joins(self) -> None:
        sealed = self.query.site_aliases
        for alias, count in self.query.alias_refcount.items():
            if count and alias not in sealed:
                trail = self.trail(alias)
                if trail and not self.policy.allows_join(trail):
                    raise Leak(f"An undeclared join: {trail[-1][0]}")

    def trail(self, alias: str) -> Trail:
        """The joins from the first table to `alias`, as the compiled query has them."""
        known = self.trails.get(alias)
        if known is None:
            join: Any = self.query.alias_map[alias]
            if type(join) is BaseTable:
                known = ()
            elif type(join) is Join and join.filtered_relation is None:
                known = (*self.trail(join.parent_alias), (join.table_name, join.join_cols))
            else:
                raise Leak(f"An unexpected join: {join!r}")
            self.trails[alias] = known
        return known

    def visit(self, node: Any, *, use: str) -> None:
        kind = type(node)
        # Nothing but their parts can tell of columns.
        is_transparent = kind in TRANSPARENT or (kind is Func and node.extra == ARRAY)
        if kind is expressions.Col:
            self.column(node, use=use)
        elif kind is WhereNode:
            for child in node.children:
                self.visit(child, use=use)
        elif isinstance(node, lookups.Lookup):
            if node.lookup_name not in LOOKUPS:
                raise Leak(f"An undeclared lookup: {node.lookup_name}")
            self.visit(node.lhs, use=use)
            self.operand(node.rhs, use=use)
        elif kind in (SiteCondition, NothingNode):
            return  # the site's own
        elif is_transparent or (kind in BUCKETS and use == GROUP):
            for source in node.get_source_expressions():
                self.visit(source, use=use)
        else:
            self.measure(node, use=use)

    def measure(self, node: Any, *, use: str) -> None:
        """What is worked out of several rows."""
        kind = type(node)
        if kind is expressions.Window:
            self.window(node, use=use)
        elif kind in AGGREGATES and self.policy.is_for_groups:
            self.aggregate(node)
        else:
            raise Leak(f"An undeclared node: {kind.__name__}")

    def window(self, node: Any, *, use: str) -> None:
        """A number of rows, or the number of a row among those with equal columns."""
        counted, *places = node.get_source_expressions()
        is_count = type(counted) is Count and type(counted.get_source_expressions()[0]) is Star
        if type(counted) is not RowNumber and not is_count:
            raise Leak(f"An undeclared window: {node!r}")
        for place in places:
            for part in () if place is None else place.get_source_expressions():
                self.visit(part, use=use)

    def aggregate(self, node: Any) -> None:
        """Of one declared column, or of rows: no condition or order of its own."""
        kind = type(node)
        source, *others = node.get_source_expressions()
        is_odd = any(others) or (node.distinct and kind is not Count)
        if not is_odd and type(source) is expressions.Col:
            self.column(source, use=AGGREGATES[kind])
        elif not is_odd and kind is Sum and type(source) in (Subquery, GuardedQuery):
            # Django 6.1 puts the query itself in place of its Subquery.
            counting = source.query if type(source) is Subquery else source
            joins, rule = self.joins_counted(counting), self.policy.rule
            if rule is None or not rule.allows_count(joins):
                raise Leak("An undeclared count of related rows.")
        elif is_odd or kind is not Count or type(source) is not expressions.Star:
            raise Leak(f"An undeclared aggregate: {node!r}")

    def joins_counted(self, query: Any) -> Trail:
        """The joins from this query that a count of related rows stands for: one query lies in
        the other, and the innermost compares a column with one of this query.
        """
        link = link_of(query)
        rule = self.policy.rule
        is_site = any(type(one) is SiteCondition for one in query.where.children)
        if rule is not None and rule.is_narrowed(query.model) and not is_site:
            raise Leak(f"A count of all rows of {query.model._meta.label}.")
        column: Any
        start: Any
        if link.lookup_name == "in":
            (column,) = link.rhs.select
            start = (*self.joins_counted(link.rhs), *Inspection(link.rhs).trail(column.alias))
        elif link.rhs.alias in self.query.alias_map:
            column, start = link.rhs, self.trail(link.rhs.alias)
        else:
            raise Leak("A column of another query.")
        pair = (column.target.column, link.lhs.target.column)
        return (*start, (query.get_meta().db_table, (pair,)))

    def operand(self, value: Any, *, use: str) -> None:
        if isinstance(value, list | tuple | set):
            for item in value:
                self.operand(item, use=use)
        elif type(value) is GuardedQuery:
            # The rest of it is checked when it is compiled itself.
            for column in value.get_external_cols():
                self.column(column, use=use)
        elif hasattr(value, "resolve_expression") or hasattr(value, "as_sql"):
            self.visit(value, use=use)

    def column(self, col: Any, *, use: str) -> None:
        if col.alias not in self.query.alias_map:
            if self.policy.is_correlated and col.alias in self.query.external_aliases:
                return  # `joins_counted` of the query around it has judged it
            raise Leak("A column of another query.")
        if not self.policy.allows(self.trail(col.alias), str(col.target.column), use=use):
            label = col.target.model._meta.label
            raise Leak(f"{use}: undeclared column {label}.{col.target.column}")


def link_of(query: Any) -> Any:
    """The condition that ties a counting query to those around it. Raises Leak unless all of its
    rows are tied by one column of its own table.
    """
    if type(query) is not GuardedQuery or not query.policy.is_correlated:
        raise Leak(f"An undeclared subquery: {type(query).__name__}")
    where = query.where
    links = [
        one
        for one in where.children
        if isinstance(one, lookups.Lookup)
        and (
            (one.lookup_name == "in" and isinstance(one.rhs, Query))
            or (one.lookup_name == "exact" and type(one.rhs) is expressions.Col)
        )
    ]
    is_loose = where.connector != "AND" or where.negated or query.is_sliced
    # Whatever else it compared with the record, nobody would have judged.
    is_odd = len(links) != 1 or len(query.get_external_cols()) != 1
    if is_odd or is_loose or type(links[0].lhs) is not expressions.Col:
        raise Leak("A count of rows that nothing ties to the record.")
    if Inspection(query).trail(links[0].lhs.alias):
        raise Leak("A count of rows by a column of another table.")
    return links[0]


# The rows that a caller may see: the site's part, kept apart from ours.


class GuardedQuerySet(QuerySet[Any]):
    """Declared columns of visible rows: it shows and never changes anything, and makes no objects.

    An instance would hold every column, and `update()` and `delete()` would leave the guard.
    """

    def _fetch_all(self) -> None:
        if self._iterable_class is ModelIterable:
            raise Leak("A guarded queryset has columns, no instances.")
        super()._fetch_all()

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Leak("A guarded queryset is for reading, all at once.")

    iterator = update = delete = create = bulk_create = bulk_update = _refuse
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
        and not any(
            field.one_to_many or field.many_to_many
            for join in query.alias_map.values()
            if (field := getattr(join, "join_field", None)) is not None
        )
        and type(query) is Query
    )


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
        sealed = SiteCondition(ours.where.children, ours.where.connector, ours.where.negated)
        ours.where = WhereNode([sealed])
        ours.site_aliases = frozenset(ours.alias_refcount)
    else:
        ours = GuardedQuery(given.model)
        # Not `where.add`: it would take the condition out of its seal.
        ours.where = WhereNode([rows_of_site(base)])
    ours.clear_ordering(force=True)
    ours.policy = policy
    return ours  # type: ignore[no-any-return]


def guarded(base: Any, policy: Policy) -> GuardedQuerySet:
    """The same as a queryset, for subqueries and counts."""
    query = guarded_query(base, policy)
    return GuardedQuerySet(base.model, query=query, using=base._db, hints=base._hints)


AnyRows = TypeVar("AnyRows", bound="QuerySet[Any]")


def pinned_to_database(rows: AnyRows) -> AnyRows:
    """The same rows on one database: a router may name another replica whenever it is asked."""
    return rows.using(rows.db)


def rows_of_site(base: QuerySet[Any]) -> SiteCondition:
    """`pk IN (the site's query)`, as one condition.

    The site's query keeps its class: one that adds a tenant while it compiles must still do so.
    """
    holder = Query(base.model)
    holder.get_initial_alias()
    rows: Any = base.values("pk")
    # MySQL and MariaDB want a query with LIMIT behind IN in a table of its own.
    if rows.query.is_sliced and not connections[rows.db].features.allow_sliced_subqueries_with_in:
        kind: Any = type(rows.query)
        rows.query.__class__ = as_table(kind)
    return SiteCondition([holder.build_where(Q(pk__in=rows))])


def common_rows(first: Any, second: Any) -> Any:
    """The rows that are in both querysets, on the database of the first."""
    if is_plain(second.query):
        return first
    query = Query(first.model)
    query.get_initial_alias()
    query.where = WhereNode([rows_of_site(first), rows_of_site(second)])
    return QuerySet(first.model, query=query, using=first._db, hints=first._hints)


@cache
def as_table(base: Any) -> type[Query]:
    """A query of the same class that stands in FROM of another: `(SELECT * FROM (...))`."""

    class TableQuery(base):  # type: ignore[misc]
        def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
            sql, params = super().as_sql(compiler, connection)
            # Django wrote it, with the values kept apart.
            return f"(SELECT * FROM {sql} AS mcp_rows)", params  # noqa: S608

    return TableQuery

"""Reading rows: one query of chosen columns, from SQL made now or kept from before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connections
from django.db.models import Q, QuerySet
from django.db.models.expressions import Col
from django.db.models.lookups import Lookup
from django.db.models.sql.where import AND, WhereNode

from mcp_django.exposure.fields import log_once
from mcp_django.exposure.limits import limited
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, policy_of
from mcp_django.exposure.query.filters import ParsedFilters
from mcp_django.exposure.query.guard import (
    GuardedQuery,
    guarded,
    guarded_query,
    is_plain,
    pinned_to_database,
)
from mcp_django.exposure.query.pagination import Ordering, after
from mcp_django.exposure.query.selection import Selection, label
from mcp_django.exposure.query.serializers import Columns, Values
from mcp_django.exposure.query.tables import Table

#: Stands for a value that its field fails on. What is stored may be enciphered, so it stays out.
UNREADABLE = "<unreadable>"


def labels_by_key(
    rows: QuerySet[Any], key: str, columns: Sequence[str], wanted: Iterable[Any]
) -> dict[Any, str]:
    """The labels of those rows of the site, out of these, by the column `key`."""
    # Each once: Django 5.2.0 forgets a column that is named twice.
    names = list(dict.fromkeys([key, *columns]))
    places = [names.index(column) for column in columns]
    rows = pinned_to_database(guarded(rows, policy_of(rows.model, names)))
    with limited(rows.db):
        found = rows.filter(Q((f"{key}__in", wanted))).values_list(*names)
        return {row[0]: label([row[place] for place in places]) for row in found}


def read(compiler: Any, sql: str, params: Any) -> tuple[list[Any], list[Values]]:
    """Rows as the driver gave them, and the same as columns of Python values."""
    with compiler.connection.cursor() as cursor:
        cursor.execute(sql, params)
        rows = cursor.fetchall()
    columns: list[Values] = list(zip(*rows, strict=True))
    if rows:
        for at, (converters, expression) in compiler.get_converters(
            [one for one, _, _ in compiler.select]
        ).items():
            columns[at] = converted(columns[at], converters, expression, compiler.connection)
    return rows, columns


def converted(
    column: Values, converters: Sequence[Any], expression: Any, connection: Any
) -> Values:
    """Values as fields have them. Where code of a field fails on one, the others are there."""
    for convert in converters:
        try:
            column = [convert(value, expression, connection) for value in column]
        except Exception as error:
            name = str(getattr(expression, "target", expression))
            log_once(name, "has values that cannot be read.", error)
            column = [attempt(convert, value, expression, connection) for value in column]
    return column


def attempt(convert: Any, value: Any, expression: Any, connection: Any) -> Any:
    try:
        return UNREADABLE if value is UNREADABLE else convert(value, expression, connection)
    except Exception:  # logged by the caller
        return UNREADABLE


# SQL that passed the guard once, run again with other values.
#
# A plan is kept with the paths of a caller for one selection, so it ends with the rights and the
# declarations that it was made under. Its text is only sent when the WHERE that the new values
# make is the same to the letter: no SQL leaves that the guard has not seen.

#: Plans that are remembered for one set of paths.
MOST_PLANS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    query: GuardedQuery
    sql: str
    #: The condition in `sql`, and the comparisons that it is made of.
    where: str | None
    comparisons: tuple[tuple[type[Lookup[Any]], Any], ...]
    select: Any
    names: list[str]

    def run(self, values: Sequence[Any], *, using: str) -> tuple[list[Any], list[Values]] | None:
        """The rows for these values, or None where they need SQL of another form."""
        compiler: Any = self.query.get_compiler(using)
        params: Sequence[Any] = ()
        if self.where is not None:
            children: list[Any] = [
                kind(lhs, value)
                for (kind, lhs), value in zip(self.comparisons, values, strict=True)
            ]
            try:
                where, params = compiler.compile(WhereNode(children))
            except (EmptyResultSet, FullResultSet):
                return None
            if where != self.where:
                return None
        compiler.select = self.select
        return read(compiler, self.sql, params)


def make_plan(
    query: GuardedQuery, compiler: Any, sql: str, params: Sequence[Any], names: list[str]
) -> Plan | None:
    """A plan of a query that was compiled just now, if its only values are compared columns."""
    children: list[Any] = query.where.children
    where, found = compiler.compile(query.where) if children else (None, ())
    is_simple = (
        query.where.connector == AND
        and not query.where.negated
        and all(isinstance(one, Lookup) and type(one.lhs) is Col for one in children)
        and list(found) == list(params)
    )
    if not is_simple:
        return None
    return Plan(
        query=query,
        sql=sql,
        where=where,
        comparisons=tuple((type(one), one.lhs) for one in children),
        select=compiler.select,
        names=names,
    )


# One understood call and the rows that it brings, from SQL made now or kept from before.


@dataclass(frozen=True, kw_only=True)
class Search:
    """One understood call: everything but the rows."""

    rights: Rights
    access: AccessiblePaths
    selection: Selection
    order: Sequence[Ordering] = ()
    parsed_filters: ParsedFilters
    using: str
    #: Whether a position is the number of records before it. What the caller may not see, such as
    #: a key that is not in `fields`, must not be in a cursor.
    counts_records: bool = False
    #: Whether a model reads what is found.
    is_answer: bool = True

    def rows(self, position: Sequence[Any] | None, *, most: int) -> Rows:
        """At most `most` rows behind a position, and whether there are more."""
        key = self.plan_key(most) if position is None else None
        with limited(self.using):
            plan = None if key is None else self.access.plans.get(key)
            if plan is not None:
                found = plan.run(
                    [one.value for one in self.parsed_filters.filters], using=self.using
                )
                if found is not None:
                    return Rows(self, *found, names=plan.names, most=most)
            return self.compiled(position, most=most, key=key)

    def plan_key(self, most: int) -> Any:
        """The form of a call whose SQL depends on nothing else, or None."""
        base = self.rights.rows(self.access.model)
        if not (self.parsed_filters.is_conjunction and is_plain(base.query)):
            return None
        if self.selection.checks or self.selection.is_for_one_call:
            return None
        conditions: list[Any] = []
        for one in self.parsed_filters.filters:
            if one.transform or self.access.needs_subquery(one.path) is not None:
                return None
            form = one.value if one.operator in ("isnull", "in") else None
            form = len(form) if isinstance(form, list) else form
            conditions.append((one.path, one.operator, form))
        terms = tuple(one.term for one in self.order)
        return base.model, self.using, self.selection, terms, tuple(conditions), most

    def compiled(self, position: Sequence[Any] | None, *, most: int, key: Any) -> Rows:
        query = guarded_query(self.rights.rows(self.access.model), self.access.policy)
        condition = self.parsed_filters.build(self.rights, self.access)
        if condition:
            query.add_q(condition)
        start = 0
        if position is not None and self.counts_records:
            [start] = position
        elif position is not None:
            query.add_q(after(self.order, position, using=self.using))
        query.add_ordering(*(one.term for one in self.order))
        lookups = (*self.selection.lookups, *(one.lookup for one in self.order))
        for check, path in self.selection.checks.items():
            model, key = path.field.related_model, path.field.target_field.attname
            visible = guarded(self.rights.rows(model), policy_of(model, [key])).values(key)
            query.add_annotation(Q((f"{path.lookup}__in", visible)), check)
        names = [*dict.fromkeys(lookups), *self.selection.checks]
        query.set_values(names)
        query.set_limits(start, start + most + 1)
        compiler: Any = query.get_compiler(self.using)
        try:
            sql, params = compiler.as_sql()
        except EmptyResultSet:
            return Rows(self, [], [], names=names, most=most, start=start)
        if key is not None:
            plans = self.access.plans
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plans[key] = make_plan(query, compiler, sql, params, names)
        return Rows(self, *read(compiler, sql, params), names=names, most=most, start=start)

    def count(self, parsed_filters: ParsedFilters, *, most: int) -> int:
        """How many records other filters find, or one more than `most`."""
        rows = guarded(self.rights.rows(self.access.model), self.access.policy).using(self.using)
        condition = parsed_filters.build(self.rights, self.access)
        with limited(self.using):
            return rows.filter(condition)[: most + 1].count()


class Rows:
    """What one query brought: rows as the driver gave them, and their columns by name."""

    def __init__(
        self,
        search: Search,
        raw: list[Any],
        columns: Sequence[Sequence[Any]],
        *,
        names: Sequence[str],
        most: int,
        start: int = 0,
    ) -> None:
        self.search = search
        self.start = start
        self.raw = raw
        self.names = names
        self.columns = dict(zip(names, columns or [()] * len(names), strict=True))
        self.has_more = len(raw) > most
        self.count = min(len(raw), most)

    def position(self, at: int) -> list[Any]:
        """What a cursor keeps of a row."""
        if self.search.counts_records:
            return [self.start + at + 1]
        vendor = connections[self.search.using].vendor
        return [
            one.position(
                self.raw[at][self.names.index(one.lookup)],
                self.columns[one.lookup][at],
                vendor=vendor,
            )
            for one in self.search.order
        ]

    def table(self, places: Sequence[int] | None = None) -> Table:
        """Those of the page, or at some places: what no answer shows is not made."""
        columns: Columns = self.columns
        if places is not None:
            columns = {name: [found[at] for at in places] for name, found in columns.items()}
        elif self.has_more:
            columns = {name: found[: self.count] for name, found in columns.items()}
        search = self.search
        return search.selection.table(columns, search.rights, is_answer=search.is_answer)

"""One understood call and the rows that it brings, from SQL made now or kept from before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections

from mcp_django.exposure.budget import limited
from mcp_django.exposure.ordering import Ordering, after
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.plans import MOST_PLANS, Plan, make_plan
from mcp_django.exposure.query import Wanted
from mcp_django.exposure.reach import Reach
from mcp_django.exposure.records import Record, Shape, read, select
from mcp_django.exposure.rows import guarded_query, is_plain


@dataclass(frozen=True, kw_only=True)
class Search:
    """One understood call: everything but the rows."""

    rights: Rights
    reach: Reach
    shape: Shape
    order: Sequence[Ordering]
    wanted: Wanted
    using: str

    def rows(self, position: Sequence[Any] | None, *, most: int) -> Rows:
        """At most `most` rows behind a position, and whether there are more."""
        key = self.plan_key(most) if position is None else None
        with limited(self.using):
            plan = None if key is None else self.reach.plans.get(key)
            if plan is not None:
                found = plan.run([one.value for one in self.wanted.filters], using=self.using)
                if found is not None:
                    return Rows(self, *found, names=plan.names, most=most)
            return self.compiled(position, most=most, key=key)

    def plan_key(self, most: int) -> Any:
        """The shape of a call whose SQL depends on nothing else, or None."""
        base = self.rights.rows(self.reach.model)
        if not (self.wanted.is_conjunction and is_plain(base.query)) or self.shape.checks:
            return None
        conditions: list[Any] = []
        for one in self.wanted.filters:
            if one.transform or self.reach.hard_hop(one.path) is not None:
                return None
            is_shaped = one.operator in ("isnull", "in")
            conditions.append((one.path, one.operator, is_shaped and form_of(one.value)))
        terms = tuple(one.term for one in self.order)
        return base.model, self.using, self.shape, terms, tuple(conditions), most

    def compiled(self, position: Sequence[Any] | None, *, most: int, key: Any) -> Rows:
        query = guarded_query(self.rights.rows(self.reach.model), self.reach.policy)
        condition = self.wanted.build(self.rights, self.reach)
        if condition:
            query.add_q(condition)
        if position is not None:
            query.add_q(after(self.order, position, using=self.using))
        query.add_ordering(*(one.term for one in self.order))
        names = select(self.rights, query, self.shape, [one.lookup for one in self.order])
        query.set_limits(high=most + 1)
        compiler: Any = query.get_compiler(self.using)
        try:
            sql, params = compiler.as_sql()
        except EmptyResultSet:
            return Rows(self, [], [], names=names, most=most)
        if key is not None:
            remember(self.reach, key, make_plan(query, compiler, sql, params, names))
        return Rows(self, *read(compiler, sql, params), names=names, most=most)


def form_of(value: Any) -> Any:
    return len(value) if isinstance(value, list) else value


def remember(reach: Reach, key: Any, plan: Plan | None) -> None:
    if len(reach.plans) >= MOST_PLANS:
        reach.plans.clear()
    reach.plans[key] = plan


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
    ) -> None:
        self.search = search
        self.raw = raw
        self.names = names
        self.columns = dict(zip(names, columns or [()] * len(names), strict=True))
        self.has_more = len(raw) > most
        self.count = min(len(raw), most)

    def position(self, at: int) -> list[Any]:
        vendor = connections[self.search.using].vendor
        return [
            one.position(
                self.raw[at][self.names.index(one.lookup)],
                self.columns[one.lookup][at],
                vendor=vendor,
            )
            for one in self.search.order
        ]

    def records(self) -> list[Record]:
        return self.search.shape.records(self.columns)[: self.count]

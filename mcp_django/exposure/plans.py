"""SQL that passed the guard once, run again with other values.

A plan is kept by one Reach for one shape of a call, so it ends with the rights and the
declarations that it was made under. Its text is only sent when the WHERE that the new values
make is the same to the letter: no SQL leaves that the guard has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models.expressions import Col
from django.db.models.lookups import Lookup
from django.db.models.sql.where import AND, WhereNode

from mcp_django.exposure.guard import GuardedQuery
from mcp_django.exposure.records import read
from mcp_django.exposure.serializers import Values

#: Plans that are remembered for one Reach.
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

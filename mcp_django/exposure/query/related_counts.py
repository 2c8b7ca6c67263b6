"""How many related records each record has, as a number that a metric adds up.

The count of each record is a subquery and no join, so that it multiplies nothing beside it. It
counts each related record once that the caller may see, behind records that the caller may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.constants import LOOKUP_SEP

from mcp_django.exceptions import QueryError
from mcp_django.exposure.paths import FILTER, GROUP, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import is_of_kind, kind_field, policy_of, rows_between
from mcp_django.exposure.query.guard import guarded


def check_countable(rights: Rights, path: Path) -> None:
    """Raise QueryError where a model on the way gives numbers about many of its records only."""
    for model in (model for hop in path.hops for model in hop.models):
        exposure = rights.exposed.exposures[model]
        if exposure.smallest_group:
            raise QueryError(
                f"{path.text} cannot be counted here: {exposure.label} gives numbers about "
                f"{exposure.smallest_group} or more records at a time. Call aggregate_records "
                f"with the model {exposure.label}."
            )


@dataclass(frozen=True, kw_only=True)
class CountedTable:
    """One table on the way, and the rows of it that may be counted."""

    rows: QuerySet[Any]
    #: The column that is compared with the table before, or with the record.
    near: str
    #: The column that the table behind is compared with. Empty at the end.
    far: str
    #: Of a generic relation: the column that tells which model a row belongs to, and its value.
    kind: str = ""
    of_kind: Q = field(default_factory=Q)


def tables_of(rights: Rights, path: Path, *, using: str) -> Iterator[CountedTable]:
    """The tables that the path passes, and the last one, in its order."""
    following = [hop.link[0].attname for hop in path.hops[1:]]
    for hop, far in zip(path.hops, [*following, ""], strict=True):
        rows: Any = rights.rows(hop.model)
        near = hop.link[1].attname
        if hop.ends is not None:
            ours, theirs = hop.ends
            between = rows_between(rights, ours.model, using=rows._db)
            yield CountedTable(rows=between, near=ours.attname, far=theirs.attname)
            near = theirs.target_field.attname
        if hop.is_generic:
            kind, of_kind = kind_field(hop).attname, is_of_kind(hop, using=using)
            yield CountedTable(rows=rows, near=near, far=far, kind=kind, of_kind=of_kind)
        else:
            yield CountedTable(rows=rows, near=near, far=far)


def count_of_related(rights: Rights, path: Path, *, using: str) -> Subquery:
    """The number of records at the end of the path, for each row of the query around it.

    The query on each table lies in that on the next one. The innermost is compared with the row.
    """
    tables = list(tables_of(rights, path, using=using))
    previous: Any = path.hops[0].link[0].attname
    for _ in tables:
        previous = OuterRef(previous)
    operator = "exact"
    for table in tables:
        names = [name for name in (table.near, table.far, table.kind) if name]
        policy = replace(policy_of(table.rows.model, names), is_correlated=True)
        is_tied = Q((f"{table.near}{LOOKUP_SEP}{operator}", previous))
        rows = guarded(table.rows, policy).filter(is_tied, table.of_kind)
        if table.far:
            previous, operator = rows.values(table.far), "in"
    # A query for the number of the rows. `annotate` would group them by what they show.
    number: Any = rows.query.chain()
    columns = {FILTER: number.policy.columns[FILTER], GROUP: frozenset()}
    number.policy = replace(number.policy, columns=columns)
    number.clear_select_clause()
    number.add_annotation(Count("*"), "number")
    found = Subquery(number)
    # PostgreSQL adds up no NULL of an unknown type, which stands where no row can be visible.
    # Django 6.1 asks the query itself.
    found.empty_result_set_value = found.query.empty_result_set_value = 0
    return found

"""Numbers about records: groups, and what is measured of each, over the rows of find_records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, OrderBy, Q
from django.db.models.constants import LOOKUP_SEP

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure import values
from mcp_django.exposure.budget import limited
from mcp_django.exposure.find import check_shows_numbers, fitting, longest_answer
from mcp_django.exposure.groups import Group, find_group, no_name, parse_groups
from mcp_django.exposure.guard import GROUP
from mcp_django.exposure.metrics import DEFAULT, Metric, floor_of, measured, parse_metrics
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.ordering import MAX_ORDER
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import parse
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.rows import GuardedQuerySet, guarded, settled
from mcp_django.exposure.serializers import encoder

ARGUMENTS = (
    "filters", "exclude", "any_of", "search", "group_by", "metrics", "having", "order_by", "limit",
)  # fmt: skip
DEFAULT_LIMIT, MAX_LIMIT = 50, 200
MAX_HAVING = 8
COMPARISONS = ("exact", "gt", "gte", "lt", "lte")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked about each group. Columns have names of our own: a caller's are never SQL."""

    groups: Sequence[Group]
    metrics: Sequence[Metric]
    having: Q
    order: Sequence[OrderBy]
    limit: int
    floor: int

    @property
    def keys(self) -> dict[str, Any]:
        return {f"_g{at}": group.expression for at, group in enumerate(self.groups)}

    @property
    def measures(self) -> dict[str, Any]:
        return {f"_m{at}": metric.expression for at, metric in enumerate(self.metrics)}

    @property
    def sizes(self) -> dict[str, Any]:
        """Counts that must reach the floor: of the records, and of the values in each sum."""
        if not self.floor:
            return {}
        paths = {metric.path for metric in self.metrics if metric.path is not None}
        lookups = sorted(path.lookup for path in paths)
        return {f"_n{at}": Count(one) for at, one in enumerate(["*", *lookups])}


def aggregate_records(
    rights: Rights, exposure: ModelExposure, arguments: Mapping[str, Any]
) -> bytes:
    """Groups and their metrics, as an encoded JSON object with `groups` and `truncated`.

    Raises QueryError for anything that cannot run, in words that say what would.
    """
    check_shows_numbers(exposure)
    for name in arguments:
        if name not in ARGUMENTS:
            raise unknown(name, ARGUMENTS, "aggregate_records")
    reach = reach_of(rights, exposure)
    if rights.judges_objects(exposure.model):
        raise QueryError(
            f"Records of {exposure.label} are checked one by one for each caller, so no database "
            "can count them. Read them with find_records."
        )
    rows = settled(guarded(rights.rows(exposure.model), reach.group_policy))
    wanted = parse(reach, arguments, using=rows.db)
    question = parse_question(rights, reach, arguments, using=rows.db)
    condition = wanted.build(rights, reach)
    if condition:
        rows = rows.filter(condition)
    with limited(rows.db):
        found = grouped(rows, question) if question.groups else total(rows, question)
    groups = rendered(rights, reach, question, found[: question.limit])
    rights.returned = len(groups)
    return encode(groups, is_truncated=len(found) > question.limit)


def parse_question(
    rights: Rights, reach: Reach, arguments: Mapping[str, Any], *, using: str
) -> Question:
    given = {name: value for name, value in arguments.items() if value is not None}
    groups = parse_groups(rights, reach, given.get("group_by", []), using=using)
    metrics = parse_metrics(rights, reach, given.get("metrics", DEFAULT), groups)
    if not groups and (given.get("having") or given.get("order_by")):
        raise QueryError("having and order_by need a group_by.")
    return Question(
        groups=groups,
        metrics=metrics,
        having=parse_having(metrics, given.get("having", {}), using=using),
        order=parse_order(reach, groups, metrics, given.get("order_by", [])),
        limit=values.integer(given.get("limit", DEFAULT_LIMIT), low=1, high=MAX_LIMIT),
        floor=floor_of(reach.exposure, metrics),
    )


def parse_having(metrics: Sequence[Metric], given: Any, *, using: str) -> Q:
    names = [f"{metric.name}{LOOKUP_SEP}gte" for metric in metrics]
    if not isinstance(given, Mapping) or len(given) > MAX_HAVING:
        raise QueryError(f"having takes an object of at most {MAX_HAVING} comparisons.")
    places = {metric.name: at for at, metric in enumerate(metrics)}
    found = []
    for key, value in given.items():
        name, _, operator = key.partition(LOOKUP_SEP) if isinstance(key, str) else ("", "", "")
        operator = operator or "exact"
        if name not in places or operator not in COMPARISONS:
            raise no_name(key, names, "having")
        at = places[name]
        try:
            converted = values.convert(metrics[at].field, operator, value, using=using)
        except QueryError as error:
            raise QueryError(f"{name}: {error}") from None
        found.append(Q((f"_m{at}{LOOKUP_SEP}{operator}", converted)))
    return Q(*found)


def parse_order(
    reach: Reach, groups: Sequence[Group], metrics: Sequence[Metric], given: Any
) -> list[OrderBy]:
    """The order asked for, then that of the groups: without it a cut would be any.

    NULL comes last on every database: there is no cursor that would need an index.
    """
    if not isinstance(given, list | tuple) or len(given) > MAX_ORDER:
        raise QueryError(f"order_by takes a list of at most {MAX_ORDER} names.")
    names = {group.name: f"_g{at}" for at, group in enumerate(groups)}
    columns = {**names, **{metric.name: f"_m{at}" for at, metric in enumerate(metrics)}}
    found: dict[str, bool] = {}
    for name in given:
        bare = name.removeprefix("-") if isinstance(name, str) else ""
        group = find_group(reach, bare)
        column = columns.get(bare) or columns.get("" if group is None else group.name)
        if column is None:
            raise no_name(bare or name, columns, "order_by")
        found.setdefault(column, bare != name)
    for column in names.values():
        found.setdefault(column, False)
    return [
        OrderBy(F(column), descending=is_descending, nulls_last=True)
        for column, is_descending in found.items()
    ]


def grouped(rows: GuardedQuerySet, question: Question) -> list[dict[str, Any]]:
    """One row more than the limit, where there are more."""
    floors = [Q((f"{name}__gte", question.floor)) for name in question.sizes]
    found = (
        rows.values(**question.keys)
        .annotate(**question.measures, **question.sizes)
        .filter(question.having, *floors)
        .order_by(*question.order)
    )
    return list(found[: question.limit + 1])


def total(rows: GuardedQuerySet, question: Question) -> list[dict[str, Any]]:
    found = rows.aggregate(**question.measures, **question.sizes)
    if any(found[name] < question.floor for name in question.sizes):
        raise QueryError(
            f"There are fewer than {question.floor} records or values, or none, and no numbers "
            "are given about so few. Ask about more of them."
        )
    return [found]


def rendered(
    rights: Rights, reach: Reach, question: Question, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    shown = {}
    for at, group in enumerate(question.groups):
        shown[group.name] = group.rendered(rights, reach, [row[f"_g{at}"] for row in rows])
    for at, metric in enumerate(question.metrics):
        shown[metric.name] = metric.rendered([row[f"_m{at}"] for row in rows])
    return [dict(zip(shown, row, strict=True)) for row in zip(*shown.values(), strict=True)]


def encode(groups: list[dict[str, Any]], *, is_truncated: bool) -> bytes:
    """An answer that is too long in bytes ends early, and says so."""
    encoded, most = encoder.encode(groups), longest_answer()
    if len(encoded) > most and len(groups) > 1:
        encoded, _ = fitting(groups, most)
        is_truncated = True
    return b'{"groups":' + encoded + b',"truncated":' + encoder.encode(is_truncated) + b"}"


def examples(reach: Reach, *, is_grouped: bool) -> dict[str, Any]:
    """Arguments that work, with what there is. Those about groups stand on group_by."""
    found: dict[str, Any] = {"metrics": dict(DEFAULT), "limit": 5}
    summed = next((path.text for path, names in measured(reach) if "sum" in names), None)
    if summed is not None:
        found["metrics"]["sum"] = {"sum": summed}
    paths = [path for path in reach.paths[GROUP] if path.text not in found["metrics"]]
    if paths:
        # Groups by a choice tell most.
        found["group_by"] = [min(paths, key=lambda path: not path.field.choices).text]
        if is_grouped:
            found |= {"having": {"count__gte": 1}, "order_by": ["-count"]}
    return found

"""Numbers about records: groups, and what is measured of each, over the rows of find_records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import (
    Avg,
    BigIntegerField,
    Count,
    DecimalField,
    DurationField,
    F,
    FloatField,
    Max,
    Min,
    OrderBy,
    Q,
    Subquery,
    Sum,
)
from django.db.models.constants import LOOKUP_SEP
from django.db.models.functions import datetime as dates

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure import fields as values
from mcp_django.exposure.fields import choices_of, kind_of, measures_of, quoted
from mcp_django.exposure.limits import limited
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import FILTER, GROUP, METRIC, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths
from mcp_django.exposure.query.arguments import (
    DEFAULT_GROUPS,
    MOST_GROUPS,
    AggregateRecords,
    lookups_of,
    or_default,
)
from mcp_django.exposure.query.content_types import holds_content_type, labels_of_types
from mcp_django.exposure.query.filters import parse
from mcp_django.exposure.query.find import Page, check_shows_numbers
from mcp_django.exposure.query.guard import GuardedQuerySet, guarded, pinned_to_database
from mcp_django.exposure.query.pagination import MAX_ORDER, page_limit
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.related_counts import check_countable, count_of_related
from mcp_django.exposure.query.search import labels_by_key
from mcp_django.exposure.query.selection import fence_column, fenced_labels, target_name
from mcp_django.exposure.query.serializers import Values, converter_of
from mcp_django.exposure.query.tables import (
    Labels,
    Table,
    encode_fitting,
    longest_answer,
    with_members,
)

# What records are grouped by: values of declared paths, and parts and buckets of dates.

MAX_GROUPS = 3
NO_ZONES = (
    "The database of this site has no time zone tables, so it has no parts of points in time. "
    "Group by something else, and filter by period."
)
#: Of dates; datetimes have hours, too.
DAYS: Mapping[str, Any] = {
    "trunc_year": dates.TruncYear,
    "trunc_quarter": dates.TruncQuarter,
    "trunc_month": dates.TruncMonth,
    "trunc_week": dates.TruncWeek,
    "trunc_day": dates.TruncDay,
    "year": dates.ExtractYear,
    "month": dates.ExtractMonth,
    "week_day": dates.ExtractWeekDay,
}
HOURS: Mapping[str, Any] = {"trunc_hour": dates.TruncHour, "hour": dates.ExtractHour}
PARTS: Mapping[str, Mapping[str, Any]] = {"date": DAYS, "datetime": {**DAYS, **HOURS}}


@dataclass(frozen=True, kw_only=True)
class GroupColumn:
    path: Path
    #: Of a date; empty for the value as it is.
    part: str = ""

    @property
    def name(self) -> str:
        """What the answer calls it, however the caller has spelled it."""
        return LOOKUP_SEP.join([self.path.text, *([self.part] if self.part else [])])

    @property
    def value_path(self) -> Path:
        return self.path

    @property
    def expression(self) -> Any:
        column = F(self.path.lookup)
        return PARTS[kind_of(self.path.field)][self.part](column) if self.part else column

    def rendered(self, values: Values) -> Values:
        """The values as records show them; a bucket keeps the offset of the current time zone."""
        if self.part:
            return [one.isoformat() if isinstance(one, date) else one for one in values]
        convert = converter_of(self.path.field, whole=False)
        return values if convert is None else convert(values)

    def labels(self, rights: Rights, access: AccessiblePaths, values: Values) -> Labels | None:
        """What stands for the values of a foreign key."""
        if holds_content_type(self.path.field):
            using = rights.rows(access.model).db
            return labels_of_types(rights, self.path.field, values, using=using)
        if self.part or self.path not in access.group_labels:
            return None
        target = self.path.field.target_field
        columns = [one.field.attname for one in access.group_labels[self.path]]
        keys = {one for one in values if one is not None}
        rows = rights.rows(self.path.field.related_model)
        found = labels_by_key(rows, target.attname, columns, keys)
        shown = zip(values, self.rendered(values), strict=True)
        texts = {str(key): found[value] for value, key in shown if value in found}
        labels = Labels(texts=texts, of=target_name(self.path.field))
        is_untrusted = any(map(access.is_untrusted, access.group_labels[self.path]))
        return fenced_labels(labels, rights) if is_untrusted else labels


def find_group(access: AccessiblePaths, name: Any) -> GroupColumn | None:
    table = access.tables[GROUP]
    if not isinstance(name, str):
        return None
    if name in table:
        return GroupColumn(path=table[name])
    head, _, part = name.rpartition(LOOKUP_SEP)
    path = table.get(head)
    if path is None or part not in PARTS.get(kind_of(path.field), ()):
        return None
    return GroupColumn(path=path, part=part)


def no_name(given: Any, allowed: Iterable[str], what: str) -> QueryError:
    """As for any unknown name, also for what is no text at all."""
    return unknown(given if isinstance(given, str) else quoted(given), allowed, what)


# What is measured of the records in a group, and who may measure it.

MAX_METRICS = 8
LONGEST_NAME = 40
#: The smallest group whose sum says little about any record in it.
LEAST = 5
COUNTS = ("count", "count_distinct")
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "count": Count,
    "count_distinct": partial(Count, distinct=True),
    "sum": Sum,
    "avg": Avg,
    "min": Min,
    "max": Max,
}
DEFAULT = {"count": {"count": "*"}}
#: Fields for sums and averages by the kind of the column. A sum of integers outgrows it, and
#: Django compares it with no number that the column could not hold.
SUMS: Mapping[str, Any] = {
    "integer": BigIntegerField,
    "float": FloatField,
    "decimal": DecimalField,
    "duration": DurationField,
}
AVERAGES: Mapping[str, Any] = {**SUMS, "integer": FloatField}
AVERAGE_DIGITS = 6
#: More digits than any column has.
EXACTLY = Context(prec=1000)


@dataclass(frozen=True, kw_only=True)
class Metric:
    name: str
    function: str
    #: None for the number of records, and of related records.
    path: Path | None
    #: How many related records a record has, where these are added up.
    related: Subquery | None = None
    #: Whether records do not show the column, so that only many of them together may say much.
    is_hidden: bool = False

    @property
    def expression(self) -> Any:
        if self.related is not None:
            return Sum(self.related, output_field=BigIntegerField())
        if self.path is None:
            return Count("*")
        more = {"output_field": self.field} if self.function in ("sum", "avg") else {}
        return FUNCTIONS[self.function](self.path.lookup, **more)

    @property
    def field(self) -> Any:
        """A field for its values, as `having` compares them."""
        if self.path is None or self.function in COUNTS:
            return BigIntegerField()
        if self.value_path is not None:
            return self.value_path.field
        return (SUMS if self.function == "sum" else AVERAGES)[kind_of(self.path.field)]()

    @property
    def value_path(self) -> Path | None:
        """The path, where it is the value of one of the records."""
        return self.path if self.function in ("min", "max") else None

    def rendered(self, values: Values) -> Values:
        """As records show them."""
        field = self.field
        if self.related is not None:
            return [value or 0 for value in values]  # a sum over no records is NULL
        if kind_of(field) == "decimal" and self.path is not None and not choices_of(field):
            more = 2 if self.function == "avg" else 0
            return rounded(values, self.path.field, more=more)
        if kind_of(field) == "float" and self.function in ("sum", "avg"):
            digits = 15 if self.function == "sum" else AVERAGE_DIGITS
            values = [significant(value, digits) for value in values]
        convert = converter_of(field, whole=False)
        return values if convert is None else convert(values)


def significant(value: float | None, digits: int) -> float | None:
    """Without the digits that come of dividing, or of binary fractions: two places at least."""
    if value is None or not value or not math.isfinite(value):
        return value
    return round(value, max(2, digits - 1 - math.floor(math.log10(abs(value)))))


def rounded(values: Values, field: Any, *, more: int) -> Values:
    """To the places of the column: databases differ in how many they give to a result."""
    places = getattr(getattr(field, "output_field", field), "decimal_places", None)
    if places is None:
        return values
    step = Decimal(1).scaleb(-places - more)
    return [
        one.quantize(step, context=EXACTLY) if one is not None and one.is_finite() else one
        for one in values
    ]


def floor_of(exposure: ModelExposure, metrics: Sequence[Metric] = ()) -> int:
    """The fewest records that a group may have to be shown with these metrics."""
    is_hidden = exposure.aggregates_only or any(metric.is_hidden for metric in metrics)
    return max(exposure.smallest_group, LEAST if is_hidden else 0)


def functions_of(access: AccessiblePaths, path: Path) -> tuple[str, ...]:
    """What this caller may ask of a column."""
    is_measured, is_grouped = (
        any(path.names == one.names for one in access.usable[use]) for use in (METRIC, GROUP)
    )
    measures = measures_of(path.field) if is_measured else ()
    if path.names not in access.shown:
        # The smallest or largest value would be that of one record.
        measures = tuple(name for name in measures if name in ("sum", "avg"))
        is_measured = False
    # What can be grouped by can be counted anyway.
    return (*COUNTS, *measures) if is_measured or is_grouped else measures


def measured(access: AccessiblePaths) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Each column that this caller may ask something of, and what."""
    known = {path.names: path for use in (METRIC, GROUP) for path in access.paths[use]}
    for path in known.values():
        if functions := functions_of(access, path):
            yield path, functions


MAX_HAVING = 8
COMPARISONS = ("exact", "gt", "gte", "lt", "lte")


@dataclass(frozen=True, kw_only=True)
class AggregateQuery:
    """What is asked about each group. Columns have names of our own: a caller's are never SQL."""

    groups: Sequence[GroupColumn]
    metrics: Sequence[Metric]
    having: Q
    order: Sequence[OrderBy]
    limit: int
    #: What the caller should know of the limit.
    note: str
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
    rights: Rights, exposure: ModelExposure, asked: AggregateRecords, *, longest: int | None = None
) -> Page:
    """Groups and their metrics in at most `longest` bytes, with `truncated` where there are more.

    Raises QueryError for anything that cannot run, in words that say what would.
    """
    check_shows_numbers(exposure)
    access = paths_of_call(rights, exposure, asked)
    if rights.checks_rows_one_by_one(exposure.model):
        raise QueryError(
            f"Records of {exposure.label} are checked one by one for each caller, so no database "
            "can count them. Read them with find_records."
        )
    rows = pinned_to_database(guarded(rights.rows(exposure.model), access.group_policy))
    parsed_filters = parse(rights, access, asked, using=rows.db)
    question = AggregateParser(rights=rights, access=access, using=rows.db).parse(asked)
    condition = parsed_filters.build(rights, access)
    if condition:
        rows = rows.filter(condition)
    with limited(rows.db):
        found = grouped(rows, question) if question.groups else total(rows, question)
    groups = rendered(rights, access, question, found[: question.limit])
    encoded, fitting = encode_fitting(groups, longest or longest_answer())
    more: dict[str, Any] = {"note": question.note} if question.note else {}
    # An answer that is too long in bytes ends early, and says so.
    if len(fitting.rows) < len(found):
        more = {"truncated": True, **more}
    return Page(encoded=with_members(encoded, more), table=fitting)


@dataclass(frozen=True, kw_only=True)
class AggregateParser:
    """Parses what one call asks about groups of records. Raises QueryError in words that help."""

    rights: Rights
    access: AccessiblePaths
    using: str

    def parse(self, asked: AggregateRecords) -> AggregateQuery:
        groups = self._groups(or_default(asked.group_by, []))
        metrics = self._metrics(or_default(asked.metrics, DEFAULT), groups)
        if not groups and (asked.having or asked.order_by):
            raise QueryError("having and order_by need a group_by.")
        limit, note = page_limit(or_default(asked.limit), default=DEFAULT_GROUPS, most=MOST_GROUPS)
        return AggregateQuery(
            groups=groups,
            metrics=metrics,
            having=self._having(metrics, or_default(asked.having, {})),
            order=self._order(groups, metrics, or_default(asked.order_by, [])),
            limit=limit,
            note=note,
            floor=floor_of(self.access.exposure, metrics),
        )

    def _groups(self, given: Any) -> list[GroupColumn]:
        """Paths to group by, or parts of such dates."""
        if not isinstance(given, list | tuple) or len(given) > MAX_GROUPS:
            raise QueryError(f"group_by takes a list of at most {MAX_GROUPS} names.")
        found = {}
        for name in given:
            group = find_group(self.access, name)
            if group is None:
                raise self._refusal(name)
            found[group.name] = group
        features: Any = connections[self.using].features
        is_zoned = any(
            one.part and kind_of(one.path.field) == "datetime" for one in found.values()
        )
        # Without the tables Django refuses a bucket of NULL, in the zone of the database as well.
        if is_zoned and settings.USE_TZ and not features.has_zoneinfo_database:
            raise QueryError(f"group_by: {NO_ZONES}")
        return list(found.values())

    def _refusal(self, name: Any) -> QueryError:
        """What could be grouped by instead."""
        head = name.rpartition(LOOKUP_SEP)[0] if isinstance(name, str) else ""
        path = self.access.tables[GROUP].get(head)
        if path is not None and (parts := PARTS.get(kind_of(path.field))):
            return QueryError(f"group_by: {path.text} can be grouped by {', '.join(parts)}.")
        if (error := self._many_valued(name)) is not None:
            return QueryError(f"group_by: {error}")
        return no_name(name, self.access.names(GROUP), "group_by")

    def _many_valued(self, name: Any) -> QueryError | None:
        """For a path with many values: adding up over it would count a record many times."""
        known = {**self.access.counted, **self.access.tables[FILTER]}
        path = known.get(name) if isinstance(name, str) else None
        if path is None or not path.is_many:
            return None
        sentence = f"{path.text} has many values for one record, so it cannot be aggregated here."
        if path.text in self.access.counted:
            sentence += f' Count it, as in {{"{path.hops[-1].name}": {{"count": "{path.text}"}}}}.'
        model = next(hop.model for hop in path.hops if hop.is_many)
        if model in self.rights.exposed.exposures and self.rights.may_view(model):
            sentence += f" Ask {model._meta.label_lower} for it."
        return QueryError(sentence)

    def _metrics(self, given: Any, groups: Sequence[GroupColumn]) -> list[Metric]:
        if not isinstance(given, Mapping) or not 0 < len(given) <= MAX_METRICS:
            raise QueryError(f"metrics takes an object of 1 to {MAX_METRICS} names and metrics.")
        taken = {group.name for group in groups}
        try:
            return [self._metric(name, one, taken=taken) for name, one in given.items()]
        except QueryError as error:
            raise QueryError(f"metrics: {error}") from None

    def _metric(self, name: Any, given: Any, *, taken: set[str]) -> Metric:
        access = self.access
        is_short = isinstance(name, str) and name.isascii() and len(name) <= LONGEST_NAME
        # In `having`, two underscores end a name.
        if not is_short or "__" in name or not name.isidentifier():
            raise QueryError(
                f"{quoted(name)} is no name for a metric: take at most {LONGEST_NAME} letters, "
                "digits and single underscores."
            )
        if name in taken:
            raise QueryError(
                f"{name} is what a group is called already. Name the metric otherwise."
            )
        if not isinstance(given, Mapping) or len(given) != 1:
            raise QueryError(f"{name} must be an object with one function and its path.")
        ((function, column),) = given.items()
        if not isinstance(function, str) or function not in FUNCTIONS:
            hint = self._form_hint(name, name, function)
            raise QueryError(f"{no_name(function, FUNCTIONS, 'a metric')}{hint}")
        if function == "count" and column == "*":
            return Metric(name=name, function=function, path=None)
        if column == "*":
            hint = self._form_hint(name, function, name)
            raise QueryError(f"{function} takes a path.{hint}")
        if function == "count" and isinstance(column, str) and column in access.counted:
            check_countable(self.rights, access.counted[column])
            related = count_of_related(self.rights, access.counted[column], using=self.using)
            return Metric(name=name, function=function, path=None, related=related)
        text = column if isinstance(column, str) else ""
        path = access.tables[METRIC].get(text) or access.tables[GROUP].get(text)
        if path is None or not functions_of(access, path):
            names = [one.text for one, functions in measured(access) if function in functions]
            raise self._many_valued(column) or no_name(column, names, function)
        functions = functions_of(access, path)
        if function not in functions:
            raise QueryError(f"{path.text} has no {function}. It has: {', '.join(functions)}.")
        is_hidden = path.names not in access.shown and function not in COUNTS
        return Metric(name=name, function=function, path=path, is_hidden=is_hidden)

    def _form_hint(self, name: str, function: Any, column: Any) -> str:
        """The metric that was probably meant, in full. Empty where it can be of no column."""
        columns = [path.text for path, functions in measured(self.access) if function in functions]
        if not columns:
            return ""
        path = column if column in columns else columns[0]
        return f' Write {{"{name}": {{"{function}": "{path}"}}}}.'

    def _having(self, metrics: Sequence[Metric], given: Any) -> Q:
        names = [f"{metric.name}{LOOKUP_SEP}gte" for metric in metrics]
        comparisons = list(lookups_of(given)) if isinstance(given, Mapping) else None
        if comparisons is None or len(comparisons) > MAX_HAVING:
            raise QueryError(f"having takes an object of at most {MAX_HAVING} comparisons.")
        places = {metric.name: at for at, metric in enumerate(metrics)}
        found = []
        for key, value in comparisons:
            name, _, operator = key.partition(LOOKUP_SEP) if isinstance(key, str) else ("", "", "")
            operator = operator or "exact"
            if name not in places or operator not in COMPARISONS:
                raise no_name(key, names, "having")
            at = places[name]
            try:
                converted = values.convert(metrics[at].field, operator, value, using=self.using)
            except QueryError as error:
                raise QueryError(f"having: {name}: {error}") from None
            found.append(Q((f"_m{at}{LOOKUP_SEP}{operator}", converted)))
        return Q(*found)

    def _order(
        self, groups: Sequence[GroupColumn], metrics: Sequence[Metric], given: Any
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
            group = find_group(self.access, bare)
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


def grouped(rows: GuardedQuerySet, question: AggregateQuery) -> list[dict[str, Any]]:
    """One row more than the limit, where there are more."""
    floors = [Q((f"{name}__gte", question.floor)) for name in question.sizes]
    found = (
        rows.values(**question.keys)
        .annotate(**question.measures, **question.sizes)
        .filter(question.having, *floors)
        .order_by(*question.order)
    )
    return list(found[: question.limit + 1])


def total(rows: GuardedQuerySet, question: AggregateQuery) -> list[dict[str, Any]]:
    found = rows.aggregate(**question.measures, **question.sizes)
    if any(found[name] < question.floor for name in question.sizes):
        raise QueryError(
            f"There are fewer than {question.floor} records or values, or none, and no numbers "
            "are given about so few. Ask about more of them."
        )
    return [found]


def rendered(
    rights: Rights,
    access: AccessiblePaths,
    question: AggregateQuery,
    rows: Sequence[Mapping[str, Any]],
) -> Table:
    columns = {name: [row[name] for row in rows] for name in (*question.keys, *question.measures)}
    labels = {}
    for group, column in zip(question.groups, columns.values(), strict=False):
        if (found := group.labels(rights, access, column)) is not None:
            labels[group.name] = found
    members: list[GroupColumn | Metric] = [*question.groups, *question.metrics]
    shown = [
        fence_column(column, rights)
        if member.value_path is not None and access.is_untrusted(member.value_path)
        else member.rendered(column)
        for member, column in zip(members, columns.values(), strict=True)
    ]
    names = tuple(member.name for member in members)
    return Table(columns=names, rows=list(zip(*shown, strict=True)), labels=labels)


def examples(access: AccessiblePaths) -> dict[str, Any]:
    """Return arguments that work, with what there is."""
    metrics = dict(DEFAULT)
    summed = next((path.text for path, names in measured(access) if "sum" in names), None)
    if summed is not None:
        metrics["sum"] = {"sum": summed}
    call: dict[str, Any] = {"model": access.exposure.label, "metrics": metrics, "limit": 5}
    paths = [path for path in access.paths[GROUP] if path.text not in metrics]
    if paths:
        # Groups by a choice tell most.
        call["group_by"] = [min(paths, key=lambda path: not choices_of(path.field)).text]
        call |= {"having": {"count__gte": 1}, "order_by": ["-count"]}
    return call

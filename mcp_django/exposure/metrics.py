"""What is measured of the records in a group, and who may measure it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import partial
from typing import Any

from django.db.models import (
    Avg,
    BigIntegerField,
    Count,
    DecimalField,
    DurationField,
    FloatField,
    Max,
    Min,
    Sum,
)

from mcp_django.exceptions import QueryError
from mcp_django.exposure.groups import Group, many_valued, no_name
from mcp_django.exposure.guard import GROUP, METRIC
from mcp_django.exposure.operators import kind_of, measures_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach
from mcp_django.exposure.serializers import Values, converter_of
from mcp_django.exposure.values import quoted

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
#: More digits than any column has.
EXACTLY = Context(prec=1000)


@dataclass(frozen=True, kw_only=True)
class Metric:
    name: str
    function: str
    #: None for the number of records.
    path: Path | None
    #: Whether records do not show the column, so that only many of them together may say much.
    is_hidden: bool = False

    @property
    def expression(self) -> Any:
        if self.path is None:
            return Count("*")
        more = {"output_field": self.field} if self.function in ("sum", "avg") else {}
        return FUNCTIONS[self.function](self.path.lookup, **more)

    @property
    def field(self) -> Any:
        """A field for its values, as `having` compares them."""
        if self.path is None or self.function in COUNTS:
            return BigIntegerField()
        if self.function in ("min", "max"):
            return self.path.field
        return (SUMS if self.function == "sum" else AVERAGES)[kind_of(self.path.field)]()

    def rendered(self, values: Values) -> Values:
        """As records show them."""
        field = self.field
        if kind_of(field) == "decimal" and self.path is not None and not field.choices:
            more = 2 if self.function == "avg" else 0
            return rounded(values, places_of(self.path.field), more=more)
        convert = converter_of(field, whole=False)
        return values if convert is None else convert(values)


def places_of(field: Any) -> int | None:
    return getattr(getattr(field, "output_field", field), "decimal_places", None)


def rounded(values: Values, places: int | None, *, more: int) -> Values:
    """To the places of the column: databases differ in how many they give to a result."""
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


def functions_of(reach: Reach, path: Path) -> tuple[str, ...]:
    """What this caller may ask of a column."""
    is_measured, is_grouped = (
        any(path.names == one.names for one in reach.paths[use]) for use in (METRIC, GROUP)
    )
    measures = measures_of(path.field) if is_measured else ()
    if path.names not in reach.shown:
        # The smallest or largest value would be that of one record.
        measures = tuple(name for name in measures if name in ("sum", "avg"))
        is_measured = False
    # What can be grouped by can be counted anyway.
    return (*COUNTS, *measures) if is_measured or is_grouped else measures


def measured(reach: Reach) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Each column that this caller may ask something of, and what."""
    known = {path.names: path for use in (METRIC, GROUP) for path in reach.paths[use]}
    for path in known.values():
        if functions := functions_of(reach, path):
            yield path, functions


def parse_metrics(
    rights: Rights, reach: Reach, given: Any, groups: Sequence[Group]
) -> list[Metric]:
    """Raises QueryError for what is not an object of metrics, or may not be measured."""
    if not isinstance(given, Mapping) or not 0 < len(given) <= MAX_METRICS:
        raise QueryError(f"metrics takes an object of 1 to {MAX_METRICS} names and metrics.")
    taken = {group.name for group in groups}
    return [parse_metric(rights, reach, name, one, taken=taken) for name, one in given.items()]


def parse_metric(
    rights: Rights, reach: Reach, name: Any, given: Any, *, taken: set[str]
) -> Metric:
    if not is_name(name):
        raise QueryError(
            f"{quoted(name)} is no name for a metric: take at most {LONGEST_NAME} letters, "
            "digits and single underscores."
        )
    if name in taken:
        raise QueryError(f"{name} is what a group is called already. Name the metric otherwise.")
    if not isinstance(given, Mapping) or len(given) != 1:
        raise QueryError(f"{name} must be an object with one function and its path.")
    ((function, column),) = given.items()
    if not isinstance(function, str) or function not in FUNCTIONS:
        raise no_name(function, FUNCTIONS, "metrics")
    if function == "count" and column == "*":
        return Metric(name=name, function=function, path=None)
    path = find_column(reach, column)
    if path is None:
        names = [one.text for one, functions in measured(reach) if function in functions]
        raise many_valued(rights, reach, column) or no_name(column, names, function)
    functions = functions_of(reach, path)
    if function not in functions:
        raise QueryError(f"{path.text} has no {function}. It has: {', '.join(functions)}.")
    is_hidden = path.names not in reach.shown and function not in COUNTS
    return Metric(name=name, function=function, path=path, is_hidden=is_hidden)


def is_name(name: Any) -> bool:
    """Whether it can stand in `having`, where two underscores end a name."""
    is_short = isinstance(name, str) and len(name) <= LONGEST_NAME
    return is_short and name.isascii() and name.isidentifier() and "__" not in name


def find_column(reach: Reach, column: Any) -> Path | None:
    if not isinstance(column, str):
        return None
    path = reach.tables[METRIC].get(column) or reach.tables[GROUP].get(column)
    return path if path is not None and functions_of(reach, path) else None

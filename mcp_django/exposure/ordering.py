"""A total order of rows, and the rows behind a position in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import FloatField, Q, Value

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.guard import ORDER
from mcp_django.exposure.operators import kind_of
from mcp_django.exposure.reach import Reach
from mcp_django.exposure.values import quoted

MAX_ORDER = 4


@dataclass(frozen=True, kw_only=True)
class Ordering:
    lookup: str
    field: Any
    is_descending: bool
    is_nullable: bool

    @property
    def term(self) -> str:
        """For `order_by`. It ends in a column's own name, so no Meta.ordering is followed."""
        return f"-{self.lookup}" if self.is_descending else self.lookup

    def operand(self, value: Any) -> Any:
        """A float for a decimal column (see `position`) must not be rounded on its way back."""
        if isinstance(value, float) and kind_of(self.field) == "decimal":
            return Value(value, FloatField())
        return value

    def position(self, raw: Any, converted: Any, *, vendor: str) -> Any:
        """What a cursor keeps of a row, so that it can come back to exactly here.

        SQLite keeps decimals as binary floats. Rounded to two places they are neither equal to
        nor on the right side of the row that they came from, and pages would lose rows. Values of
        the site's own classes travel as the database has them.
        """
        if hasattr(self.field, "from_db_value"):
            return raw
        if vendor == "sqlite" and raw is not None and kind_of(self.field) == "decimal":
            return float(raw)
        return converted


def parse_order(reach: Reach, given: Any) -> list[Ordering]:
    """The order asked for, then the primary key: without a total order, pages would lose rows."""
    if given is None:
        given = reach.default_order
    if not isinstance(given, list | tuple) or len(given) > MAX_ORDER:
        names = reach.names(ORDER)
        example = f' Use for example ["-{names[0]}"].' if names else ""
        raise QueryError(f"order_by takes a list of at most {MAX_ORDER} names.{example}")
    found: dict[str, Ordering] = {}
    for name in given:
        if not isinstance(name, str):
            raise QueryError(f"{quoted(name)} is not a name. order_by takes a list of names.")
        one = ordering(reach, name)
        found.setdefault(one.lookup, one)
    for part in reach.keys:
        one = Ordering(lookup=part.attname, field=part, is_descending=False, is_nullable=False)
        found.setdefault(one.lookup, one)
    return list(found.values())


def ordering(reach: Reach, name: str) -> Ordering:
    bare = name.removeprefix("-")
    path = reach.orders.get(bare)
    if path is None:
        raise unknown(bare, reach.names(ORDER), "order_by")
    return Ordering(
        lookup=path.lookup,
        field=path.field,
        is_descending=name != bare,
        is_nullable=path.is_nullable,
    )


def after(order: Sequence[Ordering], position: Sequence[Any], *, using: str) -> Q:
    """The rows behind `position`: (a > A) or (a = A and b > B) or ...

    Each database keeps its own place for NULL, so that its indexes still give the order.
    """
    nulls_are_low = connections[using].features.order_by_nulls_first
    result = Q()
    equal = Q()
    for one, value in zip(order, position, strict=True):
        beyond = later(one, value, nulls_are_low=nulls_are_low)
        if beyond is not None:
            result |= equal & beyond
        if value is None:
            equal &= Q((f"{one.lookup}__isnull", True))
        else:
            equal &= Q((one.lookup, one.operand(value)))
    bound = bounded(order[0], position[0], nulls_are_low=nulls_are_low)
    return bound & result if bound else result


def later(one: Ordering, value: Any, *, nulls_are_low: bool) -> Q | None:
    nulls_come_first = nulls_are_low != one.is_descending
    if value is None:
        return Q((f"{one.lookup}__isnull", False)) if nulls_come_first else None
    beyond = "lt" if one.is_descending else "gt"
    strict = Q((f"{one.lookup}__{beyond}", one.operand(value)))
    if one.is_nullable and not nulls_come_first:
        return strict | Q((f"{one.lookup}__isnull", True))
    return strict


def bounded(first: Ordering, value: Any, *, nulls_are_low: bool) -> Q | None:
    """`a >= A` beside the OR: no planner finds an index range in an OR of conjunctions."""
    if value is None or (first.is_nullable and nulls_are_low == first.is_descending):
        return None
    reached = "lte" if first.is_descending else "gte"
    return Q((f"{first.lookup}__{reached}", first.operand(value)))

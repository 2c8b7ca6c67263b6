"""Pages: a total order of rows, and the cursor that goes on behind a position in it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import FloatField, Q, Value
from django.utils.dateparse import parse_duration

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.fields import integer, kind_of, quoted, whole_number
from mcp_django.exposure.paths import ORDER, RETURN
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths
from mcp_django.exposure.query.arguments import FindRecords, or_default
from mcp_django.signing import seal, unseal

# Where a page ended, signed and bound to who asked what.

LIFETIME = timedelta(hours=1)
LONGEST = 8192
PURPOSE = "cursor"
STALE = "This cursor is not valid for this query. Call again without a cursor."
#: Arguments that a position depends on. `fields` and `limit` may change from page to page.
BINDING = ("filters", "exclude", "any_of", "search", "order_by")


def binding(rights: Rights, access: AccessiblePaths, asked: FindRecords) -> str:
    """What a position is good for: who asks for what."""
    what = [or_default(getattr(asked, name)) for name in BINDING]
    who = [rights.principal.key, rights.principal.server, access.exposure.label, access.digest]
    return json.dumps([who, what], sort_keys=True, default=str)


def encode(bound: str, position: Sequence[Any]) -> str:
    """A cursor. Anybody can read it, so the caller may see whatever `position` holds."""
    text = json.dumps(position, separators=(",", ":"), default=as_written)
    return seal(text, purpose=PURPOSE, bound_to=bound)


def decode(bound: str, cursor: Any) -> list[Any]:
    """The position. Raises QueryError with one sentence, whatever is wrong."""
    text = None
    if isinstance(cursor, str):
        seconds = int(LIFETIME.total_seconds())
        text = unseal(cursor, purpose=PURPOSE, bound_to=bound, max_age=seconds, longest=LONGEST)
    if text is None:
        raise QueryError(STALE)
    position: list[Any] = json.loads(text)
    return position


def as_written(value: Any) -> Any:
    """A value as its own field reads it, when it is compared."""
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Decimal | date | time | timedelta | UUID):
        return str(value)
    raise TypeError(f"No cursor for {type(value).__name__}")


def page_limit(given: Any, *, default: int, most: int) -> tuple[int, str]:
    """How many to return, and a sentence where that is less than what the caller asked for."""
    if given is None:
        return default, ""
    try:
        if whole_number(given) > most:
            return most, f"limit is at most {most}."
        return integer(given, low=1, high=most), ""
    except QueryError as error:
        raise QueryError(f"limit: {error}") from None


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

    def operand(self, value: Any, *, vendor: str) -> Any:
        """Return a value of a cursor, to be compared with the column. Fields read their own texts,
        except durations and decimals that are no numbers.
        """
        if value is None:
            return None
        if vendor == "sqlite":
            return Value(b64decode(value["base64"]) if isinstance(value, dict) else value)
        kind = kind_of(self.field) if isinstance(value, str) else ""
        if kind == "decimal" and not Decimal(value).is_finite():
            return Value(float(value), FloatField())
        return parse_duration(value) if kind == "duration" else value

    def position(self, raw: Any, converted: Any, *, vendor: str) -> Any:
        """Return what a cursor keeps of a row, so that it can come back to exactly here.

        A column of SQLite may hold anything, and decimals are binary floats there: what Python
        makes of them is neither equal to nor on the right side of the row that it came from, and
        pages would lose rows. Values of the site's own classes travel as the database has them.
        """
        return raw if vendor == "sqlite" or hasattr(self.field, "from_db_value") else converted


def parse_order(access: AccessiblePaths, given: Any) -> list[Ordering]:
    """The order asked for, then the primary key: without a total order, pages would lose rows."""
    if given is None:
        given = access.default_order  # as many as the site wants
    elif not isinstance(given, list | tuple) or len(given) > MAX_ORDER:
        names = access.names(ORDER)
        example = f' Use for example ["-{names[0]}"].' if names else ""
        raise QueryError(f"order_by takes a list of at most {MAX_ORDER} names.{example}")
    found: dict[str, Ordering] = {}
    for name in given:
        if not isinstance(name, str):
            raise QueryError(f"{quoted(name)} is not a name. order_by takes a list of names.")
        one = ordering(access, name)
        found.setdefault(one.lookup, one)
    for part in access.keys:
        one = Ordering(lookup=part.attname, field=part, is_descending=False, is_nullable=False)
        found.setdefault(one.lookup, one)
    return list(found.values())


def is_shown(access: AccessiblePaths, order: Sequence[Ordering]) -> bool:
    """Whether records may show these callers every column of the order."""
    shown = {path.lookup for path in access.usable[RETURN]}
    return all(shown & same_columns(one) for one in order)


def same_columns(one: Ordering) -> set[str]:
    """The column, and those of parents that a link to the parent is equal to."""
    found, field = {one.lookup}, one.field
    while field.remote_field and field.remote_field.parent_link:
        field = field.target_field
        found.add(field.attname)
    return found


def ordering(access: AccessiblePaths, name: str) -> Ordering:
    bare = name.removeprefix("-")
    path = access.orders.get(bare)
    if path is None:
        raise unknown(bare, access.names(ORDER), "order_by")
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
    vendor = connections[using].vendor
    operands = [
        one.operand(value, vendor=vendor) for one, value in zip(order, position, strict=True)
    ]
    result = Q()
    equal = Q()
    for one, value in zip(order, operands, strict=True):
        beyond = later(one, value, nulls_are_low=nulls_are_low)
        if beyond is not None:
            result |= equal & beyond
        if value is None:
            equal &= Q((f"{one.lookup}__isnull", True))
        else:
            equal &= Q((one.lookup, value))
    bound = bounded(order[0], operands[0], nulls_are_low=nulls_are_low)
    return bound & result if bound else result


def later(one: Ordering, value: Any, *, nulls_are_low: bool) -> Q | None:
    nulls_come_first = nulls_are_low != one.is_descending
    if value is None:
        return Q((f"{one.lookup}__isnull", False)) if nulls_come_first else None
    beyond = "lt" if one.is_descending else "gt"
    strict = Q((f"{one.lookup}__{beyond}", value))
    if one.is_nullable and not nulls_come_first:
        return strict | Q((f"{one.lookup}__isnull", True))
    return strict


def bounded(first: Ordering, value: Any, *, nulls_are_low: bool) -> Q | None:
    """`a >= A` beside the OR: no planner finds an index range in an OR of conjunctions."""
    if value is None or (first.is_nullable and nulls_are_low == first.is_descending):
        return None
    reached = "lte" if first.is_descending else "gte"
    return Q((f"{first.lookup}__{reached}", value))

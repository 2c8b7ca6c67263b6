"""Values that conditions take: harmless ones, and those that would meet what is hidden."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import JSONField
from django.utils.duration import duration_string

from tests.leaks.canaries import CORE

HARMLESS: dict[str, Any] = {
    "BigAutoField": 1, "BigIntegerField": 1, "BooleanField": True, "DateField": "2026-01-31",
    "DateTimeField": "2026-01-31T12:00:00Z", "DecimalField": "1.00", "DurationField": "P1D",
    "FloatField": 1.5, "GeneratedField": 2, "GenericIPAddressField": "1.2.3.4", "AutoField": 1,
    "IntegerField": 1, "PositiveBigIntegerField": 1, "TimeField": "12:00",
    "UUIDField": "6f1c2a4e-8c1b-4a57-9d43-2f0b9c7e5a10",
}  # fmt: skip
CUTS = {
    "contains": slice(1, CORE), "icontains": slice(1, CORE), "startswith": slice(CORE),
    "istartswith": slice(CORE), "endswith": slice(-CORE, None), "iendswith": slice(-CORE, None),
}  # fmt: skip
#: What parts of dates are compared with. The first world has the year 2000, the second has not.
PARTS: dict[str, Any] = {"year": 2000, "date": "2000-02-03", "time": "12:00"}
TRANSFORMS_TEXT = """
year iso_year month day week_day iso_week_day week quarter hour minute second date time backwards
"""
TRANSFORMS = frozenset(TRANSFORMS_TEXT.split())


def values_for(field: Any, lookup: str, *, aim: Any, keys: list[Any]) -> list[Any]:
    """What a lookup on a field is tried with. Wrong kinds of values are tried elsewhere."""
    first, _, operator = lookup.rpartition("__")
    if operator == "isnull":
        return [True, False]
    part = first.split("__")[0] or operator
    if part in TRANSFORMS and not isinstance(field, JSONField):
        found = [PARTS.get(part, 2)]
    elif field is not None and field.is_relation:
        found = keys or [1]
    else:
        kind = "" if field is None else field.get_internal_type()
        found = [HARMLESS.get(kind, "x"), *([] if aim is None else [aim])]
    shaped = [cut(as_json(one), operator) for one in found]
    if operator in ("in", "range"):
        return [[one] * (1 if operator == "in" else 2) for one in shaped]
    return shaped


def as_json(value: Any) -> Any:
    if isinstance(value, timedelta):
        return duration_string(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return str(value["secret_key"])
    return value


def cut(value: Any, operator: str) -> Any:
    if not isinstance(value, str):
        return value
    return value.swapcase() if operator == "iexact" else value[CUTS.get(operator, slice(None))]


def word(value: Any) -> str:
    """What a search is tried with."""
    return str(as_json(value))[:CORE]

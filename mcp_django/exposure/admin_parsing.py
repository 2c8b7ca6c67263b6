"""JSON values -> the Python values that form fields mean by them, before any locale is asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings
from django.forms import fields
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime, parse_duration, parse_time

from mcp_django.exposure.function_arguments import MOST_DIGITS, shown


class Unfit(Exception):
    """A value that a field cannot take. Says what it takes."""


def parsed(field: fields.Field, value: Any) -> Any:
    """What the value means to this field. Raises Unfit. Nothing is None, whatever the field."""
    if isinstance(field, fields.BooleanField) and not isinstance(field, fields.NullBooleanField):
        return boolean(value)
    for kind, parse in PARSERS:
        if isinstance(field, kind):
            return None if value is None or value == "" else parse(value)
    if takes_text(field) and not (value is None or isinstance(value, str)):
        raise Unfit(f"{shown_value(value)} is not a text.")
    return value


def takes_text(field: fields.Field) -> bool:
    """Whether values are texts as they are. JSON and arrays are CharFields that write others."""
    is_own = type(field).prepare_value in (fields.Field.prepare_value, UUID_TEXT)
    return isinstance(field, fields.CharField) and is_own


UUID_TEXT = fields.UUIDField.prepare_value


def number(value: Any) -> Decimal:
    """Parsed here: "1234.125" typed into a German form is 1234125."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Unfit(f"{shown_value(value)} is not a number.")
    try:
        found = Decimal(str(value).strip())
    except InvalidOperation:
        raise Unfit(f"{shown_value(value)} is not a number.") from None
    # Written out, 1e999999999 would fill the memory.
    if not found.is_finite() or abs(found.adjusted()) > MOST_DIGITS:
        raise Unfit(f"{shown_value(value)} is out of range.")
    return found


def boolean(value: Any) -> bool:
    """Strictly: the text "false" would tick a box."""
    if not isinstance(value, bool):
        raise Unfit(f"{shown_value(value)} is not true or false.")
    return value


def by(parse: Callable[[str], Any], what: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            found = parse(value.strip()) if isinstance(value, str) else None
        except (ValueError, OverflowError):
            found = None
        if found is None:
            raise Unfit(f"{shown_value(value)} is not {what}.")
        return found

    return read


def instant(text: str) -> datetime | None:
    """A point in time. A day stands for its first instant."""
    found = parse_datetime(text)
    if found is not None and timezone.is_aware(found):
        local = timezone.localtime(found)
        return local if settings.USE_TZ else local.replace(tzinfo=None)
    return found


PARSERS: tuple[tuple[type[fields.Field], Callable[[Any], Any]], ...] = (
    (fields.NullBooleanField, boolean),
    (fields.IntegerField, number),
    (fields.SplitDateTimeField, by(instant, "a time such as 2026-01-31T14:30:00+00:00")),
    (fields.DateTimeField, by(instant, "a time such as 2026-01-31T14:30:00+00:00")),
    (fields.DateField, by(parse_date, "a day such as 2026-01-31")),
    (fields.TimeField, by(parse_time, "a time of day such as 14:30:00")),
    (fields.DurationField, by(parse_duration, "a duration such as P1DT2H30M")),
)
#: What forms compare by its value, so that it can be checked whether they understood it.
EXACT = (Decimal, bool, date, time, timedelta)


def is_same(meant: Any, got: Any) -> bool:
    if isinstance(meant, Decimal) and isinstance(got, float):
        return float(meant) == got
    if isinstance(meant, datetime) and isinstance(got, datetime):
        if timezone.is_naive(meant) and timezone.is_aware(got):
            got = timezone.make_naive(got)
        elif timezone.is_aware(meant):
            # Of times in the hour that comes twice no two zones are ever equal.
            meant, got = meant.astimezone(UTC), got.astimezone(UTC)
    return bool(meant == got)


def shown_value(value: Any) -> str:
    if value is None or isinstance(value, (str, int, float)):
        return shown(value)
    return "A list" if isinstance(value, list) else "An object"

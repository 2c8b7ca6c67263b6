"""Which operators each kind of field has, and what values. There are no regular expressions."""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connections, models
from django.utils import timezone
from django.utils.dateparse import parse_duration

from mcp_django.exceptions import QueryError

# One field that cannot be used takes nothing else of its model away, and the log names it.

logger = logging.getLogger("mcp_django")

#: Characters of the error in a line.
LONGEST_ERROR = 300
#: What has been logged in this process.
logged: set[tuple[str, str]] = set()


def log_once(name: str, sentence: str, error: Exception) -> None:
    """Log what cannot be done with a field, and why, once in each process."""
    if (name, sentence) not in logged:
        logged.add((name, sentence))
        # Not the traceback: those of packages that render with templates run to pages.
        logger.warning("%s %s %s", name, sentence, ascii(error)[:LONGEST_ERROR])


TEXT = (
    "exact", "iexact", "in", "isnull", "contains", "icontains",
    "startswith", "istartswith", "endswith", "iendswith",
)  # fmt: skip
ORDERED = ("exact", "in", "isnull", "gt", "gte", "lt", "lte", "range")
DISCRETE = ("exact", "in", "isnull")
NUMBERS, TIMES = ("integer", "float", "decimal", "duration"), ("date", "datetime", "time")
OPERATORS: dict[str, tuple[str, ...]] = {
    "text": TEXT,
    **dict.fromkeys((*NUMBERS, *TIMES), ORDERED),
    "boolean": ("exact", "isnull"),
    **dict.fromkeys(("uuid", "ip", "key"), DISCRETE),
    "json": ("contains", "has_key", "isnull"),
    "array": ("contains", "overlap", "isnull"),
    "other": ("isnull",),
}
#: Transform -> lowest and highest value. MariaDB's years start at 1000, Python's end at 9999.
PARTS = {
    "year": (1000, 9998),
    "month": (1, 12),
    "day": (1, 31),
    # Of ISO 8601: the first week of a year has its first Thursday.
    "week": (1, 53),
    "week_day": (1, 7),
    "quarter": (1, 4),
}
CLOCK = {"hour": (0, 23), "minute": (0, 59)}
TRANSFORMS: dict[str, dict[str, tuple[int, int]]] = {
    "date": PARTS,
    "datetime": {**PARTS, **CLOCK},
    "time": CLOCK,
}
PART_OPERATORS = ("exact", "in", "gt", "gte", "lt", "lte", "range")
#: `placed_at__date` is built as a range of instants, so it has no `in`.
DAY_OPERATORS = ("exact", "gt", "gte", "lt", "lte", "range")
#: What can be worked out of many values, beside how many there are.
SUMMED = ("sum", "avg", "min", "max")
RANKED = ("min", "max")
MEASURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(NUMBERS, SUMMED),
    **dict.fromkeys((*TIMES, "text"), RANKED),
}
#: The first that fits decides, so the special stand before the general.
KINDS: tuple[tuple[Any, str], ...] = (
    (models.JSONField, "json"),
    ((models.BinaryField, models.FileField), "other"),
    (models.DateTimeField, "datetime"),
    (models.DateField, "date"),
    (models.TimeField, "time"),
    (models.DurationField, "duration"),
    (models.DecimalField, "decimal"),
    (models.FloatField, "float"),
    (models.BooleanField, "boolean"),
    (models.UUIDField, "uuid"),
    (models.GenericIPAddressField, "ip"),
    (models.IntegerField, "integer"),
    ((models.CharField, models.TextField), "text"),
)


def kind_of(field: Any) -> str:
    """The kind of a field; a class that we do not know may be asked for NULL only."""
    if field is None or field.is_relation:
        return "key"
    if isinstance(field, models.GeneratedField):
        return kind_of(field.output_field)
    return kind_of_class(field.__class__)


@cache
def kind_of_class(field_class: type[Any]) -> str:
    # Its module needs the driver of PostgreSQL.
    if "django.contrib.postgres.fields.array" in {base.__module__ for base in field_class.__mro__}:
        return "array"
    return next((kind for known, kind in KINDS if issubclass(field_class, known)), "other")


def has_equals(field: Any) -> bool:
    """Whether databases compare the values of a column, and order and group by them."""
    return "exact" in OPERATORS[kind_of(field)]


def measures_of(field: Any) -> tuple[str, ...]:
    """A class of the site's own may store anything: cents, or what it has encrypted."""
    return () if hasattr(field, "from_db_value") else MEASURES.get(kind_of(field), ())


def transforms_of(kind: str) -> tuple[str, ...]:
    """Names that may stand between a path of this kind and its operator."""
    return (*TRANSFORMS.get(kind, ()), *(("date",) if kind == "datetime" else ()))


def operators_of(kind: str) -> list[str]:
    """What may follow a path of this kind; after a part of a date another operator follows."""
    return [*OPERATORS[kind], *transforms_of(kind)]


def target_of(field: Any) -> Any:
    """The field whose values a foreign key holds."""
    while field.is_relation:
        field = field.target_field
    return field


def choices_of(field: Any) -> list[tuple[Any, Any]]:
    """The choices of a field with their labels, without the groups that they are in.

    A field whose column holds several of them in one text says None on purpose.
    """
    try:
        found = list(field.flatchoices or ()) if field.choices else []
        return [(one.value if isinstance(one, Enum) else one, label) for one, label in found]
    except Exception as error:  # choices can be code of the site
        log_once(str(field), "has choices that cannot be listed.", error)
        return []


# JSON values -> Python values that no database refuses. Everything else is a QueryError.

#: Characters in a text value.
TERM = 100
#: Characters of a part of JSON.
LONGEST_JSON = 1000
#: Values in a list.
ITEMS = 100
SIGNED_64 = (-(2**63), 2**63 - 1)
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
INTEGER = re.compile(r"-?[0-9]{1,19}\Z")  # int() would take the digits of any script
LONGEST_DURATION = timedelta(microseconds=2**63 - 1)  # as most databases hold them


def convert(field: Any, operator: str, value: Any, *, using: str) -> Any:
    """The value of one condition on `field`. Only QueryError leaves this function."""
    if operator == "isnull":
        return attempt(boolean, value, "true or false")
    if value is None:
        raise QueryError("A filter value cannot be null; use isnull.")
    if operator not in ("gte", "lt") and kind_of(target_of(field)) == "datetime":
        check_times(value if isinstance(value, list) else [value])
    kind = kind_of(field)
    if operator not in OPERATORS[kind]:
        raise QueryError(f"This field has only {', '.join(OPERATORS[kind])}.")
    if kind == "json" and operator == "contains":
        if not connections[using].features.supports_json_field_contains:
            raise QueryError("The database of this site has no contains for JSON; use has_key.")
        return attempt(json_part, value, "a short part of JSON")
    if kind == "json":
        return bounded_text(value)  # a key
    if kind == "array":
        return [scalar(field.base_field, one, using=using) for one in items(operator, value)]
    if operator in ("in", "range"):
        return [scalar(field, item, using=using) for item in items(operator, value)]
    return scalar(field, value, using=using)


def check_times(given: list[Any]) -> None:
    """A day stands for its first instant. Where that would mislead, refuse it in words."""
    for value in given:
        if isinstance(value, str) and DAY.match(value):
            raise QueryError(
                f"{value} is a day and not a point in time. Filter with __date, __date__lte or "
                f"__date__range, or name the time: {value}T00:00:00+00:00."
            )


def items(operator: str, value: Any) -> list[Any]:
    """The values of `in` and `range`. A text is no list: its characters would be taken."""
    if operator == "range":
        if not isinstance(value, list) or len(value) != 2:
            raise QueryError("range takes a list of two values, the lowest and the highest.")
    elif not isinstance(value, list) or not value:
        raise QueryError(f"{operator} takes a list with at least one value.")
    elif len(value) > ITEMS:
        raise QueryError(f"A list has at most {ITEMS} values; this one has {len(value)}.")
    return list(value)


def scalar(field: Any, value: Any, *, using: str, longest: int = TERM) -> Any:
    """One value for a column, where a foreign key takes the values of what it points to."""
    field = target_of(field)
    kind = kind_of(field)
    if kind == "integer":
        low, high = bounds_of(field.get_internal_type(), using=using)
        try:
            return integer(value, low=low, high=high)
        except QueryError as error:
            # For who wrote the label of a choice in place of its number.
            known = ", ".join(f"{key} ({label})" for key, label in choices_of(field)[:30])
            raise QueryError(f"{error} Choices: {known}." if known else str(error)) from None
    if kind == "text":
        return choice(field, bounded_text(value, longest=longest))
    converter, wanted = CONVERTERS.get(kind, (refuse, "usable: this field only has isnull"))
    return attempt(converter, value, wanted)


@cache
def bounds_of(internal_type: str, *, using: str) -> tuple[int, int]:
    """What a column of integers holds. Of a class of the site's own only the widest is known."""
    ops: Any = connections[using].ops
    known = internal_type in ops.integer_field_ranges
    return ops.integer_field_range(internal_type) if known else SIGNED_64


def attempt(converter: Callable[[Any], Any], value: Any, wanted: str) -> Any:
    try:
        return converter(value)
    except (ValueError, TypeError, OverflowError, InvalidOperation):
        raise QueryError(f"{quoted(value)} is not {wanted}.") from None


#: Characters of a value in a sentence.
LONGEST_QUOTED = 60


def quoted(value: Any) -> str:
    """What the caller sent, short and in ASCII, so that it can stand in any sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        return ascii(value[:LONGEST_QUOTED] if isinstance(value, str) else value)[:LONGEST_QUOTED]
    except (ValueError, RecursionError):  # an integer of thousands of digits; a deep nest
        return "This value"


def refuse(value: Any) -> Any:
    raise TypeError


def text(value: Any) -> str:
    """Text that UTF-8 and PostgreSQL can carry: no lone surrogates, no NUL."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)  # models send 42 for "42"
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError
    value.encode()
    return value


def bounded_text(value: Any, *, longest: int = TERM) -> str:
    words: str = attempt(text, value, "text")
    if len(words) > longest:
        raise QueryError(f"A text value has at most {longest} characters; this has {len(words)}.")
    return words


def choice(field: Any, value: str) -> str:
    known = [key for key, _ in choices_of(field)]
    if known and value not in known:
        names = ", ".join(str(key) for key in known[:30])
        raise QueryError(f"{quoted(value)} is not a choice. Choices: {names}.")
    return value


def integer(value: Any, *, low: int, high: int) -> int:
    number = whole_number(value)
    if not low <= number <= high:
        raise QueryError(f"The number must be between {low} and {high}.")
    return number


def whole_number(value: Any) -> int:
    if isinstance(value, str) and INTEGER.match(value.strip()):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if type(value) is not int:  # bool is an int in Python
        raise QueryError(f"{quoted(value)} is not a whole number.")
    return value


def number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    if isinstance(value, int) and abs(value) >= 10**60:
        raise ValueError
    written = str(value)
    if len(written) > 61 or not written.isascii() or "_" in written or written != written.strip():
        raise ValueError
    result = Decimal(written)
    if not result.is_finite() or result.adjusted() > 60 or result.adjusted() < -30:
        raise ValueError
    return result


def json_part(value: Any) -> Any:
    written = json.dumps(value)
    # PostgreSQL holds no NUL, and nothing holds half a character.
    if len(written) > LONGEST_JSON or re.search(r"\\u(0000|d[89ab]|d[c-f])", written):
        raise ValueError
    return value


def boolean(value: Any) -> bool:
    """Of a boolean, and of the text that is one in JSON. 1 may be a number of something."""
    if value in ("true", "false"):
        return bool(value == "true")
    if type(value) is not bool:
        raise TypeError
    return value


def limited(value: Any, *, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise TypeError
    return value


def iso_date(value: Any) -> date:
    written = limited(value, longest=10)
    if len(written) != 10:  # Python takes 20260101, too
        raise ValueError
    found: date = sane(date.fromisoformat(written))
    return found


def iso_datetime(value: Any) -> datetime:
    result: datetime = sane(datetime.fromisoformat(limited(value, longest=40)))
    if timezone.is_naive(result):
        # Never an error: an hour that does not exist, or exists twice, is taken with fold 0.
        result = timezone.make_aware(result)
    result = result.astimezone(UTC)
    return result if settings.USE_TZ else timezone.make_naive(result)


def sane(value: Any) -> Any:
    """Years 1 and 9999 overflow as soon as a time zone moves them; MariaDB starts at 1000."""
    if not 1000 <= value.year <= 9998:
        raise ValueError
    return value


def iso_time(value: Any) -> time:
    result = time.fromisoformat(limited(value, longest=20))
    if result.tzinfo is not None:
        raise ValueError
    return result


def duration(value: Any) -> timedelta:
    result = parse_duration(limited(value, longest=40))
    if result is None or abs(result) > LONGEST_DURATION:
        raise ValueError
    return result


CONVERTERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "float": (lambda value: float(number(value)), "a number"),
    "decimal": (number, "a number"),
    "boolean": (boolean, "true or false"),
    "date": (iso_date, "a date such as 2026-01-31"),
    "datetime": (iso_datetime, "a date and time such as 2026-01-31T12:00:00+00:00"),
    "time": (iso_time, "a time such as 12:30"),
    "duration": (duration, "a duration such as P3DT2H or 3 02:00:00"),
    "uuid": (lambda value: UUID(limited(value, longest=45)), "a UUID"),
    "ip": (lambda value: str(address(limited(value, longest=45))), "an IP address"),
}


def address(value: str) -> Any:
    if "%" in value:  # a zone is no part of the address in any column
        raise ValueError
    return ipaddress.ip_address(value)


# Whether a database can tell what the clocks of a time zone showed.


def knows_zones(using: str) -> bool:
    """MariaDB and MySQL without time zone tables make NULL of every instant that they move.

    Where the current time zone is that of the database nothing has to be moved.
    """
    connection: Any = connections[using]
    if not settings.USE_TZ or connection.features.has_zoneinfo_database:
        return True
    return bool(timezone.get_current_timezone_name() == connection.timezone_name)

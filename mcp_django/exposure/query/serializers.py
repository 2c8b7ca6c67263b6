"""Column values -> JSON. Whole columns at once, and never an instance: no property of it runs.

Decimals, UUIDs, dates and times stay as they are: the encoder writes them as text.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

import msgspec
from django.db import models
from django.utils import timezone
from django.utils.duration import duration_iso_string
from django.utils.html import strip_tags
from django.utils.safestring import SafeData

from mcp_django.exposure.fields import choices_of, has_equals, kind_of, log_once, target_of

Values: TypeAlias = Sequence[Any]
Columns: TypeAlias = Mapping[str, Values]

#: Characters of a text in a page.
LONGEST = 2000
#: JavaScript's numbers are exact up to here, and so are those of most JSON readers.
EXACT = 2**53
DEEPEST_VALUE = 20
#: Parts of one JSON value, in a page and in a whole record.
MOST_PARTS, MOST_PARTS_OF_WHOLE = 500, 100_000


def as_text(value: Any) -> str:
    """For classes that we do not know: money, countries, lazy translations."""
    try:
        # Exactly a str: encoders take no subclass of it, such as the safe text of a template.
        return str.__str__(str(value.value if isinstance(value, Enum) else value))
    except Exception:  # a site's own code; one bad value must not take the page away
        return f"<{type(value).__name__}>"


def plain_text(value: Any) -> str:
    """What a person would read: HTML without its tags, anything else as it is."""
    written = str(value)
    if isinstance(value, SafeData) or isinstance(written, SafeData):
        written = html.unescape(strip_tags(written))
    return " ".join(written.split())


#: What `Trimming` has a form for, and texts.
KNOWN = (
    str, bool, int, float, Decimal, UUID, date, time, timedelta, bytes, bytearray, memoryview,
    Mapping, list, tuple, set, frozenset,
)  # fmt: skip

encoder = msgspec.json.Encoder(enc_hook=as_text)


def converter_of(field: Any, *, whole: bool) -> Callable[[Values], Values] | None:
    """How a column is written, decided once. None: as the database gave it. Values that the
    converter of the field fails on are written as texts.
    """
    own = target_of(field)
    if isinstance(own, models.GeneratedField):
        own = own.output_field
    convert_value: Any = value_converter(own, whole=whole)
    convert = trimmed_choices if choices_of(own) else COLUMN_CONVERTERS.get(convert_value)
    if convert is None and convert_value is None:
        return None

    def guarded(column: Values) -> Values:
        try:
            if convert is not None:
                return convert(column)
            return [None if value is None else convert_value(value) for value in column]
        except Exception as error:
            log_once(str(field), "has values that are read as texts only.", error)
            return [None if value is None else cut(value) for value in column]

    return guarded


def value_converter(field: Any, *, whole: bool) -> Callable[[Any], Any] | None:
    if isinstance(field, models.FileField):
        return lambda value: as_text(value) or None
    if isinstance(field, models.BinaryField):
        return lambda value: {"bytes": len(value)}
    if hasattr(field, "from_db_value") or not has_equals(field):
        most = MOST_PARTS_OF_WHOLE if whole else MOST_PARTS
        return lambda value: Trimming(most, whole=whole).json(stored_form(field, value))
    kind = kind_of(field)
    if kind == "text":
        # SQLite does not hold columns to their length; the size of the answer is held anyway.
        is_short = field.max_length is not None and field.max_length <= LONGEST
        return None if whole or is_short else cut
    return CONVERTERS.get(kind)


def stored_form(field: Any, value: Any) -> Any:
    """What the field itself would store, where that is a list or an object: of the blocks of
    wagtail the content, and not the page that they make. Else the value.
    """
    if value is None or isinstance(value, KNOWN):
        return value
    prepared = field.get_prep_value(value)
    return prepared if isinstance(prepared, Mapping | list | tuple) else value


def trimmed_choices(column: Values) -> Values:
    """Few values, many rows: each is made once."""
    try:
        values = set(column) - {None}
    except TypeError:  # lists of choices
        return [Trimming(MOST_PARTS, whole=False).json(value) for value in column]
    known = {value: Trimming(MOST_PARTS, whole=False).json(value) for value in values}
    return [known.get(value) for value in column]


def cut(value: Any, *, most: int = LONGEST, rest: str = "get_record shows more") -> str:
    written = value if type(value) is str else as_text(value)
    if len(written) <= most:
        return written
    return f"{written[:most]}... [cut: {len(written)} characters; {rest}]"


def exact_integer(value: int) -> int | str:
    return value if -EXACT <= value <= EXACT else str(value)


def finite(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def utc(value: datetime) -> str:
    """In UTC, without the digits that say nothing: 2026-11-02T05:15Z."""
    if timezone.is_naive(value):
        return value.isoformat().removesuffix(":00")
    return in_utc(value if value.tzinfo is UTC else value.astimezone(UTC))


def in_utc(value: datetime) -> str:
    return value.isoformat()[: -len("+00:00")].removesuffix(":00") + "Z"


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "integer": exact_integer,
    "float": finite,
    "datetime": utc,
    "duration": duration_iso_string,
}


# Kinds of which pages hold many are done without a call for each value.


def exact_integers(column: Values) -> Values:
    """A page has thousands of integers, and hardly ever one that needs another form."""
    known = [value for value in column if value is not None]
    if not known or (min(known) >= -EXACT and max(known) <= EXACT):
        return column
    return [None if value is None else exact_integer(value) for value in column]


def utc_texts(column: Values) -> Values:
    """Django's own times are in UTC already, unless the database has another time zone."""
    return [
        None if value is None else in_utc(value) if value.tzinfo is UTC else utc(value)
        for value in column
    ]


COLUMN_CONVERTERS: dict[Any, Callable[[Values], Values]] = {
    exact_integer: exact_integers,
    utc: utc_texts,
}


class Trimming:
    """Any value as JSON, with a limit to its depth and to the number of its parts."""

    def __init__(self, parts: int, *, whole: bool) -> None:
        self.left = parts
        self.whole = whole

    def json(self, value: Any, *, depth: int = 0) -> Any:
        self.left -= 1
        if self.left < 0 or depth > DEEPEST_VALUE:
            return "..."
        if isinstance(value, Mapping):
            return self._object(value, depth=depth)
        if isinstance(value, list | tuple | set | frozenset):
            return self._array(value, depth=depth)
        return self._scalar(value)

    def _object(self, value: Mapping[Any, Any], *, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in value.items():
            if self.left <= 0:
                found["..."] = "..."
                break
            found[self._text(as_text(key))] = self.json(item, depth=depth + 1)
        return found

    def _array(self, value: Any, *, depth: int) -> list[Any]:
        found: list[Any] = []
        for item in value:
            if self.left <= 0:
                found.append("...")
                break
            found.append(self.json(item, depth=depth + 1))
        return found

    def _scalar(self, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return exact_integer(int(value))
        if isinstance(value, float):
            return finite(float(value))
        if isinstance(value, datetime):
            return utc(value)
        if isinstance(value, timedelta):
            return duration_iso_string(value)
        if isinstance(value, date | time | Decimal | UUID):
            return str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return {"bytes": len(value)}
        return self._text(as_text(value))

    def _text(self, value: str) -> str:
        return value if self.whole else cut(value)

"""Primary keys: from what a caller wrote to values, and from values to one spelling."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError

from mcp_django.exceptions import QueryError
from mcp_django.exposure import values
from mcp_django.exposure.operators import kind_of, target_of
from mcp_django.exposure.paths import ModelClass, key_parts

#: Characters of a key that is a text.
LONGEST_KEY = 1000


def parse_key(model: ModelClass, pk: Any, *, using: str) -> tuple[Any, ...]:
    """The value of each part of a key. Raises QueryError for what cannot be one."""
    given = pk if isinstance(pk, list | tuple) else [pk]
    parts = key_parts(model)
    if len(given) != len(parts):
        raise QueryError("This is not a key.")
    return tuple(
        key_value(part, value, using=using) for part, value in zip(parts, given, strict=True)
    )


def key_value(part: Any, value: Any, *, using: str) -> Any:
    if kind_of(target_of(part)) != "other":
        return values.scalar(part, value, using=using, longest=LONGEST_KEY)
    # A class of the site's own knows its values; the text is one that every database takes.
    written = values.short(values.attempt(values.text, value, "text"), longest=LONGEST_KEY)
    try:
        return target_of(part).to_python(written)
    except Exception:
        raise QueryError("This is not a key.") from None


def stored_key(model: ModelClass, given: Iterable[Any]) -> tuple[Any, ...]:
    """The values of a key as a database gives them back: code may have assigned "5" for 5."""
    return tuple(
        to_python(target_of(part), value)
        for part, value in zip(key_parts(model), given, strict=True)
    )


def to_python(field: Any, value: Any) -> Any:
    try:
        return field.to_python(value)
    except (ValidationError, ValueError, TypeError):
        return value


def spell(value: Any) -> str:
    """One text for equal values: `5.00` and `5`, an instant in any time zone."""
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value.normalize():f}"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return str(value.astimezone(UTC))
    return str(value)


def spell_key(key: Iterable[Any]) -> tuple[str, ...]:
    return tuple(spell(value) for value in key)

"""What Python and Django hold in forms, as JSON has it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from django.forms import Field
from django.forms.utils import pretty_name
from django.utils.duration import duration_iso_string
from django.utils.functional import Promise
from django.utils.html import strip_tags

#: Value and title.
Choice: TypeAlias = tuple[str, str]
#: Stands for what JSON has no form for.
NOTHING: Any = object()
#: Encoders write no more than these.
LEAST, MOST = -(2**63), 2**64 - 1


def plain(value: Any) -> Any:
    """A value as JSON, or NOTHING. Never `str()` of an object that we do not know."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, Decimal)):
        return as_json_number(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_iso_string(value)
    if isinstance(value, (Promise, UUID)):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return whole([plain(one) for one in value])
    if isinstance(value, Mapping):
        found = whole([plain(one) for one in value.values()])
        keys = [str(key) for key in value]
        return NOTHING if found is NOTHING else dict(zip(keys, found, strict=True))
    return NOTHING


def whole(values: list[Any]) -> Any:
    return NOTHING if any(one is NOTHING for one in values) else values


def as_json_number(value: Any) -> Any:
    if isinstance(value, int):
        return value if LEAST <= value <= MOST else NOTHING
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else NOTHING
    return value if math.isfinite(value) else NOTHING


def folded(text: Any) -> str:
    """A label or a help text on one line. Those of Django have HTML in them at times."""
    written = str(text)
    return " ".join((strip_tags(written) if "<" in written else written).split())


def options(choices: Iterable[Any]) -> Iterator[Choice]:
    """Values as the form compares them, each once, and titles with those of their groups."""
    seen = {""}
    for value, title in choices:
        is_group = isinstance(title, (list, tuple))
        members = title if is_group else [(value, title)]
        for member, own in members:
            written = "" if member is None else str(member)
            if written not in seen:
                seen.add(written)
                yield written, folded(f"{value}: {own}" if is_group else own)


def about(field: Field, hint: str, *, name: str) -> dict[str, Any]:
    """The title and the description of a field, where it has them."""
    title = folded(pretty_name(name) if field.label is None else field.label)
    description = " ".join(part for part in (folded(field.help_text), hint) if part)
    found = {"title": title, "description": description}
    return {key: text for key, text in found.items() if text}

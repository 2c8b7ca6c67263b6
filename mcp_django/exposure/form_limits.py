"""What validators of form fields say about numbers and texts, in the keywords of JSON Schema."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import jsonschema_rs
from django.core import validators
from django.forms import fields

from mcp_django.exposure.form_values import LEAST, MOST

#: What only Python has: flags in the text, named groups, comments, conditions, atomic groups,
#: repetition that never gives back, and its own names for the ends of a text.
ONLY_PYTHON = re.compile(r"\(\?(?![:=!]|<[=!])|[*+?}]\+|\{,|\\[AZN]")

#: Fields of forms that hand to the model what they were given: those of a site may convert it.
NUMBERS = (fields.IntegerField, fields.FloatField, fields.DecimalField)
SAME_VALUE = frozenset({fields.CharField, fields.SlugField, *NUMBERS})


def model_validators(form: Any, name: str, field: fields.Field) -> Sequence[Any]:
    """What the field of the model asks for beyond that of the form, of the very same value."""
    model = getattr(getattr(form, "_meta", None), "model", None)
    if model is None or type(field) not in SAME_VALUE:
        return ()
    known = {one.name: one for one in model._meta.fields}
    return known[name].validators if name in known else ()


def limits(given: Iterable[Any]) -> dict[str, Any]:
    """The least and the most, where they are numbers that JSON has."""
    found: dict[str, Any] = {}
    for one in given:
        is_least = isinstance(one, validators.MinValueValidator)
        if not (is_least or isinstance(one, validators.MaxValueValidator)):
            continue
        limit = as_number(limit_of(one), towards=-math.inf if is_least else math.inf)
        if limit is not None:
            key, strictest = ("minimum", max) if is_least else ("maximum", min)
            found[key] = strictest(limit, found.get(key, limit))
    return found


def lengths(given: Iterable[Any], *, required: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given:
        if isinstance(one, validators.MinLengthValidator):
            found["minLength"] = max(limit_of(one), found.get("minLength", 0))
        elif isinstance(one, validators.MaxLengthValidator):
            found["maxLength"] = min(limit_of(one), found.get("maxLength", limit_of(one)))
    if required:
        found["minLength"] = max(1, found.get("minLength", 1))
    return found


def limit_of(validator: Any) -> Any:
    limit = validator.limit_value
    return limit() if callable(limit) else limit


def pattern_of(given: Iterable[Any]) -> dict[str, Any]:
    """The first regular expression among the validators that means the same everywhere."""
    for one in given:
        if isinstance(one, validators.RegexValidator) and not one.inverse_match:
            pattern = as_pattern(one.regex)
            if pattern is not None:
                return {"pattern": pattern}
    return {}


def as_number(limit: Any, *, towards: float) -> int | float | None:
    """A limit as a number of JSON, no stricter than it is. None: it is no such number."""
    if isinstance(limit, bool) or not isinstance(limit, (int, float, Decimal)):
        return None
    if isinstance(limit, int):
        return limit if LEAST <= limit <= MOST else None
    near = float(limit)
    if not math.isfinite(near):
        return None
    is_stricter = near > limit if towards < 0 else near < limit
    return math.nextafter(near, towards) if is_stricter else near


def as_pattern(regex: Any) -> str | None:
    """A regular expression as JSON Schema understands it, or None for one that it may not."""
    pattern = regex.pattern
    if regex.flags & ~re.UNICODE or not isinstance(pattern, str):
        return None
    # Without flags these mean the same.
    if pattern.startswith(r"\A"):
        pattern = f"^{pattern[2:]}"
    if pattern.endswith(r"\Z") and not pattern.endswith(r"\\Z"):
        pattern = f"{pattern[:-2]}$"
    return pattern if not ONLY_PYTHON.search(pattern) and is_portable(pattern) else None


@lru_cache(maxsize=256)
def is_portable(pattern: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern})
    except jsonschema_rs.ValidationError:
        return False
    return True

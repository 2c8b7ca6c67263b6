"""The filters, all of them bounded. Out are those that grow, get attributes or write HTML."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.template import Library, defaultfilters

from mcp_django.templating.budget import MAX_VALUE, TemplateError
from mcp_django.templating.lookups import LEAVES, Record, plain

MAX_ARGUMENT = 100
MAX_NUMBER_ARGUMENT = 10_000
MAX_NUMBER = 10**30
MAX_DIGITS = 12
MAX_JOINED = 1_000
MAX_JOINED_ITEM = 500
LONGEST_NUMBER = 40
CONTAINERS = (list, tuple, dict)

NAMES = (
    "date", "time", "timesince", "timeuntil", "default", "default_if_none", "lower", "upper",
    "title", "capfirst", "length", "pluralize", "yesno", "truncatechars", "truncatewords", "first",
    "last", "filesizeformat",
)  # fmt: skip


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def filtered(value: Any, *args: Any) -> Any:
        for argument in args:
            if isinstance(argument, str) and len(argument) > MAX_ARGUMENT:
                raise TemplateError("The argument of a filter is too long.")
            if isinstance(argument, (int, float)) and abs(argument) > MAX_NUMBER_ARGUMENT:
                raise TemplateError("The argument of a filter is too large.")
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise TemplateError("A number is too large.")
        try:
            result = function(value, *args)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError, OverflowError):
            return ""  # as Django's own filters answer values that are not theirs
        if isinstance(result, str):
            return plain(result)
        # Out of a container may come what nobody has looked at.
        return result if type(result) in LEAVES or type(result) is Record else ""

    return filtered


def floatformat(value: Any, digits: Any = -1) -> Any:
    number = int(str(digits).rstrip("gu"))
    if abs(number) > MAX_DIGITS:
        raise TemplateError(f"At most {MAX_DIGITS} digits.")
    if len(str(value)[: LONGEST_NUMBER + 1]) > LONGEST_NUMBER:
        return ""
    return defaultfilters.floatformat(value, number)


def join(value: Any, separator: str) -> str:
    if not isinstance(value, (list, tuple)) or len(value) > MAX_JOINED:
        return ""
    texts = (text_of(one)[:MAX_JOINED_ITEM] for one in value)
    return str(separator).join(texts)[:MAX_VALUE]


def text_of(value: Any) -> str:
    """The text of a value. A container has none: it may hold what nobody has looked at."""
    if isinstance(value, str):
        return plain(value)
    is_shown = type(value) is Record or (
        type(value) in LEAVES and type(value) not in CONTAINERS and value is not None
    )
    return str(value) if is_shown else ""


def add_filters(library: Library) -> None:
    functions = {name: defaultfilters.register.filters[name] for name in NAMES}
    for name, function in {**functions, "floatformat": floatformat, "join": join}.items():
        made = bounded(function)
        # A filter may be called like a local time, and Django's decorators tell it so.
        made.expects_localtime = getattr(  # type: ignore[attr-defined]  # Django's way to say it
            inspect.unwrap(function), "expects_localtime", False
        )
        made._filter_name = name  # type: ignore[attr-defined]  # as above
        library.filters[name] = made

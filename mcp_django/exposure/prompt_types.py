"""Annotations of prompts: what is read from the texts that MCP sends for their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import partial
from math import isfinite
from typing import Annotated, Any, Literal, get_args, get_origin
from uuid import UUID

import msgspec

from mcp_django.exposure.schemas import NONE, is_union, without_none

#: More digits are no number of anything, and Python refuses to read thousands.
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,30}")
#: What people and programs write for yes and no.
BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
WANTED = {
    int: "a whole number such as 7",
    float: "a number such as 2.5",
    Decimal: "a number such as 2.50",
    date: "a date such as 2026-11-18",
    datetime: "a time such as 2026-11-18T12:00:00Z",
    time: "a time of day such as 12:00:00",
    UUID: "a UUID",
    str: "a text",
}


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads one argument. `read` raises ValueError; `wanted` says what it takes."""

    read: Callable[[str], Any]
    wanted: str
    #: Every text that it takes, where these can be told.
    choices: tuple[str, ...] = ()
    is_text: bool = False


def reader_of(annotation: Any) -> Reader:
    """Raises TypeError for a type that a text cannot be read into."""
    kind = without_none(annotation)
    if get_origin(kind) is Literal:
        return reader_of_choices({str(one): one for one in get_args(kind) if one is not None})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return reader_of_choices({str(one.value): one for one in kind})
    if kind is bool:
        return Reader(read=read_bool, wanted="true or false", choices=("true", "false"))
    if kind not in WANTED:
        raise TypeError(f"{annotation!r} cannot be read from a text")
    limits = limits_of(annotation)
    return Reader(
        read=partial(read_plain, kind, limits),
        wanted=WANTED[kind] + (" within its limits" if limits is not kind else ""),
        is_text=kind is str,
    )


def limits_of(annotation: Any) -> Any:
    """The annotation with its msgspec.Meta, without None as an alternative."""
    if is_union(annotation):
        return next(limits_of(one) for one in get_args(annotation) if one is not NONE)
    return annotation


def description_of(annotation: Any) -> str:
    """What msgspec.Meta says of an argument."""
    limits = limits_of(annotation)
    if get_origin(limits) is not Annotated:
        return ""
    metas = [one for one in get_args(limits)[1:] if isinstance(one, msgspec.Meta)]
    return next((one.description for one in metas if one.description), "")


def reader_of_choices(choices: Mapping[str, Any]) -> Reader:
    return Reader(
        read=choices.__getitem__,  # KeyError is refused like ValueError
        wanted=f"one of: {', '.join(choices)}",
        choices=tuple(choices),
    )


def read_bool(text: str) -> bool:
    return BOOLEANS[text.strip().lower()]


def read_plain(kind: type, limits: Any, text: str) -> Any:
    value: Any = text
    if kind is int:
        if not WHOLE_NUMBER.fullmatch(text.strip()):
            raise ValueError
        value = int(text)
    elif kind in (float, Decimal):
        value = Decimal(text.strip()) if re.fullmatch(r"[-+0-9.eE]{1,40}", text.strip()) else None
        if value is None or not isfinite(float(value)):
            raise ValueError
        value = float(value) if kind is float else value
    elif kind is not str:
        value = msgspec.convert(text.strip(), kind)
    return value if limits is kind else msgspec.convert(value, limits)

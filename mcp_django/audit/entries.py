"""What will stand in one row of the records, made while the call is still hot."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from mcp_django.auth.redaction import REDACTED, names_credential, redact
from mcp_django.exposure.confirmations import ARGUMENT
from mcp_django.exposure.options import SECRET_WORDS
from mcp_django.models import CallRecord

LONGEST_PRINCIPAL = 200
LONGEST_CLIENT = 100
LONGEST_METHOD = 60
LONGEST_TARGET = 300
#: Characters of one text among the arguments.
LONGEST_TEXT = 200
#: Items of one container among the arguments, and containers within containers.
MOST_ITEMS, DEEPEST = 20, 4
#: Characters of all arguments together, as JSON.
LONGEST_ARGUMENTS = 4000
CUT = "…"
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Entry(NamedTuple):
    """The columns of a `CallRecord`, in the order in which they are written."""

    server: str
    at: datetime
    kind: str
    principal: str
    user_id: Any
    client: str
    method: str
    target: str
    outcome: str
    milliseconds: int
    rows: int | None
    bytes: int
    correlation_id: str
    arguments: Any

    def record(self) -> CallRecord:
        """The same as a model instance that is not saved."""
        return CallRecord(**self._asdict())


def line(text: str, most: int) -> str:
    """One printable line of so many characters: peers choose these texts.

    No text ends a line of a log with it, and none holds what a database refuses, such as NUL.
    """
    if len(text) > most:
        text = text[: most - 1] + CUT
    return text if text.isprintable() else printable(text)


def printable(text: str) -> str:
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def principal_line(key: str) -> str:
    """Two principals stay two, however long their names are."""
    if len(key) <= LONGEST_PRINCIPAL:
        return line(key, LONGEST_PRINCIPAL)
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return line(key, LONGEST_PRINCIPAL - 17) + f" {digest}"


def redacted(arguments: Mapping[str, Any]) -> Any:
    """Arguments without credentials, cut to a size that a million rows can bear."""
    found = cut(arguments, DEEPEST)
    text = json.dumps(found, ensure_ascii=False)
    return found if len(text) <= LONGEST_ARGUMENTS else text[:LONGEST_ARGUMENTS] + CUT


def cut(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        # Redacted first: half a credential has no shape to know it by.
        return line(redact(value[: LONGEST_TEXT * 10]), LONGEST_TEXT)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return CUT
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        return CUT
    rest = {CUT: len(value) - MOST_ITEMS} if len(value) > MOST_ITEMS else {}
    if isinstance(value, Mapping):
        shown = list(value.items())[:MOST_ITEMS]
        return {line(str(key), 80): inner_of(key, inner, depth - 1) for key, inner in shown} | rest
    return [cut(one, depth - 1) for one in value[:MOST_ITEMS]] + ([rest] if rest else [])


def inner_of(key: Any, value: Any, depth: int) -> Any:
    return REDACTED if names_secret(key) else cut(value, depth)


def names_secret(key: Any) -> bool:
    """Whether what stands under this name is kept from whoever reads."""
    # apiKey and api-key are api_key.
    name = HUMP.sub("_", str(key)[:LONGEST_TEXT]).replace("-", "_")
    return bool(names_credential(name) or name == ARGUMENT or SECRET_WORDS.search(name))

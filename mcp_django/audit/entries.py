"""What may be kept and logged of a call: short texts, no credentials."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from mcp_django.auth.redaction import REDACTED, names_credential, redact
from mcp_django.exposure.options import SECRET_WORDS
from mcp_django.exposure.questions.confirmations import ARGUMENT

LONGEST_KEYS = 1000
#: Keys that a record of a call has.
MOST_KEYS = 200
CUT = "…"
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def line(text: str, most: int) -> str:
    """One printable line of so many characters: peers choose these texts.

    Nobody ends a line of a log with it, and it has nothing that a database refuses, such as NUL.
    """
    if len(text) > most:
        text = text[: most - 1] + CUT
    return text if text.isprintable() else printable(text)


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def keys_line(keys: Sequence[Any]) -> str:
    """As many of the keys of records as there is room for, as texts in a list of JSON."""
    if not keys:
        return ""
    texts = [str(key) for key in keys[:MOST_KEYS]]
    while len(written := json.dumps(texts)) > LONGEST_KEYS:
        texts.pop()
    return written


class DataLimits(NamedTuple):
    """How much of some data is kept."""

    #: Characters of one text, and of all together as JSON.
    text: int
    whole: int
    #: Takes out of a short text what must not be in it.
    clean: Callable[[str], str]


#: There may be a million rows.
OF_RECORDS = DataLimits(200, 4000, printable)
#: A model reads them. UTF-8 has no place for half a character.
OF_LOGS = DataLimits(2000, 8000, lambda text: text.encode("utf-8", "replace").decode())
#: Items of one container, and containers within containers.
MOST_KEPT_ITEMS, DEEPEST_KEPT = 50, 6


def redacted(arguments: Mapping[str, Any]) -> Any:
    """The arguments of a call for its record: JSON without credentials, cut. Never raises."""
    return shortened(arguments, OF_RECORDS)


def log_data(data: Any) -> Any:
    """What code of the site logs for the client: JSON without credentials, cut. Never raises."""
    return shortened(data, OF_LOGS)


def shortened(data: Any, limits: DataLimits) -> Any:
    found = cut_value(data, limits, DEEPEST_KEPT)
    text = json.dumps(found, ensure_ascii=False)
    return found if len(text) <= limits.whole else text[: limits.whole] + CUT


def cut_value(value: Any, limits: DataLimits, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # Beyond 2**53 an integer is another one for some readers of JSON.
    if isinstance(value, int) and abs(value) <= 2**53:
        # A plain int: enumerations have rules of their own for JSON.
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        # Tools take JSON in a text as well. Names that look secret are in it, too.
        with suppress(ValueError, RecursionError):
            value = json.dumps(cut_value(json.loads(value), limits, depth), ensure_ascii=False)
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return cut_text(value, limits)
    if not depth:
        return CUT
    rest = {CUT: len(value) - MOST_KEPT_ITEMS} if len(value) > MOST_KEPT_ITEMS else {}
    if not isinstance(value, Mapping):
        listed = [cut_value(item, limits, depth - 1) for item in list(value)[:MOST_KEPT_ITEMS]]
        return [*listed, rest] if rest else listed
    named = {
        cut_text(key, limits): REDACTED
        if names_secret(key)
        else cut_value(item, limits, depth - 1)
        for key, item in list(value.items())[:MOST_KEPT_ITEMS]
    }
    return named | rest


def cut_text(value: Any, limits: DataLimits) -> str:
    # Redact before the cut: half a credential has no recognizable shape.
    text = redact(readable_text(value)[: limits.text * 10])
    return limits.clean(text if len(text) <= limits.text else text[: limits.text - 1] + CUT)


def readable_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # whatever a __str__ of the site raises
        return type(value).__name__


def names_secret(key: Any) -> bool:
    """Whether the value of this name is hidden from whoever reads."""
    # apiKey and api-key are api_key.
    name = HUMP.sub("_", readable_text(key)[: OF_RECORDS.text]).replace("-", "_")
    return bool(names_credential(name) or name == ARGUMENT or SECRET_WORDS.search(name))

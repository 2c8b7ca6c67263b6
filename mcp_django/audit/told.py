"""What code of the site says in log messages of a call, fit for the client to read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from mcp_django.audit.entries import CUT, names_secret
from mcp_django.auth.redaction import REDACTED, redact

#: Characters of one text, and of all of it as JSON.
LONGEST_TEXT, LONGEST = 2000, 8000
#: Items of one container, and containers within containers.
MOST_ITEMS, DEEPEST = 50, 6
#: Beyond this an integer is another one for some readers of JSON.
LARGEST = 2**53


def told(data: Any) -> Any:
    """JSON without credentials, cut to a size that a model can read. Never raises."""
    found = plain(data, DEEPEST)
    text = json.dumps(found, ensure_ascii=False)
    return found if len(text) <= LONGEST else text[:LONGEST] + CUT


def plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= LARGEST:
        # Not a subclass: those of enumerations are written by their own rules.
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return text(value)
    if not depth:
        return CUT
    items = list(value.items()) if isinstance(value, Mapping) else list(value)
    shown, rest = items[:MOST_ITEMS], len(items) - MOST_ITEMS
    if isinstance(value, Mapping):
        found = {text(key): inner_of(key, inner, depth - 1) for key, inner in shown}
        return {**found, CUT: rest} if rest > 0 else found
    listed = [plain(one, depth - 1) for one in shown]
    return [*listed, {CUT: rest}] if rest > 0 else listed


def inner_of(key: Any, value: Any, depth: int) -> Any:
    return REDACTED if names_secret(text(key)) else plain(value, depth)


def text(value: Any) -> str:
    try:
        found = str(value)
    except Exception:  # whatever a __str__ of the site raises
        found = type(value).__name__
    # Redacted first: half a credential has no shape to know it by.
    found = redact(found[: LONGEST_TEXT * 10])
    found = found if len(found) <= LONGEST_TEXT else found[: LONGEST_TEXT - 1] + CUT
    # UTF-8 has no place for half a character.
    return found.encode("utf-8", "replace").decode()

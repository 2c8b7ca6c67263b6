"""URI templates (RFC 6570): the forms that our resources use, in both directions.

Simple expansion `{name}`, and form-style query expansion `{?name,other*}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

EXPRESSION = re.compile(r"\{(\??)([A-Za-z0-9_,*]+)\}")
#: A percent sign that starts no octet.
STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class URITemplate:
    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        names = (names for _, names in EXPRESSION.findall(self.text))
        return tuple(name.rstrip("*") for group in names for name in group.split(","))

    def expand(self, values: Mapping[str, Any]) -> str:
        """The URI for these values. What is missing or None is left out."""

        def replace(match: re.Match[str]) -> str:
            names = match[2].split(",")
            if match[1]:
                pairs = [pair for name in names for pair in query_pairs(name, values)]
                return "?" + "&".join(pairs) if pairs else ""
            return ",".join(
                encode(values[name]) for name in names if values.get(name) is not None
            )

        return EXPRESSION.sub(replace, self.text)


def query_pairs(name: str, values: Mapping[str, Any]) -> list[str]:
    """`name=value` for each value; an exploded mapping gives its own keys."""
    exploded = name.endswith("*")
    value = values.get(name.rstrip("*"))
    if value is None:
        return []
    if exploded and isinstance(value, Mapping):
        return [f"{encode(key)}={encode(item)}" for key, item in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        if exploded:
            return [f"{name.rstrip('*')}={encode(item)}" for item in value]
        return [f"{name}={','.join(encode(item) for item in value)}"] if value else []
    return [f"{name.rstrip('*')}={encode(value)}"]


def encode(value: Any) -> str:
    """Everything but unreserved characters as percent octets of UTF-8."""
    return quote(str(value), safe="")


def decode(text: str) -> str:
    """Raises ValueError for stray percent signs and for octets that are not UTF-8."""
    if STRAY_PERCENT.search(text):
        raise ValueError("A percent sign must start an octet.")
    return unquote(text, errors="strict")


def parse_query(query: str) -> list[tuple[str, str]]:
    """The pairs of a query string, in order. Raises ValueError. `+` is a plus sign in a URI."""
    pairs = []
    for part in query.split("&"):
        if part:
            name, _, value = part.partition("=")
            pairs.append((decode(name), decode(value)))
    return pairs

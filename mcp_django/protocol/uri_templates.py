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
            return ",".join(encode(item) for name in names for item in items(values.get(name)))

        return EXPRESSION.sub(replace, self.text)


def query_pairs(name: str, values: Mapping[str, Any]) -> list[str]:
    """`name=value`, a list with commas. Exploded: a pair for each item; a mapping has own keys."""
    plain = name.rstrip("*")
    value = values.get(plain)
    if plain == name:
        listed = ",".join(encode(item) for item in items(value))
        return [f"{name}={listed}"] if items(value) else []
    pairs = value if isinstance(value, Mapping) else {plain: value}
    return [f"{encode(key)}={encode(item)}" for key in pairs for item in items(pairs[key])]


def items(value: Any) -> Sequence[Any]:
    """The items of a list, else the value as the only one; none of None."""
    if value is None:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


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

"""URI templates (RFC 6570): the forms that our resources use, in both directions.

Simple expansion `{name}`, reserved expansion `{+name}`, and form-style query expansion
`{?name,other*}`, which `match` does not take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

EXPRESSION = re.compile(r"\{([?+]?)([A-Za-z0-9_,*]+)\}")
#: What reserved expansion leaves as it is (RFC 6570, 3.2.3), with the percent sign of octets.
RESERVED = ":/?#[]@!$&'()*+,;="
#: Raw characters that end the value of a simple variable, or belong to no URI at all.
ENDS = re.compile(r"[/?#\[\]\\\x00-\x20\x7f]")
#: What a decoded value never has, since it may become part of a path.
UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")
#: Raw characters that end a value where slashes may stand.
ENDS_OF_PATH = re.compile(r"[?#\[\]\\\x00-\x20\x7f]")
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
            if match[1] == "+":
                values_of = (item for name in names for item in items(values.get(name)))
                return ",".join(quote(str(item), safe=RESERVED) for item in values_of)
            if match[1]:
                pairs = [pair for name in names for pair in query_pairs(name, values)]
                return "?" + "&".join(pairs) if pairs else ""
            return ",".join(encode(item) for name in names for item in items(values.get(name)))

        return EXPRESSION.sub(replace, self.text)

    @cached_property
    def _pieces(self) -> tuple[str, list[tuple[str, bool, str]]]:
        """What stands before the first variable; each with its kind and what stands behind it."""
        first, *rest = EXPRESSION.split(self.text)
        return first, [
            (name, operator == "+", behind)
            for operator, name, behind in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        ]

    @property
    def literals(self) -> str:
        """The text without its variables."""
        first, variables = self._pieces
        return first + "".join(behind for _, _, behind in variables)

    def match(self, uri: str) -> dict[str, str] | None:
        """The values, decoded, that make this URI; None for a URI of another shape.

        A variable ends where the text behind it occurs first, so that no URI takes long. It is
        never empty, never "." or "..", and has no slash, backslash or control character, encoded
        or not. That of `{+name}` is one or more such parts with a slash between them.
        """
        first, variables = self._pieces
        if not uri.startswith(first):
            return None
        found: dict[str, str] = {}
        rest = uri[len(first) :]
        for at, (name, is_path, behind) in enumerate(variables):
            if at == len(variables) - 1:
                if not rest.endswith(behind):
                    return None
                raw, rest = rest[: len(rest) - len(behind)], ""
            else:
                raw, separator, rest = rest.partition(behind)
                if not separator:
                    return None
            value = decode_value(raw, is_path=is_path)
            if value is None:
                return None
            found[name] = value
        return None if rest else found


def decode_value(raw: str, *, is_path: bool) -> str | None:
    """The value of one variable, or None for what none may be."""
    if (ENDS_OF_PATH if is_path else ENDS).search(raw):
        return None
    try:
        value = decode(raw)
    except ValueError:
        return None
    for part in value.split("/") if is_path else (value,):
        if part in ("", ".", "..") or UNSAFE.search(part):
            return None
    return value


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

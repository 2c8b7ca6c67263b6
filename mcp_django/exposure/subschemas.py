"""The schemas inside a JSON Schema 2020-12: where they stand, and what leads to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Schema: TypeAlias = "dict[str, Any] | bool"
Pointer: TypeAlias = tuple[str, ...]

#: Keywords whose value is one schema, a list of them, or an object of them by name.
SINGLE = frozenset(
    {
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "items",
        "contains",
        "unevaluatedItems",
        "contentSchema",
    }
)
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
# "definitions" is no keyword of this dialect, but many schemas still refer to it.
MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})


@dataclass(frozen=True, kw_only=True)
class Subschema:
    #: The keys from the root to it: the parts of a JSON pointer.
    pointer: Pointer
    schema: Schema

    @property
    def keywords(self) -> dict[str, Any]:
        """None for the schemas `true` and `false`."""
        return self.schema if isinstance(self.schema, dict) else {}


def subschemas(root: Schema) -> Iterator[Subschema]:
    """The root and every schema inside, each before what it holds. Follows no reference.

    What only looks like one, in `enum`, `const`, `default` or `examples`, is data.
    """
    waiting = [Subschema(pointer=(), schema=root)]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed([*inside(one)])


def inside(outer: Subschema) -> Iterator[Subschema]:
    """The schemas that stand right in another one."""
    for keyword, value in outer.keywords.items():
        if keyword in SINGLE:
            found: list[tuple[Pointer, Any]] = [((keyword,), value)]
        elif keyword in LISTS and isinstance(value, list):
            found = [((keyword, str(index)), one) for index, one in enumerate(value)]
        elif keyword in MAPS and isinstance(value, dict):
            found = [((keyword, name), one) for name, one in value.items()]
        else:
            continue
        for pointer, schema in found:
            if isinstance(schema, (dict, bool)):
                yield Subschema(pointer=outer.pointer + pointer, schema=schema)

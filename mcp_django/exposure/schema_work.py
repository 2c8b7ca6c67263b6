"""How much it takes to hold a value against a JSON Schema, before anybody tries.

A schema that refers to itself from two alternatives is asked twice as often with each level of
a value: forty levels would take years, in native code that nothing can stop. Other schemas are
asked about each value a fixed number of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from mcp_django.exposure.subschemas import Pointer, Subschema, subschemas

REFERENCES = ("$ref", "$dynamicRef")
ANCHORS = ("$anchor", "$dynamicAnchor")
#: Keywords that hold schemas for the same value.
SAME_VALUE = frozenset(
    {"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"}
)
MEMBERS = ("patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties")
ITEMS = ("items", "contains", "unevaluatedItems")
#: Any of these asks everything that applies to the same value a second time.
TWICE = ("unevaluatedProperties", "unevaluatedItems")
#: Where counting stops: nobody has this much time.
ENDLESS = 10**12
#: Characters that take as long as one more value.
CHARACTERS = 256


class BadReference(Exception):
    """A reference that leads out of the schema, to nothing, or round in a circle."""


class SchemaWork:
    """Raises BadReference when made for a schema whose references cannot be followed."""

    def __init__(self, root: dict[str, Any], *, deepest: int) -> None:
        self.root = root
        self.nodes = {one.pointer: one for one in subschemas(root)}
        self.anchors: dict[str, Pointer] = {}
        for one in self.nodes.values():
            for name in [one.keywords[keyword] for keyword in ANCHORS if keyword in one.keywords]:
                if self.anchors.setdefault(name, one.pointer) != one.pointer:
                    raise BadReference(f"it has two anchors called {name!r}")
        self._applied: dict[Pointer, Counter[Pointer]] = {}
        #: How many schemas are asked about one value, at most, by the level on which it stands.
        self.per_value = [*islice(self._levels(), deepest + 1)]

    def of(self, value: Any) -> int:
        """No fewer than the schemas that are asked about a value and all that it holds."""
        total, level, depth = 0, [value], 0
        while level and depth < len(self.per_value):
            weight = 0
            deeper: list[Any] = []
            for one in level:
                weight += 1
                if isinstance(one, str):
                    weight += len(one) // CHARACTERS
                elif isinstance(one, Mapping):
                    deeper.extend(one.values())
                elif isinstance(one, (list, tuple)):
                    deeper.extend(one)
            total += weight * self.per_value[depth]
            level, depth = deeper, depth + 1
        return total

    def _levels(self) -> Iterator[int]:
        """What is asked about a value, then about one inside of it, then inside of that."""
        applied = {pointer: self.applied_with(pointer) for pointer in self.nodes}
        held = {pointer: self._held_by(together) for pointer, together in applied.items()}
        asked = {pointer: min(together.total(), ENDLESS) for pointer, together in applied.items()}
        while True:
            yield asked[()]
            asked = {
                pointer: max(
                    min(sum(times * asked[one] for one, times in kind.items()), ENDLESS)
                    for kind in kinds
                )
                for pointer, kinds in held.items()
            }

    # The graph: which schemas are asked about the same value, and which about what it holds.

    def applied_with(
        self, pointer: Pointer, *, within: tuple[Pointer, ...] = ()
    ) -> Counter[Pointer]:
        """Every schema that is asked about a value together with this one, and how often."""
        if pointer in self._applied:
            return self._applied[pointer]
        if pointer in within:
            raise BadReference(f"#/{'/'.join(pointer)} refers to itself, and to nothing else")
        one = self.nodes[pointer]
        times = 2 if any(keyword in one.keywords for keyword in TWICE) else 1
        found = Counter({pointer: 1})
        for other in self.same_value(one):
            for inner, count in self.applied_with(other, within=(*within, pointer)).items():
                found[inner] = min(found[inner] + times * count, ENDLESS)
        self._applied[pointer] = found
        return found

    def same_value(self, one: Subschema) -> Iterable[Pointer]:
        for keyword in REFERENCES:
            if keyword in one.keywords:
                yield self.target(one.keywords[keyword])
        for keyword in SAME_VALUE & one.keywords.keys():
            yield from self.held(one, keyword)

    def held(self, one: Subschema, keyword: str) -> list[Pointer]:
        """The schemas right under a keyword: one, or those of a list or an object."""
        inner = (*one.pointer, keyword)
        if inner in self.nodes:
            return [inner]
        value = one.keywords[keyword]
        keys = value if isinstance(value, dict) else map(str, range(len(value)))
        return [(*inner, key) for key in keys]

    def target(self, reference: str) -> Pointer:
        """Where a reference leads. Nothing is ever fetched for it."""
        address, _, fragment = reference.partition("#")
        if address and address != self.root.get("$id", "").partition("#")[0]:
            raise BadReference(
                f"{reference[:200]!r} leads out of the schema, and nothing is fetched. "
                "Put what it means under $defs"
            )
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            found = self.anchors.get(fragment)
        else:
            parts = (part.replace("~1", "/").replace("~0", "~") for part in fragment.split("/"))
            found = tuple(parts)[1:]
        if found is None or found not in self.nodes:
            raise BadReference(f"{reference[:200]!r} leads to no schema in it")
        return found

    def _held_by(self, together: Counter[Pointer]) -> list[Counter[Pointer]]:
        """For each kind of thing that a value can hold: what is asked about it, and how often."""
        names: set[str] = set()
        places = 0
        for inner in together:
            keywords = self.nodes[inner].keywords
            names |= keywords.get("properties", {}).keys()
            places = max(places, len(keywords.get("prefixItems", ())))
        kinds = [
            *(("properties", name, MEMBERS) for name in [*sorted(names), None]),
            *(("prefixItems", str(place), ITEMS) for place in [*range(places), None]),
        ]
        return [self._about(together, *kind) for kind in kinds]

    def _about(
        self, together: Counter[Pointer], keyword: str, key: str | None, others: Iterable[str]
    ) -> Counter[Pointer]:
        found: Counter[Pointer] = Counter()
        for inner, times in together.items():
            one = self.nodes[inner]
            named = (*inner, keyword, str(key))
            if key is not None and named in self.nodes:
                found[named] += times
            for other in others:
                if other in one.keywords:
                    found.update(dict.fromkeys(self.held(one, other), times))
        return found

"""A value that a schema of a site accepts, for errors to show, if one can be made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mcp_django.exposure.examples import DEEPEST, TEXTS, Examples
from mcp_django.exposure.raw_schemas import RawSchema
from mcp_django.exposure.schema_work import SchemaWork

LONGEST_EXAMPLE = 400
#: What a schema may hold that nobody can make an example of.
UNMAKEABLE = (ArithmeticError, TypeError, ValueError, RecursionError)
NULL = {"type": "null"}


def example_of(raw: RawSchema) -> str:
    """JSON of arguments that are valid and short, or nothing. Whoever wrote examples is asked
    first.
    """
    for value in candidates(raw.schema, raw.work):
        text = msgspec.json.encode(value).decode()
        if isinstance(value, dict) and len(text) <= LONGEST_EXAMPLE and raw.accepts(value):
            return text
    return ""


def candidates(schema: dict[str, Any], work: SchemaWork) -> Iterator[Any]:
    yield from schema.get("examples", ())
    if "default" in schema:
        yield schema["default"]
    bare = {key: value for key, value in schema.items() if key not in ("examples", "default")}
    for is_full in (False, True):
        for text in TEXTS:
            try:
                yield RawExamples(work, text=text, is_full=is_full).make(bare)
            except UNMAKEABLE:
                continue


class RawExamples(Examples):
    """Understands references, `allOf` and first alternatives; check what you get."""

    def __init__(self, work: SchemaWork, *, text: str, is_full: bool) -> None:
        super().__init__({}, text=text)
        self.work = work
        #: Whether optional members are shown, too.
        self.is_full = is_full

    def make(self, schema: Any, *, depth: int = 0) -> Any:
        if depth > DEEPEST:
            return None
        whole = self.flat(schema, depth=0)
        if "const" in whole:
            return whole["const"]
        kinds = whole.get("type", "object" if "properties" in whole else "string")
        if isinstance(kinds, list):
            kinds = next((kind for kind in kinds if kind != "null"), "null")
        return super().make({**whole, "type": kinds}, depth=depth)

    def flat(self, schema: Any, *, depth: int) -> dict[str, Any]:
        """One schema in place of those that apply together."""
        if not isinstance(schema, dict) or depth > DEEPEST:
            return {}
        parts = [*schema.get("allOf", ())]
        for keyword in ("anyOf", "oneOf"):
            parts += [one for one in schema.get(keyword, ()) if one != NULL][:1]
        if "$ref" in schema:
            parts.append(self.work.nodes[self.work.target(schema["$ref"])].schema)
        dropped = ("allOf", "anyOf", "oneOf", "$ref")
        whole = {key: value for key, value in schema.items() if key not in dropped}
        for part in parts:
            merge(whole, self.flat(part, depth=depth + 1))
        return whole

    def _make_object(self, schema: dict[str, Any], *, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = list(properties) if self.is_full else schema.get("required", [])
        known = {name: properties.get(name, {}) for name in required}
        more = max(0, schema.get("minProperties", 0) - len(known))
        changed = {"properties": known, "required": required, "minProperties": more}
        return super()._make_object({**schema, **changed}, depth=depth)


def merge(whole: dict[str, Any], part: dict[str, Any]) -> None:
    for key, value in part.items():
        if key == "properties":
            whole[key] = {**value, **whole.get(key, {})}
        elif key == "required":
            whole[key] = [*dict.fromkeys([*whole.get(key, []), *value])]
        else:
            whole.setdefault(key, value)

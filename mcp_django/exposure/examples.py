"""Values that satisfy a JSON Schema of ours: what an error shows as a call that is valid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mcp_django.exposure.schemas import PREFIX

#: What a schema can require inside itself is finite, except where it requires itself.
DEEPEST = 12
LONGEST = 64
#: Texts to try where the schema says no more than "string"; times and datetimes are such.
TEXTS = ("text", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "12:00:00")
FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "uuid": "6f1c2a4e-8c1b-4a57-9d43-2f0b9c7e5a10",
    "decimal": "10.50",
}


class Examples:
    """Makes one value per schema. Patterns are not understood: check what you get."""

    def __init__(self, definitions: Mapping[str, dict[str, Any]], *, text: str = TEXTS[0]) -> None:
        self.definitions = definitions
        self.text = text

    def make(self, schema: dict[str, Any], *, depth: int = 0) -> Any:
        if depth > DEEPEST:
            return None
        if "$ref" in schema:
            schema = {**self.definitions[schema["$ref"].removeprefix(PREFIX)], **schema}
        for key in ("enum", "examples"):
            if named := [one for one in schema.get(key, ()) if one is not None]:
                return named[0]
        if schema.get("default") is not None:
            return schema["default"]
        if "anyOf" in schema:
            # msgspec puts null last.
            return self.make(schema["anyOf"][0], depth=depth + 1)
        return self._make_typed(schema, depth=depth)

    def _make_typed(self, schema: dict[str, Any], *, depth: int) -> Any:
        match schema.get("type"):
            case "object":
                return self._make_object(schema, depth=depth)
            case "array":
                return self._make_array(schema, depth=depth)
            case "integer" | "number":
                return make_number(schema)
            case "boolean":
                return True
            case "null":
                return None
        return self._make_text(schema)

    def _make_text(self, schema: dict[str, Any]) -> str:
        if schema.get("contentEncoding") == "base64":
            return "dGV4dA=="
        text = FORMATS.get(schema.get("format", ""), self.text)
        least = min(schema.get("minLength", 0), LONGEST)
        return text.ljust(least, "x")[: schema.get("maxLength")]

    def _make_object(self, schema: dict[str, Any], *, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        made = {
            name: self.make(properties[name], depth=depth + 1)
            for name in schema.get("required", ())
        }
        others = schema.get("additionalProperties")
        inner = others if isinstance(others, dict) else {}
        for number in range(min(schema.get("minProperties", 0), LONGEST)):
            made[f"key{number + 1}"] = self.make(inner, depth=depth + 1)
        return made

    def _make_array(self, schema: dict[str, Any], *, depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.make(one, depth=depth + 1) for one in schema["prefixItems"]]
        least = min(schema.get("minItems", 1), LONGEST)
        return [self.make(schema.get("items", {}), depth=depth + 1) for _ in range(least)]


def make_number(schema: dict[str, Any]) -> int | float:
    value: int | float = 1
    if (least := schema.get("minimum")) is not None:
        value = max(value, least)
    if (below := schema.get("exclusiveMinimum")) is not None:
        value = max(value, math.floor(below) + 1)
    if (most := schema.get("maximum")) is not None:
        value = min(value, most)
    if (above := schema.get("exclusiveMaximum")) is not None and value >= above:
        value = math.ceil(above) - 1
    if step := schema.get("multipleOf"):
        value = math.ceil(value / step) * step
    return value

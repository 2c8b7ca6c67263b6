"""JSON Schema 2020-12: of annotations, in words that every client reads, and example values."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin
from urllib.parse import unquote

import msgspec

Pointer: TypeAlias = tuple[str, ...]

#: Keywords whose value is one schema, a list of them, or an object of them by name.
SINGLE = frozenset(
    {
        "not", "if", "then", "else", "additionalProperties", "propertyNames", "contentSchema",
        "unevaluatedProperties", "items", "contains", "unevaluatedItems",
    }
)  # fmt: skip
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
# "definitions" is no keyword of this dialect, but many schemas still refer to it.
TARGETS = frozenset({"$defs", "definitions"})
MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", *TARGETS})
#: Keywords for references.
FOR_REFERENCES = TARGETS | {"$anchor"}
#: Keywords that say nothing of what is allowed.
UNCHECKED = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})

NUMBER = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
#: Keywords that say something about values of one type, and nothing about others.
KEYWORDS = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding"}),
    "number": NUMBER,
    "integer": NUMBER,
    "array": frozenset(
        {
            "items", "prefixItems", "contains", "minContains", "maxContains",
            "minItems", "maxItems", "uniqueItems",
        }
    ),
    "object": frozenset(
        {
            "properties", "patternProperties", "additionalProperties", "propertyNames",
            "required", "minProperties", "maxProperties",
        }
    ),
}  # fmt: skip


def subschemas(root: Any, pointer: Pointer = ()) -> Iterator[tuple[Pointer, dict[str, Any]]]:
    """The root and every schema inside, each before what it holds, by the parts of the JSON
    pointer from the root. Those for `true` and `false` are empty. Follows no reference.

    What only looks like one, in `enum`, `const`, `default` or `examples`, is data.
    """
    if not isinstance(root, (dict, bool)):
        return
    keywords = root if isinstance(root, dict) else {}
    yield pointer, keywords
    for keyword, value in keywords.items():
        place = (*pointer, keyword)
        if keyword in SINGLE:
            yield from subschemas(value, place)
        elif keyword in LISTS and isinstance(value, list):
            for at, member in enumerate(value):
                yield from subschemas(member, (*place, str(at)))
        elif keyword in MAPS and isinstance(value, dict):
            for name, member in value.items():
                yield from subschemas(member, (*place, name))


def mapped(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy of the schema with each schema right inside of it changed."""
    copy = {}
    for keyword, value in schema.items():
        if keyword in SINGLE:
            value = change(value)
        elif keyword in LISTS and isinstance(value, list):
            value = [change(member) for member in value]
        elif keyword in MAPS and isinstance(value, dict):
            value = {name: change(member) for name, member in value.items()}
        copy[keyword] = value
    return copy


def rewritten(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of the schema with each schema inside it changed, from the innermost out."""
    if not isinstance(schema, dict):
        return schema
    return change(mapped(schema, lambda inner: rewritten(inner, change)))


def for_clients(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object, in the words that every client reads. It allows the same.

    Some clients fail where `properties` is missing or where `type` is a list, and some services of
    models where an array has no `items` or an object does not say what it requires. Then they
    offer none of the server's tools. Some close an object that says nothing of its members: then a
    model can write none. A schema with pointers to places of its own stays as it is, since these
    would lead nowhere.
    """
    if schema.get("type") == "object" and "properties" not in schema:
        schema = {"type": "object", "properties": {}, **schema}
    targets = [str(inner.get("$ref", "")) for _, inner in subschemas(schema)]
    if any(target.startswith("#/") and target.count("/") > 2 for target in targets):
        return schema
    plain: dict[str, Any] = rewritten(schema, in_plain_words)
    return plain


def of_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """The same for all arguments of a tool, without references: some clients drop a tool that has
    any. The root says nothing of other names, since Amazon Nova ignores tools that do; they are
    refused in words.
    """
    told = for_clients(inlined(schema))
    return {keyword: value for keyword, value in told.items() if keyword != OTHERS}


#: References that are followed in one schema. Those of a graph can have no end.
MOST_INLINED = 500
OTHERS = "additionalProperties"


def inlined(root: dict[str, Any]) -> dict[str, Any]:
    """The schema without references. Inside of what a reference leads to, the same again is any
    object. A schema that refers to what is not in it or leads too far stays as it is.
    """
    left = MOST_INLINED

    def expand(schema: Any, trail: tuple[str, ...] = ()) -> Any:
        """A copy without references. Raises LookupError. `trail` are those that led here."""
        nonlocal left
        if not isinstance(schema, dict):
            return schema
        if "$ref" not in schema:
            own = {word: value for word, value in schema.items() if word not in FOR_REFERENCES}
            return mapped(own, lambda inner: expand(inner, trail))
        target = schema["$ref"]
        others = {word: value for word, value in schema.items() if word != "$ref"}
        whole = target_of(root, target)
        left -= 1
        if target in trail or left < 0:
            kind = {"type": "object"} if whole.get("type") == "object" else {}
            whole = {"description": "The same again.", **kind}
        elif whole.keys() & (others.keys() - UNCHECKED):
            whole = {"allOf": [whole]}
        return expand(whole | others, (*trail, target))

    try:
        whole: dict[str, Any] = expand(root)
    except (LookupError, RecursionError):
        return root
    return whole


def target_of(root: dict[str, Any], reference: str) -> dict[str, Any]:
    """The schema that a reference leads to. Raises LookupError."""
    pointer = unquote(reference).replace("~1", "/").replace("~0", "~")
    for place, schema in subschemas(root):
        if pointer in ("/".join(["#", *place]), f"#{schema.get('$anchor', '/')}"):
            return schema
    raise LookupError(reference)


def in_plain_words(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `items` for an array, with a type for an enumeration of texts, and with
    `anyOf` in place of a list of types.
    """
    types = schema.get("type")
    if types is None and all(isinstance(value, str) for value in schema.get("enum", (None,))):
        return {"type": "string", **schema}
    if "array" in (types or ()) and "prefixItems" not in schema:
        schema = {**schema, "items": schema.get("items", {})}
    if types == "object":
        return as_object(schema)
    if not isinstance(types, list):
        return schema
    if len(types) == 1:
        return in_plain_words({**schema, "type": types[0]})
    words = {kind: [word for word in schema if word in KEYWORDS.get(kind, ())] for kind in types}
    choices = [
        in_plain_words({"type": kind, **{word: schema[word] for word in words[kind]}})
        for kind in types
    ]
    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "type" and "anyOf" not in schema:
            changed["anyOf"] = choices
        elif not any(keyword in choice for choice in choices):
            changed[keyword] = value
    if "anyOf" in schema:
        changed["allOf"] = [*schema.get("allOf", ()), {"anyOf": choices}]
    return changed


def as_object(schema: dict[str, Any]) -> dict[str, Any]:
    """Say what it requires, if it has properties, or else that it has any members."""
    if "properties" in schema:
        return {**schema, "required": schema.get("required", [])}
    # Others are no members that nothing has looked at.
    return schema if "unevaluatedProperties" in schema else {OTHERS: True} | schema


# Python annotations as JSON Schema 2020-12, for the arguments and the results of functions.

PREFIX = "#/$defs/"
DECIMAL = {"type": "string", "format": "decimal"}
NONE = type(None)


def is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def without_none(annotation: Any) -> Any:
    """What is inside `Optional[...]` or `Annotated[...]`; any other annotation as it is."""
    if get_origin(annotation) is Annotated:
        return without_none(get_args(annotation)[0])
    if is_union(annotation):
        members = [one for one in get_args(annotation) if one is not NONE]
        if len(members) == 1:
            return without_none(members[0])
    return annotation


def describe_enum(annotation: Any) -> dict[str, Any]:
    """The schema hook. Raises NotImplementedError for what is not an enumeration."""
    # msgspec reads TextChoices and IntegerChoices, but cannot describe them: their metaclass is
    # Django's own.
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return {"enum": [one.value for one in annotation]}
    raise NotImplementedError


def input_schema(
    annotations: Mapping[str, Any], *, defaults: Mapping[str, Any], descriptions: Mapping[str, str]
) -> dict[str, Any]:
    """The schema of an arguments object, complete in itself.

    Raises TypeError for an annotation that cannot be read from JSON, NameError for one that
    names what cannot be found.
    """
    if not annotations:
        return of_arguments({"type": "object"})
    schemas, components = components_of(tuple(annotations.values()))
    properties = {
        name: hint(schema, annotations[name])
        for name, schema in zip(annotations, schemas, strict=True)
    }
    for name, description in descriptions.items():
        if name in properties and description:
            properties[name].setdefault("description", description)
    for name, value in defaults.items():
        properties[name].update(shown_default(value, annotations[name]))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in annotations if name not in defaults]
    if required:
        schema["required"] = required
    if components:
        schema["$defs"] = components
    return of_arguments(rewritten(schema, with_numbers))


def output_schema(annotation: Any) -> tuple[dict[str, Any], bool]:
    """The schema of a result, and whether it had to be wrapped as `{"result": ...}`.

    Revisions before 2026-07-28 know structured results that are objects, and no others.
    Raises TypeError and NameError as `input_schema` does.
    """
    (schema,), components = components_of((annotation,))
    whole = inlined({**schema, "$defs": components})
    is_wrapped = whole.get("type") != "object"
    return for_clients(wrapped(whole) if is_wrapped else whole), is_wrapped


def wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def components_of(
    annotations: tuple[Any, ...],
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    schemas, components = msgspec.json.schema_components(
        annotations, schema_hook=describe_enum, ref_template=PREFIX + "{name}"
    )
    for component in components.values():
        # Always the name of the class, which the reference says already.
        component.pop("title", None)
    return [dict(one) for one in schemas], components


def last_line(error: TypeError) -> str:
    """What msgspec cannot describe, without the ways to teach it."""
    return str(error).rpartition("\n")[2].removesuffix(".")


def hint(schema: dict[str, Any], annotation: Any) -> dict[str, Any]:
    # msgspec declares a plain "string" for datetimes that may be naive. Those that must be naive,
    # by Meta(tz=False), are not a date-time of JSON Schema.
    if annotation is datetime or (is_union(annotation) and datetime in get_args(annotation)):
        for one in (schema, *schema.get("anyOf", ())):
            if one.get("type") == "string":
                one.setdefault("format", "date-time")
    return schema


def with_numbers(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a Decimal with numbers allowed: msgspec reads both, and declares one."""
    if not DECIMAL.items() <= schema.items():
        return schema
    others = {key: value for key, value in schema.items() if key not in DECIMAL}
    return {"anyOf": [{"type": "number"}, dict(DECIMAL)], **others}


def shown_default(value: Any, annotation: Any) -> dict[str, Any]:
    """The `default` keyword, for a default that a client could also send."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        msgspec.convert(deepcopy(plain), annotation)
        msgspec.json.encode(plain)
    except (TypeError, ValueError):  # msgspec.ValidationError is a ValueError
        return {}
    return {"default": plain}


# Values that satisfy a schema: what an error shows as a call that is valid.

#: Only a schema that requires itself is endless.
DEEPEST_EXAMPLE = 12
#: Schemas looked at for one example: one that refers to itself from several members has no end.
MOST_IN_EXAMPLE = 1_000
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
NULL = {"type": "null"}


@dataclass
class Examples:
    """Makes one value per schema, of the first alternatives. Does not understand patterns.

    Nor does it follow references. With `is_full`, objects have their optional members, too. `left`
    counts down.
    """

    text: str = TEXTS[0]
    is_full: bool = False
    left: int = MOST_IN_EXAMPLE

    def make(self, schema: Any, *, depth: int = 0) -> Any:
        if depth > DEEPEST_EXAMPLE:
            return None
        schema = self._flat(schema, depth=0)
        if "const" in schema:
            return schema["const"]
        for value in (*schema.get("enum", ()), *schema.get("examples", ()), schema.get("default")):
            if value is not None:
                return value
        return self._make_typed(schema, depth=depth)

    def _make_typed(self, schema: Mapping[str, Any], *, depth: int) -> Any:
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kinds, list):
            kinds = next((kind for kind in kinds if kind != "null"), "null")
        match kinds:
            case "object":
                return self._make_object(schema, depth=depth)
            case "array" if "prefixItems" in schema:
                return [self.make(item, depth=depth + 1) for item in schema["prefixItems"]]
            case "array":
                least = min(schema.get("minItems", 1), LONGEST)
                return [self.make(schema.get("items", {}), depth=depth + 1) for _ in range(least)]
            case "integer" | "number":
                return make_number(schema)
            case "boolean":
                return True
            case "null":
                return None
        return self._make_text(schema)

    def _flat(self, schema: Any, *, depth: int) -> dict[str, Any]:
        """One schema instead of those that apply together."""
        self.left -= 1
        if not isinstance(schema, dict) or depth > DEEPEST_EXAMPLE or self.left < 0:
            return {}
        whole = dict(schema)
        parts = [*whole.pop("allOf", ())]
        for keyword in ("anyOf", "oneOf"):
            parts += [part for part in whole.pop(keyword, ()) if part != NULL][:1]
        for part in parts:
            flat = self._flat(part, depth=depth + 1)
            properties = {**flat.get("properties", {}), **whole.get("properties", {})}
            required = [*whole.get("required", ()), *flat.get("required", ())]
            whole = {**flat, **whole}
            if properties:
                whole |= {"properties": properties}
            if required:
                whole |= {"required": [*dict.fromkeys(required)]}
        return whole

    def _make_text(self, schema: Mapping[str, Any]) -> str:
        if schema.get("contentEncoding") == "base64":
            return "dGV4dA=="
        # So forms describe texts for which JSON Schema has no format.
        if such := re.search(r"\bSuch as (\S+)\.(?!\S)", schema.get("description", "")):
            return such[1]
        text, least = FORMATS.get(schema.get("format", ""), self.text), schema.get("minLength", 0)
        return text.ljust(min(least, LONGEST), "x")[: schema.get("maxLength")]

    def _make_object(self, schema: Mapping[str, Any], *, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        names = properties if self.is_full else schema.get("required", ())
        made = {name: self.make(properties.get(name, {}), depth=depth + 1) for name in names}
        others = schema.get("additionalProperties", {})
        missing = min(schema.get("minProperties", 0), LONGEST) - len(made)
        for number in range(missing):
            made[f"key{number + 1}"] = self.make(others, depth=depth + 1)
        return made


def make_number(schema: Mapping[str, Any]) -> int | float:
    above_least = math.floor(schema.get("exclusiveMinimum", 0)) + 1
    value: int | float = max(1, schema.get("minimum", 1), above_least)
    value = min(value, schema.get("maximum", value))
    if value >= schema.get("exclusiveMaximum", value + 1):
        value = math.ceil(schema["exclusiveMaximum"]) - 1
    if step := schema.get("multipleOf"):
        value = math.ceil(value / step) * step
    return value

"""Python annotations as JSON Schema 2020-12, for the arguments and the results of functions."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

PREFIX = "#/$defs/"
DECIMAL = {"type": "string", "format": "decimal"}
NONE = type(None)


def is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def without_none(annotation: Any) -> Any:
    """What stands in `Optional[...]` or `Annotated[...]`; any other annotation as it is."""
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
    annotations: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any],
    descriptions: Mapping[str, str],
) -> dict[str, Any]:
    """The schema of an arguments object: closed, and complete in itself.

    Raises TypeError for an annotation that cannot be read from JSON, NameError for one that
    names what cannot be found.
    """
    if not annotations:
        return {"type": "object", "additionalProperties": False}
    schemas, components = components_of(tuple(annotations.values()))
    properties = {
        name: accept_numbers(hint(schema, annotations[name]))
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
    schema["additionalProperties"] = False
    if components:
        schema["$defs"] = {name: accept_numbers(one) for name, one in components.items()}
    return schema


def output_schema(annotation: Any) -> tuple[dict[str, Any], bool]:
    """The schema of a result, and whether it had to be wrapped as `{"result": ...}`.

    Revisions before 2026-07-28 know structured results that are objects, and no others.
    Raises TypeError and NameError as `input_schema` does.
    """
    (schema,), components = components_of((annotation,))
    name = schema.get("$ref", "").removeprefix(PREFIX)
    if name and components[name].get("type") == "object":
        schema = {**components[name], **{k: v for k, v in schema.items() if k != "$ref"}}
        if name not in references(list(components.values())):
            del components[name]
    is_wrapped = schema.get("type") != "object"
    if is_wrapped:
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return ({**schema, "$defs": components} if components else schema), is_wrapped


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


def hint(schema: dict[str, Any], annotation: Any) -> dict[str, Any]:
    # msgspec says no more than "string" for datetimes that may be naive. Those that must be, by
    # Meta(tz=False), are no date-time in the sense of JSON Schema.
    if annotation is datetime or (is_union(annotation) and datetime in get_args(annotation)):
        for one in (schema, *schema.get("anyOf", ())):
            if one.get("type") == "string":
                one.setdefault("format", "date-time")
    return schema


def accept_numbers(schema: Any) -> Any:
    """The schema with numbers allowed for every Decimal: msgspec reads both, and says one."""
    if not isinstance(schema, dict):
        return schema
    if DECIMAL.items() <= schema.items():
        others = {key: value for key, value in schema.items() if key not in DECIMAL}
        return {"anyOf": [{"type": "number"}, dict(DECIMAL)], **others}
    changed = dict(schema)
    for key in ("items", "additionalProperties"):
        if key in changed:
            changed[key] = accept_numbers(changed[key])
    for key in ("anyOf", "prefixItems"):
        if key in changed:
            changed[key] = [accept_numbers(one) for one in changed[key]]
    if "properties" in changed:
        changed["properties"] = {
            name: accept_numbers(one) for name, one in changed["properties"].items()
        }
    return changed


def references(node: Any) -> set[str]:
    """The names in `$defs` that anything inside refers to."""
    if isinstance(node, list):
        return set().union(*map(references, node))
    if not isinstance(node, dict):
        return set()
    found = references(list(node.values()))
    if isinstance(reference := node.get("$ref"), str):
        found.add(re.sub(f"^{re.escape(PREFIX)}", "", reference))
    return found


def shown_default(value: Any, annotation: Any) -> dict[str, Any]:
    """The `default` keyword, for a default that a client could also send."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        msgspec.convert(deepcopy(plain), annotation)
        msgspec.json.encode(plain)
    except (TypeError, ValueError):  # msgspec.ValidationError is a ValueError
        return {}
    return {"default": plain}

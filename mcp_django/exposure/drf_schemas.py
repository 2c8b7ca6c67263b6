"""Serializers of Django REST framework as JSON Schemas. Imports it, so import this late."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from rest_framework import fields, relations, serializers  # type: ignore[import-untyped]

from mcp_django.exposure.schemas import DECIMAL

#: Serializers that hold one of their own kind end here; further in, anything is allowed.
DEEPEST = 8
#: Choices of one field. More than that helps no model.
MOST_CHOICES = 200
#: The first that fits decides, so what inherits stands before what it inherits from.
TYPES: tuple[tuple[type, dict[str, Any]], ...] = (
    (fields.BooleanField, {"type": "boolean"}),
    (fields.IntegerField, {"type": "integer"}),
    (fields.FloatField, {"type": "number"}),
    (fields.DecimalField, {"anyOf": [{"type": "number"}, DECIMAL]}),
    (fields.DateField, {"type": "string", "format": "date"}),
    (fields.DateTimeField, {"type": "string", "format": "date-time"}),
    (fields.TimeField, {"type": "string"}),
    (fields.DurationField, {"type": "string"}),
    (fields.UUIDField, {"type": "string", "format": "uuid"}),
    (fields.EmailField, {"type": "string", "format": "email"}),
    (fields.URLField, {"type": "string", "format": "uri"}),
    (fields.CharField, {"type": "string"}),
    (fields.FileField, {"type": "string"}),
    (relations.SlugRelatedField, {}),
    (relations.PrimaryKeyRelatedField, {}),
    (relations.RelatedField, {"type": "string"}),
)
FORMATTED = (fields.DateField, fields.DateTimeField)
#: Keywords of JSON Schema by the attributes of fields that mean the same.
NUMBERS = {"min_value": "minimum", "max_value": "maximum"}
TEXTS = {"min_length": "minLength", "max_length": "maxLength"}
LISTS = {"min_length": "minItems", "max_length": "maxItems"}


def arguments_schema(serializer: Any) -> dict[str, Any]:
    """What a serializer takes. Raises ImproperlyConfigured for fields that JSON cannot fill."""
    return Describer(reads=True).whole(serializer, depth=0)


def results_schema(serializer: Any) -> dict[str, Any]:
    """What a serializer shows."""
    return Describer(reads=False).whole(serializer, depth=0)


class Describer:
    def __init__(self, *, reads: bool) -> None:
        #: Whether the schema is of what a serializer reads, or of what it writes.
        self.reads = reads
        self.method = "to_internal_value" if reads else "to_representation"

    def whole(self, serializer: Any, *, depth: int) -> dict[str, Any]:
        """The schema of an object."""
        if depth > DEEPEST or not is_stock(serializer, self.method):
            return {"type": "object"}
        shown = writable(serializer) if self.reads else readable(serializer)
        for field in shown.values():
            if self.reads and isinstance(field, fields.FileField):
                raise ImproperlyConfigured(
                    f"{field.field_name} of {type(serializer).__name__} is a file, which no tool "
                    "can take. Leave it out, or make it read_only."
                )
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                name: self.field(field, depth=depth + 1) for name, field in shown.items()
            },
        }
        # A field that may be left out is left out of answers, too, where an object has no such
        # attribute.
        if required := [name for name, field in shown.items() if field.required]:
            schema["required"] = required
        if self.reads:
            schema["additionalProperties"] = False
        return schema

    def field(self, field: Any, *, depth: int) -> dict[str, Any]:
        schema = self.bare(field, depth=depth)
        # A column that may be null is not said to be where the field is read only.
        if field.allow_null or (not self.reads and not field.required):
            schema = nullable(schema)
        if field.help_text:
            schema["description"] = str(field.help_text)
        if self.reads and field.default is not fields.empty and not callable(field.default):
            schema |= shown_default(field.default)
        return schema

    def bare(self, field: Any, *, depth: int) -> dict[str, Any]:
        if isinstance(field, serializers.ListSerializer):
            return self.list(field, field.child, depth=depth)
        if isinstance(field, serializers.Serializer):
            return self.whole(field, depth=depth)
        if not is_stock(field, self.method):
            return {}
        if isinstance(field, fields.ListField):
            return self.list(field, field.child, depth=depth)
        if isinstance(field, relations.ManyRelatedField):
            return self.list(field, field.child_relation, depth=depth)
        if isinstance(field, fields.DictField):
            inner = self.field(field.child, depth=depth + 1)
            return {"type": "object", "additionalProperties": inner}
        if isinstance(field, fields.ChoiceField):
            return self.choices(field)
        return self.typed(field)

    def list(self, field: Any, child: Any, *, depth: int) -> dict[str, Any]:
        items = self.field(child, depth=depth + 1)
        schema: dict[str, Any] = {"type": "array", "items": items}
        if self.reads:
            schema |= limits(field, LISTS)
            if not getattr(field, "allow_empty", True):
                schema.setdefault("minItems", 1)
        return schema

    def choices(self, field: Any) -> dict[str, Any]:
        # What is stored need not be one of today's choices.
        if not self.reads or len(field.choices) > MOST_CHOICES:
            return {"type": "array"} if isinstance(field, fields.MultipleChoiceField) else {}
        values = [msgspec.to_builtins(key) for key in field.choices]
        if isinstance(field, fields.MultipleChoiceField):
            return {"type": "array", "items": {"enum": values}}
        return {"enum": [*values, ""] if field.allow_blank and "" not in values else values}

    def typed(self, field: Any) -> dict[str, Any]:
        found = next((schema for kind, schema in TYPES if isinstance(field, kind)), {})
        schema = dict(found)
        if isinstance(field, relations.PrimaryKeyRelatedField):
            schema = key_schema(field)
        if isinstance(field, FORMATTED) and not self.is_iso(field):
            del schema["format"]
        if self.reads and "type" in schema:
            schema |= limits(field, TEXTS if schema["type"] == "string" else NUMBERS)
            if isinstance(field, fields.CharField) and not field.allow_blank:
                schema.setdefault("minLength", 1)
        return schema

    def is_iso(self, field: Any) -> bool:
        """Whether the text is what JSON Schema calls a date or a date-time."""
        # Without time zones, a time has no offset; with formats of a site, nobody knows.
        if isinstance(field, fields.DateTimeField) and not settings.USE_TZ:
            return False
        own = getattr(field, "input_formats" if self.reads else "format", None)
        default = [fields.ISO_8601] if self.reads else fields.ISO_8601
        return own is None or own == default


def writable(serializer: Any) -> dict[str, Any]:
    return {
        name: field
        for name, field in serializer.fields.items()
        if not field.read_only and not isinstance(field, fields.HiddenField)
    }


def readable(serializer: Any) -> dict[str, Any]:
    return {name: field for name, field in serializer.fields.items() if not field.write_only}


def is_stock(field: Any, method: str) -> bool:
    """Whether the framework's own code reads or writes it, so that we know how."""
    return str(getattr(type(field), method).__module__).startswith("rest_framework.")


def key_schema(field: Any) -> dict[str, Any]:
    """The type of the keys of a relation, where that is plain."""
    key = getattr(getattr(field.queryset, "model", None), "_meta", None)
    if field.pk_field is None and key is not None and isinstance(key.pk, models.IntegerField):
        return {"type": "integer"}
    return {}


def nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(schema)
    if "type" in changed:
        changed["type"] = [changed["type"], "null"]
    elif "enum" in changed and None not in changed["enum"]:
        changed["enum"] = [*changed["enum"], None]
    elif "anyOf" in changed:
        changed["anyOf"] = [*changed["anyOf"], {"type": "null"}]
    return changed


def limits(field: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """What a field allows at least and at most, where it is a number and no function."""
    found = {}
    for attribute, keyword in names.items():
        value = getattr(field, attribute, None)
        if isinstance(value, Decimal):
            value = float(value)
        if isinstance(value, (int, float)):
            found[keyword] = value
    return found


def shown_default(value: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.to_builtins(value)}
    except TypeError:
        return {}

"""Serializers of Django REST framework in place of annotations: `@mcp.tool(serializer=...)`.

Imports the framework, so import this late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from rest_framework import exceptions, fields, relations, serializers  # type: ignore[import-untyped]
from rest_framework.renderers import JSONRenderer  # type: ignore[import-untyped]
from rest_framework.serializers import (  # type: ignore[import-untyped]
    ListSerializer,
    Serializer,
)
from rest_framework.settings import api_settings  # type: ignore[import-untyped]

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.functions.arguments import as_declared, check_plain
from mcp_django.exposure.functions.json_schemas import DECIMAL, for_clients, of_arguments, wrapped
from mcp_django.exposure.functions.results import refusals_in_words
from mcp_django.exposure.functions.signatures import Signature
from mcp_django.exposure.functions.site_schemas import (
    LONGEST_MESSAGE,
    RawArguments,
    RawResults,
    is_dict,
    only_parameter,
    place_of,
)
from mcp_django.protocol.results import ToolResult

# Serializers as JSON Schemas.

#: Below this depth of nested serializers anything is allowed.
DEEPEST_SERIALIZER = 8
#: Choices of one field. More do not help a model.
MOST_CHOICES = 200
#: The first match decides, so subclasses come before their bases.
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


class SchemaOf:
    """Makes the JSON Schema of what serializers read, or of what they write."""

    def __init__(self, *, reads: bool) -> None:
        self.reads = reads
        self.method = "to_internal_value" if reads else "to_representation"

    def whole(self, serializer: Any, *, depth: int = 0) -> dict[str, Any]:
        """The schema of an object. Raises ImproperlyConfigured for fields JSON cannot fill."""
        if depth > DEEPEST_SERIALIZER or not is_stock(serializer, self.method):
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
            with suppress(TypeError):
                schema["default"] = msgspec.to_builtins(field.default)
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
            # The type of the keys, where that is plain.
            key = getattr(getattr(field.queryset, "model", None), "_meta", None)
            if field.pk_field is None and key and isinstance(key.pk, models.IntegerField):
                schema = {"type": "integer"}
        if isinstance(field, FORMATTED) and not self.is_iso(field):
            del schema["format"]
        if isinstance(field, fields.CharField) and not self.reads:
            # What is stored may be empty, or no address any more.
            schema.pop("format", None)
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
    """Whether the framework's own code reads or writes the field, so that its schema is known."""
    return str(getattr(type(field), method).__module__).startswith("rest_framework.")


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
    """The bounds of a field, where they are numbers and not functions."""
    found = {}
    for attribute, keyword in names.items():
        value = getattr(field, attribute, None)
        if isinstance(value, Decimal):
            value = float(value)
        if isinstance(value, (int, float)):
            found[keyword] = value
    return found


class SerializerArguments(RawArguments):
    """Reads arguments with a serializer of the site, which knows the request by its context."""

    def __init__(self, tool: str, signature: Signature, serializer: Any) -> None:
        self.tool = tool
        if not is_serializer(serializer):
            raise ImproperlyConfigured(
                f"serializer of the tool {tool!r} must be a Serializer class, not {serializer!r}."
            )
        self.serializer = serializer
        self.parameter, annotation = only_parameter(tool, signature)
        self._takes_data = is_dict(annotation)
        is_bound = isinstance(annotation, type) and issubclass(serializer, annotation)
        if not self._takes_data and not is_bound:
            raise ImproperlyConfigured(
                f"{self.parameter} of the tool {tool!r} gets what the serializer has read. "
                f"Annotate it so: {self.parameter}: dict[str, Any], or, for the serializer "
                f"itself, {self.parameter}: {serializer.__name__}."
            )
        self._declared = SchemaOf(reads=True).whole(serializer())
        self.schema = of_arguments(self._declared)

    def read(self, arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        """Raises ToolError that says what the serializer says, field by field."""
        try:
            check_plain(arguments, deepest=get_config().max_depth)
        except (ValueError, RecursionError):
            raise ToolError("Too deeply nested, or a number out of range.") from None
        declared = as_declared(arguments, self._declared)
        serializer = self.serializer(data=declared, context={"request": context.request})
        faults = [*unknown_names(serializer, declared)]
        with refusals_in_words():
            if not faults and not serializer.is_valid():
                faults = [*sentences(serializer.errors)]
        if faults:
            raise ToolError(" ".join(faults[:MOST_FAULTS]))
        read = dict(serializer.validated_data) if self._takes_data else serializer
        return {self.parameter: read}


class SerializerResults(RawResults):
    """Answers with what a serializer shows of the object, or the objects, that came back."""

    def __init__(self, tool: str, serializer: Any) -> None:
        self.many = isinstance(serializer, ListSerializer)
        self.serializer = type(serializer.child) if self.many else serializer
        if not is_serializer(self.serializer):
            raise ImproperlyConfigured(
                f"output_serializer of the tool {tool!r} must be a Serializer class, or one made "
                f"with many=True, not {serializer!r}."
            )
        schema = SchemaOf(reads=False).whole(self.serializer())
        super().__init__(tool, {"type": "array", "items": schema} if self.many else schema)
        self.annotation = f"what {self.serializer.__name__} shows"
        if self.many:
            self.is_wrapped = True
            self.schema = wrapped(for_clients(self._raw.schema))

    def make(self, value: Any, context: CallContext) -> ToolResult:
        if isinstance(value, ToolResult):
            return super().make(value, context)
        if value is None:
            # The serializer would show the defaults of a form that nobody has filled in.
            raise self._broken("returned None")
        written = self.serializer(value, many=self.many, context={"request": context.request})
        return super().make(msgspec.Raw(JSONRenderer().render(written.data)), context)


def is_serializer(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, Serializer)


def unknown_names(serializer: Any, value: Any, *, place: str = "") -> Iterator[str]:
    """Sentences about members that the framework would silently ignore."""
    if isinstance(serializer, ListSerializer) and isinstance(value, list):
        for index, one in enumerate(value):
            yield from unknown_names(serializer.child, one, place=f"{place}[{index}]")
    is_known = isinstance(serializer, Serializer) and is_stock(serializer, "to_internal_value")
    if not is_known or not isinstance(value, Mapping):
        return
    names = writable(serializer)
    for name, one in value.items():
        if name in names:
            yield from unknown_names(names[name], one, place=f"{place}.{name}".lstrip("."))
        else:
            where = f" in {place}" if place else ""
            yield f"Unknown argument {quoted(name)}{where}. It takes: {', '.join(names)}."


# How the framework refuses, as sentences for a model.

MOST_FAULTS = 10


def refusal_of(error: Exception) -> str:
    """The sentence of an exception by which the framework refuses; empty for any other one."""
    if not isinstance(error, exceptions.APIException) or error.status_code >= 500:
        return ""
    # Those that Django has, too, use the same words.
    if isinstance(error, (exceptions.NotAuthenticated, exceptions.PermissionDenied)):
        return "You may not do this."
    if isinstance(error, exceptions.NotFound):
        return "There is no such object."
    return " ".join(islice(sentences(error.detail), MOST_FAULTS))


def sentences(errors: Any, *path: str | int) -> Iterator[str]:
    """What a serializer says, with the place of each field."""
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            is_field = name != api_settings.NON_FIELD_ERRORS_KEY
            yield from sentences(inner, *path, *([name] if is_field else []))
    elif isinstance(errors, str):
        yield from sentences([errors], *path)
    elif any(isinstance(one, (Mapping, list)) for one in errors):
        for index, inner in enumerate(errors):
            yield from sentences(inner, *path, index)
    elif errors:
        message = " ".join(" ".join(map(str, errors)).split())[:LONGEST_MESSAGE]
        yield f"Argument {place_of(path)}: {message}" if path else message

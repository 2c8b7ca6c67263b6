"""Serializers of Django REST framework in place of annotations: `@mcp.tool(serializer=...)`.

Imports the framework, so import this late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from django.core.exceptions import ImproperlyConfigured
from rest_framework.renderers import JSONRenderer  # type: ignore[import-untyped]
from rest_framework.serializers import (  # type: ignore[import-untyped]
    ListSerializer,
    Serializer,
)

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.drf_refusals import in_words, sentences
from mcp_django.exposure.drf_schemas import (
    arguments_schema,
    is_stock,
    results_schema,
    writable,
)
from mcp_django.exposure.function_arguments import check_plain, shown
from mcp_django.exposure.raw_tools import RawResults, is_dict, only_parameter
from mcp_django.exposure.refusals import refusals_in_words
from mcp_django.exposure.signatures import Signature
from mcp_django.protocol.results import ToolResult


class SerializerArguments:
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
        self.schema = arguments_schema(serializer())

    def read_for(self, context: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolError that says what the serializer says, field by field."""
        try:
            check_plain(arguments, deepest=get_config().max_depth)
        except (ValueError, RecursionError):
            raise ToolError("Too deeply nested, or a number out of range.") from None
        serializer = self.serializer(data=dict(arguments), context={"request": context.request})
        faults = [*unknown_names(serializer, arguments)]
        with refusals_in_words():
            if not faults and not serializer.is_valid():
                faults = [*sentences(serializer.errors)]
        if faults:
            raise ToolError(in_words(faults))
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
        schema = results_schema(self.serializer())
        if self.many:
            schema = {"type": "array", "items": schema}
        super().__init__(tool, schema)
        self.annotation = f"what {self.serializer.__name__} shows"
        if self.many:
            self.is_wrapped = True
            self.schema = {
                "type": "object",
                "properties": {"result": schema},
                "required": ["result"],
            }

    def make_for(self, context: CallContext, value: Any) -> ToolResult:
        if isinstance(value, ToolResult):
            return self.make(value)
        if value is None:
            # The serializer would show the defaults of a form that nobody has filled in.
            raise self._broken("returned None")
        written = self.serializer(value, many=self.many, context={"request": context.request})
        return self.make(msgspec.Raw(JSONRenderer().render(written.data)))


def is_serializer(given: Any) -> bool:
    return isinstance(given, type) and issubclass(given, Serializer)


def unknown_names(serializer: Any, value: Any, *, place: str = "") -> Iterator[str]:
    """Sentences about members that the framework would pass over without a word."""
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
            yield f"Unknown argument {shown(name)}{where}. It takes: {', '.join(names)}."

"""What a function takes and returns, and who says so: annotations, a schema or a serializer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from mcp_django.context import CallContext
from mcp_django.exposure.function_arguments import Arguments
from mcp_django.exposure.function_results import Results
from mcp_django.exposure.raw_tools import RawArguments, RawResults
from mcp_django.exposure.signatures import Signature
from mcp_django.protocol.results import ToolResult


class Reader(Protocol):
    """Reads the arguments of calls."""

    schema: dict[str, Any]

    def read_for(self, context: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's arguments by name. Raises ToolError for those that do not fit."""
        ...


class Maker(Protocol):
    """Makes results of what a function returned."""

    schema: dict[str, Any] | None

    def make_for(self, context: CallContext, value: Any) -> ToolResult:
        """The result. Raises ToolError when it is too long, TypeError when it breaks a promise."""
        ...


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What a site declared in place of annotations."""

    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    serializer: Any = None
    output_serializer: Any = None

    def reader(
        self, tool: str, signature: Signature, *, descriptions: Mapping[str, str]
    ) -> Reader:
        """Raises ImproperlyConfigured for what cannot be relied on, as `maker` does."""
        if self.input_schema is not None and self.serializer is not None:
            raise ImproperlyConfigured(
                f"The tool {tool!r} has an input_schema and a serializer. One must decide."
            )
        if self.input_schema is not None:
            return RawArguments(tool, signature, self.input_schema)
        if self.serializer is not None:
            read: Reader = framework_for(tool).SerializerArguments(
                tool, signature, self.serializer
            )
            return read
        return Arguments(tool, signature, descriptions=descriptions)

    def maker(self, tool: str, signature: Signature) -> Maker:
        if self.output_schema is not None and self.output_serializer is not None:
            raise ImproperlyConfigured(
                f"The tool {tool!r} has an output_schema and an output_serializer. "
                "One must decide."
            )
        if self.output_schema is not None:
            return RawResults(tool, self.output_schema)
        if self.output_serializer is not None:
            made: Maker = framework_for(tool).SerializerResults(tool, self.output_serializer)
            return made
        return Results(tool, signature.returns)


def framework_for(tool: str) -> ModuleType:
    """Our half of Django REST framework, which a site need not have."""
    try:
        import rest_framework  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise ImproperlyConfigured(
            f"The tool {tool!r} has a serializer, and Django REST framework is not installed. "
            'Install "django-mcp-orm[drf]".'
        ) from error
    from mcp_django.exposure import drf_tools

    return drf_tools

"""Tools whose schemas the site wrote itself: arguments as one dict, results held to a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin

import msgspec
from django.core.exceptions import ImproperlyConfigured

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.function_results import Kind, Results
from mcp_django.exposure.raw_examples import example_of
from mcp_django.exposure.raw_schemas import RawSchema
from mcp_django.exposure.schemas import without_none
from mcp_django.exposure.signatures import Signature


class RawArguments:
    """Hands a function what the schema accepts, as it came."""

    def __init__(self, tool: str, signature: Signature, schema: Mapping[str, Any]) -> None:
        self.tool = tool
        self.parameter, annotation = only_parameter(tool, signature)
        if not is_dict(annotation):
            raise ImproperlyConfigured(
                f"{self.parameter} of the tool {tool!r} gets all arguments. "
                f"Annotate it so: {self.parameter}: dict[str, Any]."
            )
        what = f"The input_schema of the tool {tool!r}"
        self._raw = RawSchema(schema, what=what)
        self.schema = self._raw.schema
        if self.schema.get("type") != "object":
            raise ImproperlyConfigured(f'{what} needs "type": "object" at its root.')
        self._example = example_of(self._raw)

    def read_for(self, context: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolError that names the place, says what is wrong and shows a valid call."""
        fault = self._raw.fault(arguments)
        if fault is None:
            return {self.parameter: dict(arguments)}
        shown = f" A valid call: {self.tool} {self._example}" if self._example else ""
        raise ToolError(f"{fault}.{shown}")


class RawResults(Results):
    """Makes results that the schema accepts. Another one is a mistake of the function."""

    def __init__(self, tool: str, schema: Mapping[str, Any]) -> None:
        self.tool = tool
        self.annotation = "what its output_schema says"
        self.kind = Kind.STRUCTURED
        self._raw = RawSchema(schema, what=f"The output_schema of the tool {tool!r}")
        self.schema = self._raw.schema
        self.is_wrapped = False

    def _check(self, raw: bytes) -> None:
        # What is too long is refused as such, further on.
        if len(raw) <= get_config().max_response:
            fault = self._raw.fault(msgspec.json.decode(raw))
            if fault is not None:
                raise self._broken(f"returned something else ({fault})")


def only_parameter(tool: str, signature: Signature) -> tuple[str, Any]:
    """The parameter that takes all arguments as one, and its annotation."""
    if len(signature.annotations) != 1:
        raise ImproperlyConfigured(
            f"The function of the tool {tool!r} gets its arguments as one, so beside the request "
            "and the context it has exactly one parameter, such as arguments: dict[str, Any]."
        )
    return next(iter(signature.annotations.items()))


def is_dict(annotation: Any) -> bool:
    """Whether a plain dict may stand there."""
    plain = without_none(annotation)
    kind = get_origin(plain) or plain
    return isinstance(kind, type) and kind is not object and issubclass(dict, kind)

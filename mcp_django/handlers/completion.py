"""completion/complete."""

from __future__ import annotations

from typing import Any

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.resources.completion import complete_resource
from mcp_django.handlers.prompts import argument_texts, find_prompt
from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.methods import parse_params
from mcp_django.protocol.results import CompletionResult

#: The specification's limit (server/utilities/completion).
MOST_VALUES = 100


def complete(context: CallContext, params: dict[str, Any]) -> CompletionResult:
    asked = parse_params("completion/complete", params)
    rights = Rights(context.request, context.principal)
    name, value = asked.argument.name, asked.argument.value
    found: CompletionResult | None
    try:
        earlier = argument_texts(asked.context.arguments if asked.context else None)
        match asked.ref:
            case {"type": "ref/prompt", "name": str(prompt)}:
                values = find_prompt(rights, prompt).complete(rights, name, value)
                found = None if values is None else CompletionResult(values=values)
            case {"type": "ref/resource", "uri": str(uri)}:
                found = complete_resource(rights, uri, name, value, given=earlier)
            case _:
                message = "ref must name a prompt or a resource template."
                raise ProtocolError(INVALID_PARAMS, message)
        if found is None:
            raise NotFound(f"There is no argument {name[:80]!r} to complete.")
    except ToolError as error:
        raise ProtocolError(INVALID_PARAMS, str(error)) from error
    return CompletionResult(
        values=found.values[:MOST_VALUES],
        total=found.total,
        has_more=len(found.values) > MOST_VALUES or found.has_more,
    )

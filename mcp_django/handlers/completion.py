"""completion/complete."""

from __future__ import annotations

from typing import Any

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.resources.completion import Completion, complete_resource
from mcp_django.handlers.prompts import find_prompt
from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.methods import CompleteParams, parse_params
from mcp_django.protocol.results import CompletionResult

#: The specification's limit (server/utilities/completion).
MOST_VALUES = 100


def complete(context: CallContext, params: dict[str, Any]) -> CompletionResult:
    asked = parse_params("completion/complete", params)
    try:
        found = find_values(Rights(context.request, context.principal), asked)
    except NotFound as error:
        raise ProtocolError(INVALID_PARAMS, str(error)) from error
    return CompletionResult(
        values=found.values[:MOST_VALUES],
        total=found.total,
        has_more=len(found.values) > MOST_VALUES or found.has_more,
    )


def find_values(rights: Rights, asked: CompleteParams) -> Completion:
    """Raises NotFound for a prompt or an argument that is not there for this caller."""
    given = (asked.context and asked.context.arguments) or {}
    name, value = asked.argument.name, asked.argument.value
    found: Completion | None
    match asked.ref:
        case {"type": "ref/prompt", "name": str(prompt)}:
            values = find_prompt(rights, prompt).complete(rights, name, value, given=given)
            found = None if values is None else Completion(values=values)
        case {"type": "ref/resource", "uri": str(uri)}:
            found = complete_resource(rights, uri, name, value, given=given)
        case _:
            raise ProtocolError(INVALID_PARAMS, "ref must name a prompt or a resource template.")
    if found is None:
        raise NotFound(f"There is no argument {name[:80]!r} to complete.")
    return found

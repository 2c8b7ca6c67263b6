"""What staff decided about single tools: whether they are there, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

from mcp_django.exposure.confirmations import ARGUMENT, with_token
from mcp_django.exposure.decisions import ToolDecision
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.tools import Tool
from mcp_django.protocol.results import ToolDefinition

#: Annotations by the names that rows use.
MEMBERS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "openWorldHint": "open_world",
}


def exists(rights: Rights, tool: Tool) -> bool:
    """Whether this caller may know of the tool: what staff say, then what the tool itself says."""
    decision = rights.exposed.decisions.tools.get(tool.name)
    return rights.is_left(decision) and tool.exists_for(rights)


def definition_of(rights: Rights, tool: Tool) -> ToolDefinition:
    """What clients are told of it, in the words of staff where they wrote some."""
    decision = rights.exposed.decisions.tools.get(tool.name)
    definition = tool.definition
    if decision is None:
        return definition
    # Kept with its encodings for as long as both stay as they are.
    kept = rights.exposed.redefined.get(tool.name)
    if kept is None or kept[0] is not definition:
        kept = definition, redefined(tool, definition, decision)
        rights.exposed.redefined[tool.name] = kept
    return kept[1]


def redefined(tool: Tool, definition: ToolDefinition, decision: ToolDecision) -> ToolDefinition:
    annotations = {MEMBERS[name]: value for name, value in decision.annotations}
    schema = definition.input_schema
    if decision.needs_confirmation and ARGUMENT not in schema.get("properties", {}):
        schema = with_token(schema, tool=tool.name)
    return replace(
        definition,
        input_schema=schema,
        title=decision.title or definition.title,
        description=decision.description or definition.description,
        annotations=replace(definition.annotations, **annotations),
    )

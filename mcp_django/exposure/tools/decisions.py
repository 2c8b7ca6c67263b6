"""What staff decided about single tools: their visibility, their words, and confirmations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_django.context import CallContext
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import Tool
from mcp_django.exposure.questions import confirmations
from mcp_django.exposure.questions.confirmations import with_confirmation
from mcp_django.exposure.questions.conversation import approve
from mcp_django.exposure.questions.words import question, value_lines
from mcp_django.exposure.tools.records import WriteTool
from mcp_django.principal import DELETE
from mcp_django.protocol.results import ToolDefinition

#: Annotations by the names that rows use.
MEMBERS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "openWorldHint": "open_world",
}


def tool_exists(rights: Rights, tool: Tool) -> bool:
    """Whether this caller may know of the tool: what staff say, then what the tool itself says."""
    decision = rights.exposed.decisions.tools.get(tool.name)
    return rights.is_left(decision) and tool.exists_for(rights)


def tool_definition(rights: Rights, tool: Tool) -> ToolDefinition:
    """What clients get in lists, in the words of staff where they wrote some."""
    decision, definition = rights.exposed.decisions.tools.get(tool.name), tool.definition
    if decision is None:
        return definition
    annotations = {MEMBERS[name]: value for name, value in decision.annotations}
    if decision.needs_confirmation:
        definition = with_confirmation(definition)
    return replace(
        definition,
        title=decision.title or definition.title,
        description=decision.description or definition.description,
        annotations=replace(definition.annotations, **annotations),
    )


def needs_confirmation(
    context: CallContext, rights: Rights, tool: Tool, arguments: Mapping[str, Any]
) -> bool:
    """Whether a person has to agree to this call before the tool runs: staff want it, it deletes
    rows of a record, or the tool is a function that is declared destructive or an endpoint that
    deletes, which clients that can ask a person do not call unasked. One that asks for itself
    knows what to ask.
    """
    if tool.confirms_itself:
        return False
    decision = rights.exposed.decisions.tools.get(tool.name)
    if decision is not None and decision.needs_confirmation:
        return True
    if isinstance(tool, WriteTool):
        return tool.deletes_rows(arguments)
    # Functions and endpoints have a scope, and other tools confirm themselves.
    if tool.asks or getattr(tool, "scope", "") != DELETE:
        return False
    return context.can_ask and tool_definition(rights, tool).annotations.destructive is True


def approved(
    context: CallContext, rights: Rights, tool: Tool, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments to run the tool with, once a person has agreed to the call.

    Raises what `approve` does, and ToolError for arguments that the tool does not take.
    """
    if not needs_confirmation(context, rights, tool, arguments):
        return arguments
    bare = confirmations.without_token(arguments)
    # Do not ask for, or use, an agreement to a call that would be refused.
    if isinstance(tool, WriteTool):
        text = tool.question(context, rights, bare)
    else:
        tool.check(context, rights, bare)
        title = tool_definition(rights, tool).title or f"Call {tool.name}"
        text = question(title, parts=[value_lines(bare)])
    if tool.asks:
        # A call has one conversation, and a tool that asks needs it.
        context.asked_first = text
        return arguments
    approve(context, rights, tool=tool.name, arguments=arguments, question=text)
    return bare

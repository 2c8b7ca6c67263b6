"""What staff decided about single tools: their visibility, their words, and confirmations."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError, Unconfirmed
from mcp_django.exposure.decisions import ToolDecision
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import Tool
from mcp_django.exposure.questions import confirmations
from mcp_django.exposure.questions.confirmations import ARGUMENT, with_token
from mcp_django.exposure.questions.conversation import Elicitation
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
    decision = rights.exposed.decisions.tools.get(tool.name)
    definition = tool.definition
    if decision is None:
        return definition
    # Cached, with its encodings, while both stay the same.
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


ASKED = (
    "Staff of this site want a person to agree to each call of {tool}, so nothing was done yet. "
    "It would be called with these arguments:\n\n{arguments}\n\nShow this to the person. Only if "
    'they agree, call {tool} again with the same arguments and "{argument}": "{token}".'
)
AGREE = "Call {tool} with these arguments?\n\n{arguments}"
#: Characters of the arguments that are shown.
LONGEST_SHOWN = 2000
#: What was shown is the call, of which a confirmation holds a digest already.
SHOWN = hashlib.sha256(b"staff want it").hexdigest()


def takes_token(tool: Tool) -> bool:
    """Whether the argument of that name is free for a token, or is one already."""
    return tool.asks or ARGUMENT not in tool.definition.input_schema.get("properties", {})


def confirmed(
    context: CallContext, rights: Rights, tool: Tool, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The arguments to run the tool with. Raises InputNeeded where the client can ask its person,
    else Unconfirmed with a token to come back with, and ToolError for one that is not good, for
    arguments that the tool does not take, and for a person who does not agree.
    """
    if tool.confirms_itself:
        tool.check(context, rights, arguments)
        return arguments
    if not takes_token(tool):
        raise ToolError(
            f"{tool.name} cannot be called: staff want it to be confirmed, and it has an argument "
            f'of its own called "{ARGUMENT}". Tell the person.'
        )
    token = confirmations.token_in(arguments)
    bare = confirmations.without_token(arguments)
    issued = confirmations.read_token(rights, token)
    is_ours = issued is not None and issued.shows(SHOWN)
    # Do not ask for, or spend, a confirmation of a call that would be refused.
    tool.check(context, rights, bare)
    # A tool that asks was confirmed before it asked. Its own state and tokens come from there
    # alone, and it refuses others.
    if tool.asks:
        if context.sent_input.state is not None:
            return bare if is_ours else arguments
        if issued is not None and not is_ours and issued.is_for(tool.name, bare):
            return arguments
    call: dict[str, Any] = {"tool": tool.name, "arguments": bare, "digest": SHOWN}
    # A call has one conversation, and a tool that asks needs it.
    if token is None and context.can_ask and not tool.asks:
        conversation = Elicitation(
            context,
            rights,
            method="tools/call",
            name=tool.name,
            arguments=arguments,
            is_single_use=True,
        )
        text = AGREE.format(tool=tool.name, arguments=shown(bare))
        conversation.confirm(text, key=ARGUMENT, digest=SHOWN)
        return bare
    if token is None:
        raise Unconfirmed(
            ASKED.format(
                tool=tool.name,
                arguments=shown(bare),
                argument=ARGUMENT,
                token=confirmations.issue(rights, **call),
            )
        )
    confirmations.redeem(rights, token, **call)
    return bare


def shown(arguments: Mapping[str, Any]) -> str:
    text = msgspec.json.format(msgspec.json.encode(arguments)).decode()
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… (cut here)"

"""Calls that staff want to be confirmed, whatever code says of the tool."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError, Unconfirmed
from mcp_django.exposure import confirmations
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.questions import Conversation
from mcp_django.exposure.tools import Tool

ASKED = (
    "Staff of this site want a person to agree to each call of {tool}, so nothing was done yet. "
    "It would be called with these arguments:\n\n{arguments}\n\nShow this to the person. Only if "
    'they agree, call {tool} again with the same arguments and "{argument}": "{token}".'
)
AGREE = "Call {tool} with these arguments?\n\n{arguments}"
#: Characters of the arguments that are shown.
LONGEST_SHOWN = 2000
#: What was shown is the call itself, of which a confirmation holds a digest already.
SHOWN = hashlib.sha256(b"staff want it").hexdigest()


def confirms_itself(tool: Tool) -> bool:
    """Whether the tool shows what it would do and asks, so that nobody is to be asked twice."""
    return bool(getattr(tool, "confirms_itself", False))


def takes_token(tool: Tool) -> bool:
    """Whether the argument of that name is free for a token, or is one already."""
    return is_asking(tool) or confirmations.ARGUMENT not in tool.definition.input_schema.get(
        "properties", {}
    )


def is_asking(tool: Tool) -> bool:
    """Whether the tool may end a call with questions of its own."""
    return bool(getattr(tool, "asks", False))


def confirmed(
    context: CallContext, rights: Rights, tool: Tool, arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The arguments to run the tool with. Raises InputNeeded where the client can ask its person,
    else Unconfirmed with a token to come back with, and ToolError for one that is not good, for
    arguments that the tool does not take, and for a person who does not agree.
    """
    if confirms_itself(tool):
        tool.check(context, rights, arguments)
        return arguments
    if not takes_token(tool):
        raise ToolError(
            f"{tool.name} cannot be called: staff want it to be confirmed, and it has an argument "
            f'of its own called "{confirmations.ARGUMENT}". Tell the person.'
        )
    token = arguments.get(confirmations.ARGUMENT)
    bare = confirmations.without_token(arguments)
    is_ours = confirmations.shown_by(rights, token) == SHOWN
    # What cannot be called is nothing to agree to, and no use of a confirmation.
    tool.check(context, rights, bare)
    # It was confirmed before it asked: its own state and tokens come from there alone, and the
    # tool refuses those that do not.
    if is_asking(tool):
        if context.sent_input.state is not None:
            return bare if is_ours else arguments
        if confirmations.shown_by(rights, token) is not None and not is_ours:
            return arguments
    call: dict[str, Any] = {"tool": tool.name, "arguments": bare, "digest": SHOWN}
    # One that asks has a conversation of its own, and a call has one.
    if token is None and context.can_ask and not is_asking(tool):
        conversation = Conversation(
            context,
            rights,
            method="tools/call",
            name=tool.name,
            arguments=arguments,
            is_single_use=True,
        )
        text = AGREE.format(tool=tool.name, arguments=shown(bare))
        conversation.confirm(text, key=confirmations.ARGUMENT, digest=SHOWN)
        return bare
    if token is None:
        raise Unconfirmed(
            ASKED.format(
                tool=tool.name,
                arguments=shown(bare),
                argument=confirmations.ARGUMENT,
                token=confirmations.issue(rights, **call),
            )
        )
    confirmations.redeem(rights, token, **call)
    return bare


def shown(arguments: Mapping[str, Any]) -> str:
    text = msgspec.json.format(msgspec.json.encode(arguments)).decode()
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… (cut here)"

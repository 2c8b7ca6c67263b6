"""What a prompt returned, as the messages that clients get."""

from __future__ import annotations

from typing import Any

import msgspec
from django.utils.functional import Promise

from mcp_django.conf import get_config
from mcp_django.exceptions import ToolError
from mcp_django.exposure.function_results import plain_block, plain_text
from mcp_django.protocol.content import BLOCKS, TextContent
from mcp_django.protocol.results import PromptMessage

ROLES = ("user", "assistant")


def messages_of(value: Any, *, prompt: str) -> list[PromptMessage]:
    """Raises TypeError for what is no message, ToolError for messages that are too long."""
    values = value if isinstance(value, (list, tuple)) else [value]
    if not values:
        raise TypeError(f"The prompt {prompt!r} returned no messages.")
    messages = [message_of(one, prompt=prompt) for one in values]
    size = len(msgspec.json.encode([one.content for one in messages]))
    if size > get_config().max_response:
        raise ToolError("The prompt is too long; ask for less.")
    return messages


def message_of(value: Any, *, prompt: str) -> PromptMessage:
    if isinstance(value, (str, Promise)):
        return PromptMessage(content=TextContent(plain_text(value)))
    if isinstance(value, BLOCKS):
        return PromptMessage(content=plain_block(value))
    if not isinstance(value, PromptMessage):
        # Never its text: that of an instance may show what this caller must not see.
        raise TypeError(
            f"The prompt {prompt!r} returned a {type(value).__name__}. Return text, content "
            "blocks such as mcp.EmbeddedResource, mcp.PromptMessage, or a list of these."
        )
    if value.role not in ROLES or not isinstance(value.content, BLOCKS):
        raise TypeError(
            f"The prompt {prompt!r} returned a message that is not one: its role is user or "
            "assistant, and its content is a block such as mcp.Text."
        )
    return PromptMessage(content=plain_block(value.content), role=value.role)

"""prompts/list and prompts/get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import PendingCall, Prompt
from mcp_django.exposure.prompts.stored import (
    all_prompts,
    prompt_called,
    prompt_definition,
    prompt_exists,
)
from mcp_django.handlers.lists import page
from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError, named
from mcp_django.protocol.methods import Texts, parse_params
from mcp_django.protocol.results import ListResult, PromptResult


def find_prompt(rights: Rights, name: str) -> Prompt:
    """The prompt of this name. Raises NotFound: unknown and forbidden alike."""
    prompt = prompt_called(rights, name)
    if prompt is None or not prompt_exists(rights, prompt):
        raise NotFound(f"Unknown prompt: {named(name)}")
    return prompt


def list_prompts(context: CallContext, params: dict[str, Any]) -> ListResult:
    rights = Rights(context.request, context.principal)
    cursor = parse_params("prompts/list", params).cursor
    found = [
        prompt_definition(rights, one) for one in all_prompts(rights) if prompt_exists(rights, one)
    ]
    # Rows come after what the site itself has brought along.
    registered = rights.registry.prompts
    return page(
        context,
        found,
        member="prompts",
        cursor=cursor,
        key=lambda one: f"{one.name not in registered} {one.name}",
    )


def argument_texts(arguments: Texts | None) -> dict[str, str]:
    """Return arguments as texts. Null is a field that the person left empty."""
    given = (arguments or {}).items()
    return {name: text_of(name, value) for name, value in given if value is not None}


def text_of(name: str, value: str | int | float) -> str:
    """Return the shortest text of a value: `true`, `7` for 7.0. Raises ToolError without one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    # Beyond these integers a JSON number may lose digits (RFC 8259, 6). NaN is none of them.
    if not abs(value) <= 2**53:
        raise ToolError(f"Argument {named(name)}: this number is too large. Send it as a text.")
    return str(int(value)) if value == int(value) else str(value)


def get_prompt(context: CallContext, params: dict[str, Any]) -> PromptResult | PendingCall:
    asked = parse_params("prompts/get", params)
    rights = Rights(context.request, context.principal)

    def refuse(error: ToolError) -> NoReturn:
        raise ProtocolError(INVALID_PARAMS, str(error)) from error

    try:
        prompt = find_prompt(rights, asked.name)
        found = prompt.get(context, rights, argument_texts(asked.arguments))
    except ToolError as error:
        refuse(error)
    return replace(found, refuse=refuse) if isinstance(found, PendingCall) else found

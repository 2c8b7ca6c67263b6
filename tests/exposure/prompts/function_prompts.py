"""What the tests of prompts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mcp_django.exposure.prompts.functions import CodePrompt, prompt
from mcp_django.exposure.registry import Registry
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import PromptResult
from tests.exposure.function_tools import context_of, rights_of


def prompt_of(function: Callable[..., Any], **options: Any) -> CodePrompt:
    """The prompt that `@mcp.prompt(...)` makes of a function, in a registry of its own."""
    registry = Registry()
    prompt(registry=registry, **options)(function)
    (made,) = registry.prompts.values()
    return cast(CodePrompt, made)


def get(one: Any, rights: Any = None, **arguments: str) -> PromptResult:
    rights = rights or rights_of()
    return cast(PromptResult, one.get(context_of(rights), rights, arguments))


def said(one: Any, rights: Any = None, **arguments: str) -> list[tuple[str, str]]:
    """Who says what."""
    return [
        (message.role, cast(TextContent, message.content).text)
        for message in get(one, rights, **arguments).messages
    ]

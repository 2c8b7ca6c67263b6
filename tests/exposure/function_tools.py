"""What tests of tools and prompts share that call them without a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jsonschema_rs
import msgspec
import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts.functions import CodePrompt, prompt
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.tools.functions import FunctionTool, tool
from mcp_django.principal import SCOPES, Principal, Restriction
from mcp_django.protocol.content import TextContent
from mcp_django.protocol.results import PromptResult, ToolResult
from mcp_django.protocol.revisions import Revision


def tool_of(function: Callable[..., Any], **options: Any) -> FunctionTool:
    """The tool that `@mcp.tool(...)` makes of a function, in a registry of its own."""
    registry = Registry()
    function.__doc__ = function.__doc__ or "Does something."
    tool(registry=registry, **options)(function)
    (made,) = registry.tools.values()
    return cast(FunctionTool, made)


def giving(value: Any, **options: Any) -> FunctionTool:
    """A tool that returns this, or what this returns when it is called."""

    def give(request: HttpRequest) -> Any:
        """Give something."""
        return value() if callable(value) else value

    return tool_of(give, **options)


def request_by(user: Any = None) -> HttpRequest:
    request = HttpRequest()
    request.user = AnonymousUser() if user is None else user
    return request


def rights_of(
    user: Any = None,
    *,
    scopes: tuple[str, ...] = SCOPES,
    read_only: bool = False,
    models: frozenset[str] | None = None,
) -> Rights:
    request = request_by(user)
    principal = Principal(
        user=request.user,
        scopes=frozenset(scopes),
        method="personal_token",
        restriction=Restriction(read_only=read_only, models=models),
    )
    return Rights(request, principal, registry=Registry())


def context_of(rights: Rights) -> CallContext:
    return CallContext(
        request=rights.request, principal=rights.principal, revision=list(Revision)[-1]
    )


def call(called: FunctionTool, arguments: dict[str, Any] | None = None) -> Any:
    rights = rights_of()
    return called.call(context_of(rights), rights, arguments or {})


def refusal(call: Callable[..., Any], /, *arguments: Any, **options: Any) -> str:
    """The sentence of the ToolError that must answer a call of a function."""
    with pytest.raises(ToolError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def text_of(result: ToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def data_of(result: ToolResult) -> Any:
    assert result.has_structured
    return msgspec.json.decode(result.structured)


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Whether a validator that is not ours finds the schema valid and the value in it."""
    jsonschema_rs.meta.validate(schema)
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    return validator.is_valid(value)


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

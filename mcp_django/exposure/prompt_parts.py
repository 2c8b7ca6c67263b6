"""The messages of a prompt that was written in the template language, and what is made of them."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure.code_resources import PendingRead
from mcp_django.exposure.prompt_messages import messages_of
from mcp_django.exposure.resources import read
from mcp_django.protocol.content import Content, EmbeddedResource, TextContent
from mcp_django.protocol.results import PromptMessage
from mcp_django.protocol.uri_templates import URITemplate
from mcp_django.templating import (
    Budget,
    Embedded,
    RestrictedTemplate,
    TemplateError,
    render_template,
)

if TYPE_CHECKING:
    from mcp_django.exposure.permissions import Rights

LONGEST_URI_SHOWN = 500


@dataclass(frozen=True, kw_only=True)
class Part:
    """One message: who says it, and what. A resource may have arguments in its address."""

    role: str
    content: RestrictedTemplate | URITemplate


@dataclass(frozen=True, kw_only=True)
class Values:
    """The arguments of one call: for templates, and as texts for addresses."""

    names: Mapping[str, Any]
    texts: Mapping[str, str]


def rendered(
    context: CallContext, rights: Rights, parts: Iterable[Part], values: Values, *, prompt: str
) -> list[PromptMessage]:
    """The messages, resources read with the rights of the caller. Raises ToolError."""
    budget = Budget()
    messages = [
        PromptMessage(content=content, role=part.role)
        for part in parts
        for content in contents_of(context, rights, part, values, budget=budget)
    ]
    if not messages:
        raise ToolError("With these arguments the prompt says nothing.")
    return messages_of(messages, prompt=prompt)


def contents_of(
    context: CallContext, rights: Rights, part: Part, values: Values, *, budget: Budget
) -> Iterator[Content]:
    if isinstance(part.content, URITemplate):
        yield from embedded(context, rights, part.content.expand(values.texts))
        return
    try:
        pieces = render_template(part.content, values.names, budget=budget)
    except TemplateError as error:
        raise ToolError(f"The prompt cannot be made of these values. {error}") from None
    for piece in pieces:
        if isinstance(piece, Embedded):
            yield from embedded(context, rights, piece.uri)
        else:
            yield TextContent(piece.strip())


def embedded(context: CallContext, rights: Rights, uri: str) -> list[Content]:
    """Raises ToolError: in the same words for what is missing and what is forbidden."""
    shown = uri[:LONGEST_URI_SHOWN]
    try:
        found = read(context, rights, uri)
    except NotFound:
        raise ToolError(f"The prompt needs {shown}, and there is no such resource.") from None
    if isinstance(found, PendingRead):
        # A coroutine of the site: only the event loop could await it.
        cast("Coroutine[Any, Any, Any]", found.awaitable).close()
        raise ToolError(f"{shown} cannot stand in a prompt: its function is async.")
    return [EmbeddedResource(contents=one) for one in found]

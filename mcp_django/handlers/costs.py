"""What a list of tools costs every conversation that begins with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mcp_django.context import CallContext
from mcp_django.handlers.dispatch import server_info
from mcp_django.handlers.tools import list_tools
from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.render import encoded, render
from mcp_django.protocol.results import ListResult, ToolDefinition

#: Characters of JSON that are about one token of the usual models, which is all that is known of
#: them here: each has a tokenizer of its own.
CHARACTERS_IN_TOKEN = 4
#: From here on clients drop tools, and models choose worse among them.
MANY_TOOLS, MANY_BYTES = 40, 40 * 1024


@dataclass(frozen=True, kw_only=True)
class Cost:
    name: str
    bytes: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class ListCost:
    """The answers to `tools/list`, all pages, as a client of one revision gets them."""

    tools: tuple[Cost, ...]
    bytes: int
    tokens: int
    pages: int

    @property
    def has_many_tools(self) -> bool:
        return len(self.tools) > MANY_TOOLS

    @property
    def has_many_bytes(self) -> bool:
        return self.bytes > MANY_BYTES


def cost_of_tools(context: CallContext) -> ListCost:
    """What the caller's list costs, most expensive tool first."""
    features = context.revision.features
    server = server_info(streams=True)
    tools: list[Cost] = []
    answers: list[bytes] = []
    for result in every_page(context):
        answers.append(encode_result(1, render(result, context.revision, server)))
        for one in result.definitions:
            assert isinstance(one, ToolDefinition)  # noqa: S101  a list of tools
            tools.append(cost_of(one.name, encoded(one, features)))
    return ListCost(
        tools=tuple(sorted(tools, key=lambda one: (-one.bytes, one.name))),
        bytes=sum(map(len, answers)),
        tokens=sum(map(tokens_in, answers)),
        pages=len(answers),
    )


def every_page(context: CallContext) -> Iterator[ListResult]:
    cursor: str | None = None
    while True:
        result = list_tools(context, {} if cursor is None else {"cursor": cursor})
        yield result
        cursor = result.next_cursor
        if cursor is None:
            return


def cost_of(name: str, body: bytes) -> Cost:
    return Cost(name=name, bytes=len(body), tokens=tokens_in(body))


def tokens_in(body: bytes) -> int:
    """An estimate: characters, not bytes, since letters beyond ASCII are several bytes each."""
    return math.ceil(len(body.decode()) / CHARACTERS_IN_TOKEN)

"""What does it cost? The list of tools as a client gets it, in bytes and estimated tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from mcp_django.admin.inspect.access import log_inspection
from mcp_django.admin.inspect.impersonation import ChoosingForm, ChosenCaller, call_as, viewer_of
from mcp_django.admin.pages import COST, INSPECT
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.handlers.dispatch import server_info
from mcp_django.handlers.tools import list_tools, offered_tools
from mcp_django.principal import SCOPES
from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.render import encoded, render
from mcp_django.protocol.results import ListResult, ToolDefinition
from mcp_django.protocol.revisions import MODERN

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
            body = encoded(one, features)
            tools.append(Cost(name=one.name, bytes=len(body), tokens=tokens_in(body)))
    return ListCost(
        tools=tuple(sorted(tools, key=lambda one: (-one.bytes, one.name))),
        bytes=sum(map(len, answers)),
        tokens=sum(map(tokens_in, answers)),
        pages=len(answers),
    )


def every_page(context: CallContext) -> Iterator[ListResult]:
    params: dict[str, Any] = {}
    while True:
        result = list_tools(context, params)
        yield result
        if result.next_cursor is None:
            return
        params = {"cursor": result.next_cursor}


def tokens_in(body: bytes) -> int:
    """An estimate: characters, not bytes, since letters beyond ASCII are several bytes each."""
    return math.ceil(len(body.decode()) / CHARACTERS_IN_TOKEN)


def cost_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """One's own list on GET. On POST that of somebody else, for those who may look at others."""
    is_posted = request.method == "POST" and INSPECT.may_open(request)
    form = ChoosingForm(model_admin, request, request.POST if is_posted else {})
    context: dict[str, Any] = {
        "form": form if INSPECT.may_open(request) else None,
        "characters": CHARACTERS_IN_TOKEN,
        "many_tools": MANY_TOOLS,
        "many_kib": MANY_BYTES // 1024,
        "revision": MODERN[-1].value,
    }
    if form.is_valid():
        chosen = form.chosen()
        context["chosen"] = chosen
        if is_posted and not chosen.is_self:
            log_inspection(model_admin, request, chosen, "")
        if not chosen.problem:
            context |= measure(request, chosen)
    return COST.render(model_admin, request, **context)


def measure(request: HttpRequest, chosen: ChosenCaller) -> dict[str, Any]:
    viewer = viewer_of(request)

    def work(context: CallContext, rights: Rights) -> tuple[ListCost, set[str]]:
        tools = offered_tools(context, viewer)
        return cost_of_tools(context), {one.name for one in tools if one.exists_for(viewer)}

    try:
        cost, known = call_as(chosen.principal, request, work)
    except ToolError as error:
        return {"error": str(error)}
    return {"cost": cost, **visible_costs(chosen, cost, known)}


def visible_costs(chosen: ChosenCaller, cost: ListCost, known: set[str]) -> dict[str, Any]:
    """The tools by name, but only those that exist for the person at the page as well."""
    shown: list[dict[str, Any]] = [
        {"cost": one, "percent": round(100 * one.bytes / max(cost.bytes, 1))}
        for one in cost.tools
        if chosen.is_self or one.name in known
    ]
    rest = sum(one.bytes for one in cost.tools) - sum(row["cost"].bytes for row in shown)
    return {"shown": shown, "rest": rest, "is_limited": len(chosen.principal.scopes) < len(SCOPES)}

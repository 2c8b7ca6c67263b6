"""What does it cost? The list of tools as a client gets it, in bytes and estimated tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
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
from mcp_django.protocol.jsonrpc import encode_result
from mcp_django.protocol.render import encoded, render
from mcp_django.protocol.results import ListResult
from mcp_django.protocol.revisions import MODERN

#: Characters of JSON that are about one token of the usual models, which is all that is known of
#: them here: each has a tokenizer of its own.
CHARACTERS_IN_TOKEN = 4
#: From here on clients drop tools, and models choose worse among them.
MANY_TOOLS, MANY_BYTES = 40, 40 * 1024


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
    """Return what the caller's list costs, all pages of it, most expensive tool first. Only tools
    that exist for the person at the page as well are to be named.
    """
    viewer = viewer_of(request)

    def work(context: CallContext, rights: Rights) -> dict[str, Any]:
        own = {tool.name for tool in offered_tools(context, viewer) if tool.exists_for(viewer)}
        server, pages = server_info(streams=True), [*every_page(context)]
        answers = [encode_result(1, render(page, context.revision, server)) for page in pages]
        size = sum(map(len, answers))
        tools = []
        for definition in chain.from_iterable(page.definitions for page in pages):
            body = encoded(definition, context.revision.features)
            tool = {"name": definition.name, "bytes": len(body), "tokens": tokens_in(body)}
            is_named = chosen.is_self or definition.name in own
            tools.append({**tool, "is_named": is_named, "percent": round(100 * len(body) / size)})
        return {
            "tools": sorted(tools, key=lambda tool: (-tool["bytes"], tool["name"])),
            "hidden_bytes": sum(tool["bytes"] for tool in tools if not tool["is_named"]),
            "bytes": size,
            "tokens": sum(map(tokens_in, answers)),
            "pages": len(pages),
            "has_many_tools": len(tools) > MANY_TOOLS,
            "has_many_bytes": size > MANY_BYTES,
        }

    try:
        return {"cost": call_as(chosen.principal, request, work)}
    except ToolError as error:
        return {"error": str(error)}

"""What does it cost? The list of tools as a client gets it, in bytes and estimated tokens."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from mcp_django.admin.as_user import call_as
from mcp_django.admin.callers import looker_of
from mcp_django.admin.choosing import ChoosingForm, Chosen
from mcp_django.admin.inspect import record_look
from mcp_django.admin.looking import COST, INSPECT, response
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.permissions import Rights
from mcp_django.handlers.costs import (
    CHARACTERS_IN_TOKEN,
    MANY_BYTES,
    MANY_TOOLS,
    ListCost,
    cost_of_tools,
)
from mcp_django.handlers.tools import offered_tools
from mcp_django.principal import SCOPES
from mcp_django.protocol.revisions import MODERN


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
            record_look(model_admin, request, chosen, "")
        if not chosen.problem:
            context |= measured(request, chosen)
    return response(COST, model_admin, request, **context)


def measured(request: HttpRequest, chosen: Chosen) -> dict[str, Any]:
    looker = looker_of(request)

    def work(context: CallContext, rights: Rights) -> tuple[ListCost, set[str]]:
        tools = offered_tools(context, looker)
        return cost_of_tools(context), {one.name for one in tools if one.exists_for(looker)}

    try:
        cost, known = call_as(chosen.principal, request, work)
    except ToolError as error:
        return {"error": str(error)}
    return {"cost": cost, **shared(chosen, cost, known)}


def shared(chosen: Chosen, cost: ListCost, known: set[str]) -> dict[str, Any]:
    """The tools by name, but only those that exist for the person at the page as well."""
    shown: list[dict[str, Any]] = [
        {"cost": one, "percent": round(100 * one.bytes / max(cost.bytes, 1))}
        for one in cost.tools
        if chosen.is_self or one.name in known
    ]
    rest = sum(one.bytes for one in cost.tools) - sum(row["cost"].bytes for row in shown)
    return {"shown": shown, "rest": rest, "is_limited": len(chosen.principal.scopes) < len(SCOPES)}

"""The overview: where clients connect, one's tokens, and what was called lately."""

from __future__ import annotations

import json
import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from mcp_django.admin.call_figures import figures
from mcp_django.admin.looking import OVERVIEW, response
from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError
from mcp_django.exposure.budget import lift_deadlines
from mcp_django.exposure.decisions import decisions
from mcp_django.models import CallRecord, PersonalToken
from mcp_django.transports.addresses import endpoint_path, endpoint_url

#: Tokens of the person at the page.
MOST_TOKENS = 10


def overview_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Each block is there only for those whom its own pages would let in."""
    context: dict[str, Any] = {
        "endpoint": endpoint_url(),
        "path": endpoint_path(),
        "is_closed": decisions().closed,
    }
    if context["endpoint"]:
        context["snippets"] = snippets(context["endpoint"])
    context |= own_tokens(model_admin, request) | calls(model_admin, request)
    return response(OVERVIEW, model_admin, request, **context)


def snippets(url: str) -> list[dict[str, str]]:
    """What a client is told, in the words of the clients."""
    name = re.sub(r"[^a-z0-9]+", "-", get_config().name.lower()).strip("-") or "django"
    header = "Authorization: Bearer TOKEN"
    command = f'claude mcp add --transport http {name} {url} --header "{header}"'
    server = {"type": "http", "url": url, "headers": {"Authorization": "Bearer TOKEN"}}
    return [
        {"title": "Claude Code", "text": command},
        {"title": "VS Code: .vscode/mcp.json", "text": as_file({"servers": {name: server}})},
        {"title": "Many others", "text": as_file({"mcpServers": {name: server}})},
    ]


def as_file(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def own_tokens(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    token_admin = model_admin.admin_site._registry.get(PersonalToken)
    if token_admin is None or not token_admin.has_view_permission(request):
        return {}
    tokens = token_admin.get_queryset(request).filter(user=request.user.pk)
    newest = tokens.order_by("-created_at", "-pk")[:MOST_TOKENS]
    found = {"tokens": list(newest), "tokens_url": url_of(model_admin, PersonalToken)}
    if token_admin.has_add_permission(request):
        found["add_token_url"] = url_of(model_admin, PersonalToken, "add")
    return found


def calls(model_admin: Any, request: HttpRequest) -> dict[str, Any]:
    if not request.user.has_perm("mcp_django.view_callrecord"):
        return {}
    found: dict[str, Any] = {"may_see_calls": True}
    if CallRecord in model_admin.admin_site._registry:
        found["calls_url"] = url_of(model_admin, CallRecord)
    try:
        return {**found, "figures": figures()}
    except QueryError:
        return {**found, "is_too_slow": True}
    finally:
        lift_deadlines()


def url_of(model_admin: Any, model: Any, page: str = "changelist") -> str:
    opts = model._meta
    return reverse(
        f"admin:{opts.app_label}_{opts.model_name}_{page}",
        current_app=model_admin.admin_site.name,
    )

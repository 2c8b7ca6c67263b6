"""What can it see? What somebody's assistants have: models, fields, records, tools, prompts."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.admin import ModelAdmin
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.as_user import call_as
from mcp_django.admin.callers import looker_of
from mcp_django.admin.choosing import ChoosingForm, Chosen
from mcp_django.admin.looking import INSPECT, response
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.inspected_fields import inspect_fields
from mcp_django.exposure.inspected_prompts import inspect_prompts
from mcp_django.exposure.inspected_tools import inspect_resources, inspect_tools
from mcp_django.exposure.inspection import inspect_model, inspect_models
from mcp_django.exposure.lookers import OwnRights, own_rights
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.sample_rows import Unreadable, sample_rows
from mcp_django.handlers.tools import offered_tools
from mcp_django.levels import Level

#: Characters of a value in the table of records.
LONGEST_VALUE = 200


def inspect_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The form on GET. On POST what was asked for, written to the log before anything is read."""
    is_posted = request.method == "POST"
    form = ChoosingForm(model_admin, request, request.POST if is_posted else None)
    context: dict[str, Any] = {"form": form}
    if is_posted and form.is_valid():
        chosen = form.chosen()
        label = request.POST.get("model", "")[:200]
        context["chosen"] = chosen
        record_look(model_admin, request, chosen, label)
        if not chosen.problem:
            context |= looked_at(request, chosen, label)
    return response(INSPECT, model_admin, request, **context)


def record_look(model_admin: Any, request: HttpRequest, chosen: Chosen, label: str) -> None:
    of = f" of {label}" if label else ""
    sentence = f"Looked at what assistants see{of}, as {chosen.name}. Nothing was changed."
    # On the user, and not as the page of models writes about those.
    ModelAdmin.log_change(model_admin, request, chosen.principal.user, sentence)


def looked_at(request: HttpRequest, chosen: Chosen, label: str) -> dict[str, Any]:
    looker = looker_of(request)

    def work(context: CallContext, rights: Rights) -> dict[str, Any]:
        code = exposure_of(looker, label)
        if label and code is None:
            return {"error": "There is no such model that you may see."}
        if code is not None:
            return {"model": one_model(rights, looker, code)}
        return {
            "models": inspect_models(rights, looker),
            "tools": inspect_tools(rights, looker, offered_tools(context, looker)),
            "resources": inspect_resources(rights, looker),
            "prompts": inspect_prompts(rights, looker),
        }

    try:
        return call_as(chosen.principal, request, work)
    except ToolError as error:
        return {"error": str(error)}


def exposure_of(looker: OwnRights, label: str) -> ModelExposure | None:
    """What code or the admin declares about a model that the looker may see."""
    for exposure in looker.registry.candidates.values():
        if exposure.label == label and looker.may_view(exposure.model):
            return exposure
    return None


def one_model(rights: Rights, looker: OwnRights, code: ModelExposure) -> dict[str, Any]:
    seen = inspect_model(rights, looker, own_rights(rights), code)
    found: dict[str, Any] = {"seen": seen, "problem": ""}
    if not seen.is_there:
        return found
    try:
        found["fields"] = inspect_fields(rights, looker, code)
        if seen.level >= Level.READ:
            found["rows"] = table(
                sample_rows(rights, looker, rights.exposed.exposures[code.model])
            )
    except ImproperlyConfigured as error:
        found["problem"] = f"It is not declared as it must be: {error}"
    except Unreadable as error:
        found["problem"] = str(error) or "The database cannot read it. Is there a table?"
    return found


def table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns, and each row with a text or None for each of them."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "columns": columns,
        "rows": [[text_of(row, name) for name in columns] for row in rows],
    }


def text_of(row: dict[str, Any], name: str) -> str | None:
    if name not in row:
        return None
    text = as_text(row[name])
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def as_text(value: Any) -> str:
    """As a person reads it: choices and related records by their labels first."""
    if isinstance(value, dict) and len(value) == 2 and isinstance(value.get("label"), str):
        [other] = [one for name, one in value.items() if name != "label"]
        return f"{value['label']} ({other})"
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

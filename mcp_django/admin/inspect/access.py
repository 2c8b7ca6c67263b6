"""What can it see? What somebody's assistants have: models, fields, records, tools, prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.contrib.admin import ModelAdmin
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.inspect.impersonation import ChoosingForm, ChosenCaller, call_as, viewer_of
from mcp_django.admin.pages import INSPECT
from mcp_django.context import CallContext
from mcp_django.exceptions import QueryError, ToolError
from mcp_django.exposure.inspection import (
    OwnRights,
    inspect_fields,
    inspect_model,
    inspect_models,
    inspect_prompts,
    inspect_resources,
    inspect_tools,
    sample_rows,
)
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.primitives import Tool
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
        # A button of the page, or the link on the page of a model that staff decide about.
        label = (request.POST.get("model") or request.GET.get("model", ""))[:200]
        context["chosen"] = chosen
        log_inspection(model_admin, request, chosen, label)
        if not chosen.problem:
            context |= inspect_chosen(request, chosen, label)
    return INSPECT.render(model_admin, request, **context)


def log_inspection(
    model_admin: Any, request: HttpRequest, chosen: ChosenCaller, label: str
) -> None:
    of = f" of {label}" if label else ""
    sentence = f"Looked at what assistants see{of}, as {chosen.name}. Nothing was changed."
    # On the user, and not as the page of models writes about those.
    ModelAdmin.log_change(model_admin, request, chosen.principal.user, sentence)


def inspect_chosen(request: HttpRequest, chosen: ChosenCaller, label: str) -> dict[str, Any]:
    viewer = viewer_of(request)

    def work(context: CallContext, rights: Rights) -> dict[str, Any]:
        code = exposure_of(viewer, label)
        if label and code is None:
            return {"error": "There is no such model that you may see."}
        tools = offered_tools(context, viewer)
        if code is not None:
            return {"model": inspect_one_model(rights, viewer, code, tools)}
        return {
            "models": inspect_models(rights, viewer, tools),
            "tools": inspect_tools(rights, viewer, tools),
            "resources": inspect_resources(rights, viewer),
            "prompts": inspect_prompts(rights, viewer),
        }

    try:
        return call_as(chosen.principal, request, work)
    except ToolError as error:
        return {"error": str(error)}


def exposure_of(viewer: OwnRights, label: str) -> ModelExposure | None:
    """What code or the admin declares about a model that the viewer may see."""
    for exposure in viewer.registry.candidates.values():
        if exposure.label == label and viewer.may_view(exposure.model):
            return exposure
    return None


def inspect_one_model(
    rights: Rights, viewer: OwnRights, code: ModelExposure, tools: Sequence[Tool]
) -> dict[str, Any]:
    seen = inspect_model(rights, viewer, code, tools)
    found: dict[str, Any] = {"seen": seen, "problem": ""}
    if not seen.is_there:
        return found
    try:
        found["fields"] = inspect_fields(rights, viewer, code)
        if seen.level >= Level.READ:
            found["rows"] = records_table(
                sample_rows(rights, viewer, rights.exposed.exposures[code.model])
            )
    except ImproperlyConfigured as error:
        found["problem"] = f"It is not declared as it must be: {error}"
    except QueryError as error:
        found["problem"] = str(error)
    return found


def records_table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns, and each row with a text or None for each of them."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts = [{name: as_text(value) for name, value in row.items()} for row in rows]
    return {"columns": columns, "rows": [[row.get(name) for name in columns] for row in texts]}


def as_text(value: Any) -> str:
    """As a person reads it: choices and related records by their labels first."""
    if isinstance(value, dict) and len(value) == 2 and isinstance(value.get("label"), str):
        [other] = [one for name, one in value.items() if name != "label"]
        text = f"{value['label']} ({other})"
    elif value is None:
        return "-"
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"

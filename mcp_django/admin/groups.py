"""Groups: what the permissions of each group open of each model, in one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.pages import GROUPS, url_of
from mcp_django.exposure.decisions import decisions, exposed_by
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import action_names, actions_of
from mcp_django.levels import Level
from mcp_django.models import ExposedModel
from mcp_django.principal import DEFAULT_SERVER

#: Columns of the table. Names of groups further down the alphabet need the page of a model.
MOST_TABLE_GROUPS = 50
WRITE_VERBS = ("add", "change", "delete")


def groups_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show the groups that the person sees in the admin of the same site, and all open models."""
    group_admin = model_admin.admin_site._registry.get(Group)
    groups: list[Any] = []
    if group_admin is not None and group_admin.has_view_permission(request):
        rows = group_admin.get_queryset(request).order_by("name")
        groups = list(rows.prefetch_related("permissions__content_type")[: MOST_TABLE_GROUPS + 1])
    exposed = exposed_by(registry, DEFAULT_SERVER)
    actions = open_actions()
    held = {
        group: {f"{p.content_type.app_label}.{p.codename}" for p in group.permissions.all()}
        for group in groups[:MOST_TABLE_GROUPS]
    }
    table = []
    for model, exposure in exposed.exposures.items():
        limit = exposed.groups.get(model)
        cells = [
            (
                url_of(model_admin, "change", group.pk, model=Group),
                opened(exposure, names, actions[exposure.label])
                if not limit or group.pk in limit
                else [],
            )
            for group, names in held.items()
        ]
        url = url_of(model_admin, "change", exposure.label, model=ExposedModel)
        table.append((exposure, url, cells))
    return GROUPS.render(
        model_admin,
        request,
        groups=list(held),
        more=len(groups) > MOST_TABLE_GROUPS,
        table=table,
        is_read_only=decisions().read_only,
    )


def open_actions() -> Mapping[str, list[tuple[str, ...]]]:
    """Return the verbs of which one is enough, for each action that is switched on, by label."""
    names, tools = action_names(registry), decisions().tools
    code = {exposure.label: exposure for exposure in registry.candidates.values()}
    actions: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for (label, action), function in dict(actions_of(registry)).items():
        decision = tools.get(names.of(label, action))
        enabled = None if decision is None else decision.enabled
        if action in code[label].actions if enabled is None else enabled:
            actions[label].append(tuple(getattr(function, "allowed_permissions", ("view",))))
    return actions


def opened(exposure: ModelExposure, held: set[str], actions: list[tuple[str, ...]]) -> list[str]:
    """Return words for what the model's level and these permissions open together."""
    opts, level = exposure.model._meta, exposure.standard_level

    def may(verb: str) -> bool:
        return f"{opts.app_label}.{get_permission_codename(verb, opts)}" in held

    # Django lets people see what they may change.
    if not (may("view") or may("change")):
        return []
    words = ["read" if level >= Level.READ else level.label.partition(":")[0]]
    if level >= Level.WRITE:
        words += [verb for verb in WRITE_VERBS if may(verb)]
    runnable = sum(any(map(may, verbs)) for verbs in actions) if level >= Level.ACT else 0
    if runnable:
        words.append(f"{runnable} action{'s' * (runnable > 1)}")
    return words

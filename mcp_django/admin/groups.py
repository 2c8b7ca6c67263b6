"""Groups: what the permissions of each group open of each model, in one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse

from mcp_django.admin.decisions.exposed_models import word_of
from mcp_django.admin.decisions.exposed_tools import known_actions
from mcp_django.admin.pages import GROUPS, visible_rows
from mcp_django.conf import get_config
from mcp_django.exposure.decisions import decisions, exposed_by
from mcp_django.exposure.options import ModelExposure, view_permissions
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.principal import DEFAULT_SERVER

#: Groups in the table. The page of a group has its permissions in any case.
MOST_TABLE_GROUPS = 50


def groups_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show the groups that the person sees in the admin of the same site, and all open models."""
    rows = visible_rows(model_admin, request, Group).order_by("name")
    groups = list(rows.prefetch_related("permissions__content_type")[: MOST_TABLE_GROUPS + 1])
    held = {
        group: {f"{p.content_type.app_label}.{p.codename}" for p in group.permissions.all()}
        for group in groups[:MOST_TABLE_GROUPS]
    }
    exposed, actions = exposed_by(registry, DEFAULT_SERVER), open_actions()
    table = []
    for model, exposure in exposed.exposures.items():
        limit = exposed.groups.get(model)
        cells = [
            (group, opened(exposure, permissions, actions[exposure.label]))
            if not limit or group.pk in limit
            else (group, [])
            for group, permissions in held.items()
        ]
        table.append((exposure, cells))
    return GROUPS.render(
        model_admin,
        request,
        groups=list(held),
        more=len(groups) > MOST_TABLE_GROUPS,
        table=table,
        is_read_only=decisions().read_only or get_config().read_only,
    )


def open_actions() -> Mapping[str, list[tuple[str, ...]]]:
    """Return the verbs of which one is enough, for each action that is switched on, by label."""
    actions: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for tool in known_actions():
        decision = decisions().tools.get(tool.definition.name)
        is_on = None if decision is None else decision.enabled
        if tool.is_on if is_on is None else is_on:
            actions[tool.label].append(tool.permissions)
    return actions


def opened(
    exposure: ModelExposure, permissions: set[str], actions: list[tuple[str, ...]]
) -> list[str]:
    """Return words for what the level of the model and these permissions open together."""
    opts, level = exposure.model._meta, exposure.standard_level

    def may(verb: str) -> bool:
        return f"{opts.app_label}.{get_permission_codename(verb, opts)}" in permissions

    if permissions.isdisjoint(view_permissions(exposure.model)):
        return []
    words = ["read" if level >= Level.READ else word_of(level)]
    if level >= Level.WRITE:
        words += filter(may, ("add", "change", "delete"))
    runnable = sum(any(map(may, verbs)) for verbs in actions) if level >= Level.ACT else 0
    if runnable:
        words.append(f"{runnable} action{'s' * (runnable > 1)}")
    return words

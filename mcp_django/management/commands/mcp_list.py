"""Show what is exposed to assistants, and to whom."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth.models import AnonymousUser
from django.core.management.base import BaseCommand, CommandError
from django.http import HttpRequest

from mcp_django.audit.entries import printable
from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure import inspection
from mcp_django.exposure.admin_bridge.rights import SCOPES
from mcp_django.exposure.checks import admins_of
from mcp_django.exposure.decisions import exposed_by
from mcp_django.exposure.options import ModelExposure, view_permissions
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts.stored import stored_prompts
from mcp_django.exposure.registry import registry
from mcp_django.handlers.tools import every_tool, offered_tools
from mcp_django.levels import Level
from mcp_django.management.commands.mcp_token import find_user
from mcp_django.principal import ACTION, DEFAULT_SERVER, READ, Principal
from mcp_django.principal import SCOPES as ALL_SCOPES


class Command(BaseCommand):
    help = "Show what is exposed to assistants, and what people need to have it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--user", metavar="USER", help="What this user has, and why not the rest."
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="For programs.")

    def handle(self, *args: Any, user: str | None, as_json: bool, **options: Any) -> None:
        rows = list(list_exposed() if user is None else list_for(find_user(user)))
        if as_json:
            self.stdout.write(json.dumps(rows, indent=2))
        for row in () if as_json else rows:
            kind, name, state, sentences = row.values()
            self.stdout.write("\t".join(map(printable, (kind, name, state, *sentences))))


def list_exposed() -> Iterator[dict[str, Any]]:
    """Yield a row for each thing that there is for somebody, with what is needed to have it."""
    exposed = exposed_by(registry, DEFAULT_SERVER)
    prompts = {**stored_prompts(DEFAULT_SERVER), **registry.prompts}
    tools, decided = {tool.name: tool for tool in every_tool()}, exposed.decisions
    things: dict[str, tuple[Any, Any]] = {"tool": (tools, decided.tools)}
    things |= {"prompt": (prompts, decided.prompts), "resource": (registry.resources, {})}
    for code in registry.candidates.values():
        exposure = exposed.exposures.get(code.model, code)
        level = Level.HIDDEN if code.model in exposed.closed else exposure.standard_level
        if level or code.is_offered:
            opener = "code" if code.is_offered else "staff"
            state = f"{level.label.partition(':')[0]}, opened by {opener}"
            needs = [*needs_of(exposure, exposed.groups.get(code.model))]
            yield {"kind": "model", "name": code.label, "state": state, "needs": needs}
    for kind, name in ((kind, name) for kind, (named, _) in things.items() for name in named):
        thing, decision = (table.get(name) for table in things[kind])
        state = "switched off by staff" if decision and decision.enabled is False else "on"
        needs = [*needs_of(thing, getattr(decision or thing, "groups", None))]
        yield {"kind": kind, "name": name, "state": state, "needs": needs}


def needs_of(thing: Any, groups: Any) -> Iterator[str]:
    """Yield the scope that a credential needs for a model, a tool, a prompt or a resource, and
    what its user needs.
    """
    verb, permission = getattr(thing, "verb", ""), getattr(thing, "permission", None)
    if hasattr(thing, "action"):
        verbs = " or ".join(thing.action.permissions or ["view"])
        yield from (f"the scope {ACTION}", f"the permission to {verbs} {thing.exposure.label}")
        return
    yield f"the scope {SCOPES[verb] if verb else getattr(thing, 'scope', READ)}"
    if verb:
        yield f"the permission to {verb} records of some model that is opened for writing"
    if callable(permission) or getattr(thing, "decides_itself", False):
        yield "what code of the site decides"
    elif isinstance(thing, ModelExposure):
        yield f"the permission {view_permissions(thing.model)[0]}"
        if admins_of(thing):
            yield "to be let in by the admin"
    elif hasattr(thing, "permission"):
        yield "to be staff" if permission is None else f"the permission {permission}"
    if groups:
        yield "a group that staff chose"


class Operator(AnonymousUser):
    """Sees everything: people who run commands may read the whole database."""

    is_active = is_staff = is_superuser = True  # type: ignore[assignment]  # Django says False

    def has_perm(self, *args: Any, **kwargs: Any) -> bool:
        return True


def list_for(user: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each thing that the user has or could have, with the reasons why not."""

    def work(context: CallContext, rights: Rights) -> dict[str, Any]:
        viewer = inspection.OwnRights(rights_of_operator())
        tools = offered_tools(context, viewer)
        return {
            "model": inspection.inspect_models(rights, viewer, tools),
            "tool": inspection.inspect_tools(rights, viewer, tools),
            "prompt": inspection.inspect_prompts(rights, viewer),
            "resource": inspection.inspect_resources(rights, viewer),
        }

    seen = call_as_user(user, work)
    for kind, one in ((kind, one) for kind, found in seen.items() for one in found):
        state = getattr(one, "summary", "on") if one.is_there else "missing"
        row = {"kind": kind, "name": getattr(one, "label", one.name), "state": state}
        yield {**row, "reasons": list(one.reasons)}


def rights_of_operator() -> Rights:
    request = HttpRequest()
    request.user = user = Operator()
    return Rights(request, Principal(user=user, scopes=frozenset(ALL_SCOPES), method="command"))


def call_as_user(user: Any, work: Callable[[CallContext, Rights], Any]) -> dict[str, Any]:
    """Return what the work returns in a call by this user. Raises CommandError."""
    if not apps.is_installed("django.contrib.admin"):
        raise CommandError("--user needs django.contrib.admin in INSTALLED_APPS.")
    # It needs the admin, which is optional.
    from mcp_django.admin.inspect import impersonation

    principal = impersonation.principal_with_all_scopes(user)
    try:
        if problem := impersonation.chosen_caller(principal, str(user)).problem:
            raise ToolError(problem)
        return impersonation.call_as(principal, HttpRequest(), work)
    except ToolError as error:
        raise CommandError(str(error)) from None

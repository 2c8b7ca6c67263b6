"""One tool for each action of the admin that is switched on and that this caller is offered."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.urls import NoReverseMatch

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
from mcp_django.exposure.action_calls import ActionCall
from mcp_django.exposure.action_definitions import arguments_of, definition_of
from mcp_django.exposure.action_names import NEVER, ActionNames, action_names
from mcp_django.exposure.admin_form_schemas import form_schema
from mcp_django.exposure.admin_requests import admin_request, path_of
from mcp_django.exposure.admin_sites import AdminSource, model_admins, overrides
from mcp_django.exposure.compat import AdminAction, buttons, known_actions, offered_actions
from mcp_django.exposure.generic_tools import given_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.tools import Lane, Outcome
from mcp_django.levels import Level
from mcp_django.principal import ACTION, READ
from mcp_django.protocol.results import ToolDefinition

logger = logging.getLogger("mcp_django")

#: A call shows records before it acts on them, so it takes the right to read as well.
SCOPES = frozenset({ACTION, READ})
#: What the permissions of an action mean where the site has not written a method for them.
PLAIN_VERBS = frozenset({"add", "change", "delete", "view"})


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionTool:
    """One action as one caller is offered it. It exists for as long as a call."""

    context: CallContext
    name: str
    action: AdminAction
    exposure: ModelExposure
    model_admin: ModelAdmin[Any]
    rights: Rights

    lane = Lane.WORK
    #: What staff want to be confirmed is shown as records, or as the page of the action.
    confirms_itself = True

    @property
    def definition(self) -> ToolDefinition:
        return definition_of(self.name, self.action, answer=self._answer_schema())

    def _answer_schema(self) -> dict[str, Any] | None:
        form = getattr(self.action.function, "mcp_form", None)
        try:
            return None if form is None else form_schema(form(), rights=self.rights)
        except Exception:
            # Code of the site: a tool without it is better than none at all.
            logger.exception("The form of %s cannot be described.", self.name)
            return None

    @property
    def is_read_only(self) -> bool:
        return bool(getattr(self.action.function, "mcp_read_only", False))

    def exists_for(self, rights: Rights) -> bool:
        if rights is self.rights:
            return True
        return ActionTools(self.context, rights).find(self.name) is not None

    def check(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> None:
        self._read(arguments)

    def call(self, context: CallContext, rights: Rights, arguments: Mapping[str, Any]) -> Outcome:
        """Run the action, or show what it would do. Raises ToolError for what the admin refuses
        and for what it fails at.
        """
        return ActionCall(
            context=context,
            rights=rights,
            tool=self.name,
            action=self.action,
            exposure=self.exposure,
            model_admin=self.model_admin,
            given=self._read(arguments),
            sent=arguments,
        ).answer()

    def _read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        dry_run = bool(getattr(self.action.function, "mcp_dry_run", False))
        reader = arguments_of(self.name, self.action.place, dry_run=dry_run)
        return reader.read(given_of(arguments))


class ActionTools:
    """The tools of one caller, by name."""

    def __init__(self, context: CallContext, rights: Rights) -> None:
        self.context = context
        self.rights = rights
        self.names: ActionNames = action_names(rights.registry)

    def all(self) -> list[ActionTool]:
        return [tool for exposure in self._exposures() for tool in self._tools_of(exposure)]

    def find(self, name: str) -> ActionTool | None:
        label, _ = self.names.keys.get(name, (None, ""))
        # An action that only `get_actions` knows may be of any model.
        found = [one for one in self._exposures() if label in (None, one.label)]
        tools = (tool for exposure in found for tool in self._tools_of(exposure))
        return next((tool for tool in tools if tool.name == name), None)

    def is_constant(self) -> bool:
        """Whether nothing but the permissions of the user decides about these tools."""
        return all(is_constant(exposure) for exposure in self._candidates())

    def _candidates(self) -> Iterator[ModelExposure]:
        """The models of which an action is switched on for anybody."""
        tools = self.rights.exposed.decisions.tools
        opened = {name for name, decision in tools.items() if decision.enabled}
        known = {self.names.keys[name][0] for name in opened if name in self.names.keys}
        # What only `get_actions` knows may be an action of any model.
        has_strange = not opened <= {*self.names.keys, *self.names.taken}
        for exposure in self.rights.exposed.exposures.values():
            if exposure.actions or exposure.label in known or has_strange:
                yield exposure

    def _exposures(self) -> Iterator[ModelExposure]:
        if not self.rights.has_scopes(SCOPES):
            return
        for exposure in self._candidates():
            if self.rights.level(exposure.model) >= Level.ACT:
                yield exposure

    def _tools_of(self, exposure: ModelExposure) -> Iterator[ActionTool]:
        model_admin = self.rights.model_admin(exposure.model)
        if model_admin is None:
            return
        for action in self._offered(model_admin).values():
            tool = ActionTool(
                context=self.context,
                name=self.names.of(exposure.label, action.name),
                action=action,
                exposure=exposure,
                model_admin=model_admin,
                rights=self.rights,
            )
            is_on = is_switched_on(self.rights, exposure, action=action.name, tool=tool.name)
            if is_on and not (self.rights.is_read_only and not tool.is_read_only):
                yield tool

    def _offered(self, model_admin: ModelAdmin[Any]) -> dict[str, AdminAction]:
        try:
            path = path_of(model_admin, "changelist")
            request, _ = admin_request(self.context, self.rights, model_admin, path=path)
            if not model_admin.has_view_or_change_permission(request):
                return {}
            return offered_actions(model_admin, request)
        except (NotFound, NoReverseMatch):
            # The site lets nobody in that way, or has no URLs.
            return {}
        except Exception:
            # Code of the site: this model has no actions, and all the others have theirs.
            logger.exception("The actions of %s cannot be told.", model_admin)
            return {}


def is_switched_on(rights: Rights, exposure: ModelExposure, *, action: str, tool: str) -> bool:
    """Whether code or staff let assistants run an action. What staff switch off, they switch off
    for every kind of tool: see `tool_decisions`.
    """
    decision = rights.exposed.decisions.tools.get(tool)
    is_on = action in exposure.actions or (decision is not None and decision.enabled is True)
    return is_on and action not in NEVER


def is_constant(exposure: ModelExposure) -> bool:
    """Whether no code of the site has a say in which actions of a model a user is offered."""
    if exposure.decides_itself or exposure.overrides("get_fields"):
        return False
    return all(
        AdminSource(one).is_constant()
        and not overrides(one, "get_actions")
        and not overrides(one, "get_action_choices")
        and not buttons(one)
        and has_plain_permissions(one)
        for one in model_admins(exposure.model)
    )


def has_plain_permissions(model_admin: Any) -> bool:
    methods = (f"has_{verb}_permission" for verb in sorted(PLAIN_VERBS))
    if any(overrides(model_admin, name) for name in methods):
        return False
    known = known_actions(model_admin).values()
    verbs = {verb for one in known for verb in getattr(one, "allowed_permissions", ())}
    return verbs <= PLAIN_VERBS

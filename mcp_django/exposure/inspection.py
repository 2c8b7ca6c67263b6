"""Which models, tools, resources and prompts a caller has, and why not the others.

`rights` are always those of the caller, `viewer` is who wants to know: what the viewer may not see
of the site is in no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
from django.contrib.auth.models import Group
from django.db import DatabaseError
from django.db.models import Model, QuerySet
from django.utils.text import get_text_list

from mcp_django.conf import get_config
from mcp_django.connections import apart
from mcp_django.exceptions import QueryError
from mcp_django.exposure.admin_bridge.rights import ADD, CHANGE, REMOVE, is_writer, may
from mcp_django.exposure.decisions import Exposed, PromptDecision
from mcp_django.exposure.options import ModelExposure, looks_secret, may_view, view_permissions
from mcp_django.exposure.paths import (
    FILTER,
    GROUP,
    METRIC,
    ORDER,
    RETURN,
    SEARCH,
    ModelClass,
    Path,
    begins_with,
    declaration_of,
)
from mcp_django.exposure.permissions import Rights, holds_for_all
from mcp_django.exposure.primitives import Prompt, Tool
from mcp_django.exposure.prompts.stored import (
    StoredPrompt,
    all_prompts,
    decision_about,
    prompt_definition,
)
from mcp_django.exposure.query.access import allowed_paths, find_access, hides_records
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.find import find_records
from mcp_django.exposure.query.guard import common_rows
from mcp_django.exposure.query.serializers import encoder
from mcp_django.exposure.resources.functions import CodeResource
from mcp_django.exposure.resources.models import list_resources, list_templates
from mcp_django.exposure.site_functions import SiteFunction
from mcp_django.exposure.tools.decisions import tool_definition
from mcp_django.exposure.tools.records import WriteTool
from mcp_django.levels import Level
from mcp_django.models import PromptTemplate
from mcp_django.principal import READ, SCOPES
from mcp_django.protocol.results import (
    PromptDefinition,
    Resource,
    ResourceTemplate,
    ToolDefinition,
)

# The rights of people who look at what others see, and rights with some limits taken away.
#
# Nothing here decides what a call may do. Pages of the admin ask the same questions as a call,
# once as the caller and once without a limit, and what differs is the reason.


class Lifted(Rights):
    """The rights of a caller without some limits of the credential, and of read-only switches."""

    def __init__(self, rights: Rights, *limits: str) -> None:
        principal = replace(rights.principal, caches={})
        if "scopes" in limits:
            principal = replace(principal, scopes=frozenset(SCOPES))
        if "models" in limits:
            held = replace(principal.restriction, models=None)
            principal = replace(principal, restriction=held)
        super().__init__(rights.request, principal, registry=rights.registry)
        self.limits = limits

    @property
    def is_read_only(self) -> bool:
        return "read_only" not in self.limits and super().is_read_only


class OwnRights(Lifted):
    """What a user may see of the site, whatever was decided about assistants.

    Staff who hid a model from everybody, or gave it to a group that is not theirs, still look at
    it in the admin. Credentials and read-only switches do not count either.
    """

    def __init__(self, rights: Rights) -> None:
        super().__init__(rights, "scopes", "models", "read_only")

    @cached_property
    def exposed(self) -> Exposed:
        found = copy(super().exposed)
        found.closed, found.groups, found.withheld = set(), {}, {}
        return found


class SharedRights(Rights):
    """What a caller has and a viewer may see as well: rows and fields that both have."""

    def __init__(self, rights: Rights, viewer: OwnRights) -> None:
        # What is cached of the caller alone is more than what both may see.
        principal = replace(rights.principal, caches={})
        super().__init__(rights.request, principal, registry=rights.registry)
        self.viewer = viewer

    def may_view(self, model: type[Model]) -> bool:
        return super().may_view(model) and self.viewer.may_view(model)

    def rows(self, model: type[Model]) -> QuerySet[Any]:
        common: QuerySet[Any] = common_rows(super().rows(model), self.viewer.rows(model))
        return common

    def shown(self, model: type[Model]) -> frozenset[str] | None:
        both = (super().shown(model), self.viewer.shown(model))
        names = [one for one in both if one is not None]
        return frozenset.intersection(*names) if names else None

    def masks(self, model: type[Model]) -> Mapping[str, str]:
        return {**super().masks(model), **self.viewer.masks(model)}

    def model_admin(self, model: type[Model]) -> Any:
        """None: nothing is changed with these rights, and what an admin computes is not shared."""
        return None

    def checks_rows_one_by_one(self, model: type[Model]) -> bool:
        return super().checks_rows_one_by_one(model) or self.viewer.checks_rows_one_by_one(model)

    def may_view_object(self, model: type[Model], obj: Model) -> bool:
        return super().may_view_object(model, obj) and self.viewer.may_view_object(model, obj)


def limits_of(rights: Rights) -> dict[str, str]:
    """The limits in force that are none of the user's own rights, with a sentence for each."""
    found: dict[str, str] = {}
    missing = sorted(set(SCOPES) - rights.principal.scopes)
    if missing:
        found["scopes"] = f"The credential lacks a scope. It has none of: {', '.join(missing)}."
    if rights.principal.restriction.models is not None:
        found["models"] = "The token is held to some models."
    if rights.is_read_only:
        found["read_only"] = read_only_sentence(rights)
    return found


def read_only_sentence(rights: Rights) -> str:
    decided = rights.exposed.decisions
    if get_config().read_only:
        return "READ_ONLY is set for the site."
    if decided.read_only:
        return "Staff made the server read-only."
    if rights.principal.user.pk in decided.read_only_users:
        return "Staff made assistants of this user read-only."
    return "The token is read-only."


# Which fields of a model a caller has and for what, and why not the others.

USES = {FILTER: "filter", ORDER: "order", GROUP: "group", METRIC: "measure", SEARCH: "search"}


@dataclass(frozen=True, kw_only=True)
class InspectedField:
    """One path of a model: what the caller may use it for, or why for nothing."""

    name: str
    uses: tuple[str, ...] = ()
    reason: str = ""


def inspect_fields(rights: Rights, viewer: OwnRights, code: ModelExposure) -> list[InspectedField]:
    """The paths of a model that exists for the caller, as far as the viewer may use them.

    Raises ImproperlyConfigured where code declares what cannot be.
    """
    exposure = rights.exposed.exposures[code.model]
    # What the viewer may use of what code declares, as if staff had decided nothing.
    declared_rights = OwnRights(viewer)
    declared_rights.exposed.exposures = viewer.registry.candidates
    theirs, viewers = find_access(rights, exposure), find_access(declared_rights, code)
    listed = (viewers.columns, *viewers.paths.values())
    every = {path.names: path for paths in listed for path in paths}
    found = []
    for path in every.values():
        is_masked = any(path.names == one.names for one in theirs.masks)
        uses = ["show masked"] * is_masked + ["show"] * (path.names in theirs.shown)
        for use, word in USES.items():
            if any(one.names == path.names for one in theirs.paths[use]):
                uses.append(word)
        reason = "" if uses else why_no_use(rights, path, exposure=exposure)
        found.append(InspectedField(name=path.text, uses=tuple(uses), reason=reason))
    declared = {path.names[0] for path in declaration_of(code).everything}
    return found + list(undeclared(viewer, code, declared))


def why_no_use(rights: Rights, path: Path, *, exposure: ModelExposure) -> str:
    if not any(one.names == path.names for one in declaration_of(exposure).everything):
        return "Staff took it out."
    for hop in path.hops:
        for model in hop.models:
            through = f"It leads through {model._meta.label_lower}"
            if not rights.may_view(model):
                return f"{through}, which this user does not have."
            if hides_records(rights, model):
                return f"{through}, which has only numbers about groups."
    for at, (model, name) in enumerate(path.steps):
        names = rights.shown(model)
        if names is not None and name not in names:
            label = model._meta.label_lower
            return f"The site does not show {name} of {label} to this user."
        if name in rights.masks(model):
            return f"This user gets {name} of {model._meta.label_lower} masked."
        if at and begins_with(path.names[at:], rights.exposed.withheld.get(model, ())):
            return f"Staff took it out of {model._meta.label_lower}."
    return "It leads through records of which this user sees some, or each after a look at it."


def undeclared(
    viewer: OwnRights, code: ModelExposure, declared: set[str]
) -> Iterator[InspectedField]:
    """Columns that code does not name, of those that the viewer sees in the admin."""
    shown = viewer.shown(code.model)
    for field in code.model._meta.concrete_fields:
        if field.name in declared or (shown is not None and field.name not in shown):
            continue
        if field.name in {path.split("__")[0] for path in code.exclude}:
            reason = "Code excludes it."
        elif looks_secret(code.model, field.name):
            reason = "It looks secret, and code does not name it."
        elif code.is_offered:
            reason = "Code does not name it."
        else:
            reason = "It is neither in the list nor in the form of the admin."
        yield InspectedField(name=field.name, reason=reason)


# Some records as a caller gets them, with nothing that the viewer may not see.

#: Records that are shown, and fields of them.
SHOWN, SHOWN_FIELDS = 3, 64


def sample_rows(
    rights: Rights, viewer: OwnRights, exposure: ModelExposure
) -> list[dict[str, Any]]:
    """Up to three records of the caller as far as the viewer may see them, too.

    Raises QueryError.
    """
    shared = SharedRights(rights, viewer)
    using = shared.rows(exposure.model).db
    try:
        # What fails must not break a transaction around the page.
        with apart(using):
            fields = allowed_paths(shared, exposure).names(RETURN)[:SHOWN_FIELDS]
            asked = FindRecords(model=exposure.label, fields=fields, limit=SHOWN)
            found = find_records(shared, exposure, asked)
    except DatabaseError as error:
        raise QueryError("The database cannot read it. Is there a table?") from error
    records: list[dict[str, Any]] = msgspec.json.decode(encoder.encode(found.table.objects()))
    return records


#: What a caller may do to records, in the words of a page.
CHANGES = {ADD: "create", CHANGE: "change", REMOVE: "delete"}


@dataclass(frozen=True, kw_only=True)
class InspectedModel:
    """One model as the caller has it, up to `level`, or the reasons why it is not there."""

    label: str
    name: str
    #: With the rights to change records, unlike that of an exposure.
    level: Level
    #: What the level lets this caller do, and why it is lower than that of the exposure.
    summary: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        return self.level > Level.HIDDEN


def inspect_models(
    rights: Rights, viewer: OwnRights, tools: Sequence[Tool]
) -> list[InspectedModel]:
    """Every model that code or the admin has and that the viewer may see, by label."""
    return [
        inspect_model(rights, viewer, exposure, tools)
        for exposure in rights.registry.candidates.values()
        if viewer.may_view(exposure.model)
    ]


def inspect_model(
    rights: Rights, viewer: OwnRights, code: ModelExposure, tools: Sequence[Tool]
) -> InspectedModel:
    """`tools` are those that the viewer is offered."""
    model = code.model
    opened = rights.level(model) if rights.has_scopes(frozenset({READ})) else Level.HIDDEN
    level, summary = opened, opened.label
    if opened > Level.READ:
        verbs = [word for verb, word in CHANGES.items() if may(rights, model, verb)]
        has_actions = any(is_action_of(tool, model, rights, viewer) for tool in tools)
        level = Level.WRITE if verbs else Level.ACT if has_actions else Level.READ
        summary = level.label
        if verbs:
            named = get_text_list(verbs, "and")
            summary = f"write: records, {'actions, ' * has_actions}and to {named}"
        if level < opened:
            summary += f". {why_not_more(rights, opened)}"
    return InspectedModel(
        label=code.label,
        name=str(model._meta.verbose_name_plural),
        level=level,
        summary=summary,
        reasons=() if opened else tuple(why_hidden(rights, viewer, code)),
    )


def is_action_of(tool: Tool, model: ModelClass, rights: Rights, viewer: OwnRights) -> bool:
    """Whether a tool is an action of this model that the caller and the viewer both have."""
    exposure = getattr(tool, "exposure", None)
    if not isinstance(exposure, ModelExposure) or exposure.model is not model:
        return False
    decision = rights.exposed.decisions.tools.get(tool.name)
    return rights.is_left(decision) and tool.exists_for(viewer) and tool.exists_for(rights)


def why_not_more(rights: Rights, opened: Level) -> str:
    """Why a caller has less of a model than its level opens."""
    words = f"The model is opened for “{opened.label.partition(':')[0]}”, but"
    if rights.is_read_only:
        return f"{words} nothing can be changed. {read_only_sentence(rights)}"
    if opened is Level.WRITE and not any(is_writer(rights, verb) for verb in CHANGES):
        return f"{words} the credential has no scope for that."
    return f"{words} the admin offers this user nothing to change."


def why_hidden(rights: Rights, viewer: OwnRights, code: ModelExposure) -> Iterator[str]:
    """Every reason, each of which would do, in the order in which a call meets them."""
    model, exposed = code.model, rights.exposed
    if not rights.has_scopes(frozenset({READ})):
        yield f"The credential lacks the scope {READ}."
    if not rights.principal.restriction.allows_model(code.label):
        yield "The token is held to other models."
    if model in exposed.closed:
        yield "Staff hid it."
    elif model not in exposed.exposures:
        yield (
            "Code hides it."
            if code.is_offered
            else "It is not exposed: neither code nor staff opened it."
        )
    groups = exposed.groups.get(model)
    if not rights.is_member(groups):
        yield for_groups(groups, viewer)
    own = OwnRights(rights)
    if not own.may_view(model):
        rules = f"The rules of {type(code).__name__} refuse this user."
        yield rules if code.decides_itself else refusal_of_rules(own, model)


def for_groups(groups: frozenset[object] | None, viewer: OwnRights) -> str:
    """Names of groups are rows, too."""
    if not groups or not viewer.may_view(Group):
        return "Staff opened it to groups that this user is not in."
    found = viewer.rows(Group).filter(pk__in=groups).order_by("name")
    names = ", ".join(str(group) for group in found[:10])
    return f"Staff opened it to groups that this user is not in: {names or 'none that exists'}."


def refusal_of_rules(own: Rights, model: type[Model]) -> str:
    """Why the rules of the site do not show a model to its user, who is asked once more."""
    # The admin is optional, and yet those who ask this are its pages.
    from mcp_django.exposure.admin_sites import VIEW_METHODS, Gates, model_admins, overrides

    user, permission = own.request.user, view_permissions(model)[0]
    if model_admins(model):
        model_admin = Gates(own.request).admin_of(model)
        if model_admin is None:
            is_staff = getattr(user, "is_staff", False)
            return "The admin does not let this user in" + ("." if is_staff else ": not staff.")
        if overrides(model_admin, *VIEW_METHODS):
            rules = type(model_admin).__name__
            return f"The rules of {rules} refuse this user, or failed: see logs."
    if not may_view(user, model):
        return f"This user does not have the permission {permission}."
    if not holds_for_all(user, view_permissions(model)):
        return (
            f"The permission {permission} of this user may hold for some objects only, and "
            "nothing says which: see the check mcp_django.W009."
        )
    return "The code of the site that says which rows there are failed: see the log."


# Which tools, resources and prompts a caller has, and why not the others.

SWITCHED_OFF = "Staff switched it off."


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """A tool, a resource or a prompt as the caller has it, or the reasons why it is not there."""

    name: str
    title: str
    description: str
    is_there: bool = True
    reasons: tuple[str, ...] = ()


def inspect_tools(rights: Rights, viewer: OwnRights, tools: Iterable[Tool]) -> list[Inspected]:
    """The tools that exist for the viewer as well, by name."""
    found = []
    for tool in sorted(tools, key=lambda one: one.name):
        if tool.exists_for(viewer):
            decision = rights.exposed.decisions.tools.get(tool.name)
            found.append(inspected(rights, viewer, tool, tool_definition(rights, tool), decision))
    return found


def inspected(
    rights: Rights,
    viewer: OwnRights,
    thing: Tool | Prompt,
    definition: ToolDefinition | PromptDefinition,
    decision: PromptDecision | None,
) -> Inspected:
    """A tool or a prompt, about which staff may have decided."""
    is_there = rights.is_left(decision) and thing.exists_for(rights)
    reasons = () if is_there else tuple(why_not_offered(rights, viewer, thing, decision))
    return Inspected(
        name=thing.name,
        title=definition.title,
        description=definition.description,
        is_there=is_there,
        reasons=reasons,
    )


def why_not_offered(
    rights: Rights, viewer: OwnRights, thing: Tool | Prompt, decision: PromptDecision | None
) -> Iterator[str]:
    """Every reason, each of which would do."""
    groups = None if decision is None else decision.groups
    if decision is not None and decision.enabled is False:
        yield SWITCHED_OFF
    if isinstance(thing, StoredPrompt):
        groups = thing.groups
        if not rights.has_scopes(frozenset({READ})):
            yield f"The credential lacks the scope {READ}."
    elif not thing.exists_for(rights):
        yield from why_not(rights, thing)
    if not rights.is_member(groups):
        yield for_groups(groups, viewer)


def why_not(rights: Rights, thing: Tool | CodeResource | Prompt) -> Iterator[str]:
    """Yield a sentence about each limit that alone hides the thing, and one about the rules of the
    site where these do.
    """
    limits = limits_of(rights)
    if thing.exists_for(Lifted(rights, *limits)):
        for name, sentence in limits.items():
            if not thing.exists_for(Lifted(rights, *limits.keys() - {name})):
                yield sentence
    own = OwnRights(rights)
    if not thing.exists_for(own):
        yield refusal_of_primitive(own, thing)


def refusal_of_primitive(own: Rights, thing: Any) -> str:
    exposure = getattr(thing, "exposure", None)
    if isinstance(exposure, ModelExposure):
        if not own.may_view(exposure.model):
            return f"It is about {exposure.label}, which this user does not have."
        return "The admin does not offer it to this user."
    if isinstance(thing, WriteTool):
        return f"There is no model of which this user's assistants may {thing.verb} records."
    if isinstance(thing, SiteFunction) and thing.permission is None:
        return "It is for active staff, which this user is not."
    if isinstance(thing, SiteFunction) and isinstance(thing.permission, str):
        return f"This user does not have the permission {thing.permission}."
    return "The rules of the site refuse this user."


def inspect_resources(rights: Rights, viewer: OwnRights) -> list[Inspected]:
    """Resources and templates that exist for the viewer as well: those there are come first."""

    def listed(who: Rights) -> dict[str, Resource | ResourceTemplate]:
        resources = {one.uri: one for one in list_resources(who)}
        return resources | {one.uri_template: one for one in list_templates(who)}

    viewers, callers = listed(viewer), listed(rights)
    definitions = {uri: one for uri, one in callers.items() if uri in viewers}
    reasons = {}
    for uri, resource in rights.registry.resources.items():
        if uri not in definitions and resource.exists_for(viewer):
            definitions[uri] = resource.definition(viewer.request)
            reasons[uri] = tuple(why_not(rights, resource))
    return [
        Inspected(
            name=uri,
            title=one.title or one.name,
            description=one.description,
            is_there=uri in callers,
            reasons=reasons.get(uri, ()),
        )
        for uri, one in definitions.items()
    ]


def inspect_prompts(rights: Rights, viewer: OwnRights) -> list[Inspected]:
    """The prompts that the viewer is offered too, or reads in the admin, by name."""
    rows: dict[str, PromptTemplate] = {}
    if viewer.may_view(PromptTemplate):
        templates = viewer.rows(PromptTemplate).filter(server=viewer.principal.server)
        rows = {row.name: row for row in templates}
    found = []
    for prompt in all_prompts(rights):
        has_row = rows.pop(prompt.name, None) is not None
        if prompt.exists_for(viewer) or (has_row and isinstance(prompt, StoredPrompt)):
            definition = prompt_definition(rights, prompt)
            decision = decision_about(rights, prompt)
            found.append(inspected(rights, viewer, prompt, definition, decision))
    for name, row in rows.items():
        # No prompt was made of the row, for anybody.
        reason = "It cannot be read: see the log." if row.enabled else SWITCHED_OFF
        found.append(
            Inspected(
                name=name,
                title=row.title,
                description=row.description,
                is_there=False,
                reasons=(reason,),
            )
        )
    return sorted(found, key=lambda one: one.name)

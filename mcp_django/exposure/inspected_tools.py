"""Which tools and resources a caller has, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mcp_django.exposure.code_resources import CodeResource
from mcp_django.exposure.decisions import ToolDecision
from mcp_django.exposure.inspection import for_groups
from mcp_django.exposure.lookers import OwnRights, limits_that_hide, own_rights
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts import Prompt
from mcp_django.exposure.resources import list_resources, list_templates
from mcp_django.exposure.tool_decisions import definition_of, exists
from mcp_django.exposure.tools import Tool
from mcp_django.exposure.write_tools import WriteTool
from mcp_django.protocol.results import Resource, ResourceTemplate


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """A tool, a resource or a prompt as the caller has it, or the reasons why it is not there."""

    name: str
    title: str
    description: str
    is_there: bool = True
    reasons: tuple[str, ...] = ()


def inspect_tools(rights: Rights, looker: OwnRights, tools: Iterable[Tool]) -> list[Inspected]:
    """The tools that exist for the looker as well, by name."""
    found = []
    for tool in sorted(tools, key=lambda one: one.name):
        if tool.exists_for(looker):
            definition, is_there = definition_of(rights, tool), exists(rights, tool)
            found.append(
                Inspected(
                    name=tool.name,
                    title=definition.title,
                    description=definition.description,
                    is_there=is_there,
                    reasons=() if is_there else tuple(why_no_tool(rights, looker, tool)),
                )
            )
    return found


def why_no_tool(rights: Rights, looker: OwnRights, tool: Tool) -> Iterator[str]:
    decision = rights.exposed.decisions.tools.get(tool.name, ToolDecision())
    if decision.enabled is False:
        yield "Staff switched it off."
    if not rights.is_member(decision.groups):
        yield for_groups(decision.groups, looker)
    if not tool.exists_for(rights):
        yield from why_not(rights, tool)


def why_not(rights: Rights, thing: Tool | CodeResource | Prompt) -> Iterator[str]:
    yield from limits_that_hide(rights, thing.exists_for)
    own = own_rights(rights)
    if not thing.exists_for(own):
        yield refusal_of(own, thing)


def refusal_of(own: Rights, thing: Any) -> str:
    exposure = getattr(thing, "exposure", None)
    if isinstance(exposure, ModelExposure):
        return refusal_of_action(own, exposure)
    if isinstance(thing, WriteTool):
        return f"There is no model of which this user's assistants may {thing.verb} records."
    permission = getattr(thing, "permission", refusal_of)
    if permission is None:
        return "It is for active staff, which this user is not."
    if isinstance(permission, str):
        return f"This user does not have the permission {permission}."
    return "The rules of the site refuse this user."


def refusal_of_action(own: Rights, exposure: ModelExposure) -> str:
    if not own.may_view(exposure.model):
        return f"It is about {exposure.label}, which this user does not have."
    return "The admin does not offer it to this user."


def inspect_resources(rights: Rights, looker: OwnRights) -> list[Inspected]:
    """Resources and templates that exist for the looker as well: those there are come first."""
    lookers = {one.uri for one in list_resources(looker)}
    lookers |= {one.uri_template for one in list_templates(looker)}
    theirs: list[Resource | ResourceTemplate] = [
        *list_resources(rights),
        *list_templates(rights),
    ]
    found = [inspected(one) for one in theirs if address(one) in lookers]
    known = {one.name for one in found}
    for resource in rights.registry.resources.values():
        if resource.uri not in known and resource.exists_for(looker):
            definition = resource.definition(looker.request)
            found.append(inspected(definition, reasons=tuple(why_not(rights, resource))))
    return found


def address(one: Resource | ResourceTemplate) -> str:
    return one.uri if isinstance(one, Resource) else one.uri_template


def inspected(one: Resource | ResourceTemplate, *, reasons: tuple[str, ...] = ()) -> Inspected:
    return Inspected(
        name=address(one),
        title=one.title or one.name,
        description=one.description,
        is_there=not reasons,
        reasons=reasons,
    )

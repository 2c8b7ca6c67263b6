"""Which fields of a model a caller has and for what, and why not the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_django.exposure.declarations import SEARCH, declaration_of
from mcp_django.exposure.guard import FILTER, GROUP, METRIC, ORDER
from mcp_django.exposure.lookers import OwnRights, code_rights
from mcp_django.exposure.options import ModelExposure, looks_secret
from mcp_django.exposure.overrides import begins_with
from mcp_django.exposure.paths import ModelClass, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach, find_reach, hides_records

USES = {FILTER: "filter", ORDER: "order", GROUP: "group", METRIC: "measure", SEARCH: "search"}


@dataclass(frozen=True, kw_only=True)
class InspectedField:
    """One path of a model: what the caller may use it for, or why for nothing."""

    name: str
    uses: tuple[str, ...] = ()
    reason: str = ""


def inspect_fields(rights: Rights, looker: OwnRights, code: ModelExposure) -> list[InspectedField]:
    """The paths of a model that exists for the caller, as far as the looker may use them.

    Raises ImproperlyConfigured where code declares what cannot be.
    """
    exposure = rights.exposed.exposures[code.model]
    theirs, lookers = find_reach(rights, exposure), find_reach(code_rights(looker), code)
    found = [inspect_path(rights, theirs, path, exposure=exposure) for path in every_path(lookers)]
    declared = {path.names[0] for path in every_declared(code)}
    return found + list(undeclared(looker, code, declared))


def every_path(reach: Reach) -> list[Path]:
    """Each path once, whatever it is good for."""
    return list({path.names: path for paths in reach.paths.values() for path in paths}.values())


def every_declared(exposure: ModelExposure) -> Iterator[Path]:
    for paths in declaration_of(exposure).paths.values():
        yield from paths


def inspect_path(
    rights: Rights, reach: Reach, path: Path, *, exposure: ModelExposure
) -> InspectedField:
    uses = ["show"] * (path.names in reach.shown)
    for use, word in USES.items():
        if any(one.names == path.names for one in reach.paths[use]):
            uses.append(word)
    reason = "" if uses else why_no_use(rights, path, exposure=exposure)
    return InspectedField(name=path.text, uses=tuple(uses), reason=reason)


def why_no_use(rights: Rights, path: Path, *, exposure: ModelExposure) -> str:
    if not any(one.names == path.names for one in every_declared(exposure)):
        return "Staff took it out."
    for hop in path.hops:
        for model in hop.models:
            reason = why_not_through(rights, model)
            if reason:
                return reason
    for at, (model, name) in enumerate(path.steps):
        names = rights.shown(model)
        if names is not None and name not in names:
            label = model._meta.label_lower
            return f"The site does not show {name} of {label} to this user."
        if at and begins_with(path.names[at:], rights.exposed.withheld.get(model, ())):
            return f"Staff took it out of {model._meta.label_lower}."
    return "It leads through records of which this user sees some, or each after a look at it."


def why_not_through(rights: Rights, model: ModelClass) -> str:
    label = model._meta.label_lower
    if not rights.may_view(model):
        return f"It leads through {label}, which this user does not have."
    if hides_records(rights, model):
        return f"It leads through {label}, which has only numbers about groups."
    return ""


def undeclared(
    looker: OwnRights, code: ModelExposure, declared: set[str]
) -> Iterator[InspectedField]:
    """Columns that code does not name, of those that the looker sees in the admin."""
    shown = looker.shown(code.model)
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

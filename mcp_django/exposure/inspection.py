"""Which models a caller has, and for each one that the caller has not, why.

`rights` are always those of the caller, `looker` is who wants to know: what the looker may not see
of the site is in no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.db.models import Model

from mcp_django.exposure.lookers import OwnRights, own_rights
from mcp_django.exposure.options import ModelExposure, may_view
from mcp_django.exposure.permissions import Rights
from mcp_django.levels import Level
from mcp_django.principal import READ


@dataclass(frozen=True, kw_only=True)
class InspectedModel:
    """One model as the caller has it, up to `level`, or the reasons why it is not there."""

    label: str
    name: str
    level: Level
    reasons: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        return self.level > Level.HIDDEN


def inspect_models(rights: Rights, looker: OwnRights) -> list[InspectedModel]:
    """Every model that code or the admin has and that the looker may see, by label."""
    own = own_rights(rights)
    return [
        inspect_model(rights, looker, own, exposure)
        for exposure in rights.registry.candidates.values()
        if looker.may_view(exposure.model)
    ]


def inspect_model(
    rights: Rights, looker: OwnRights, own: OwnRights, code: ModelExposure
) -> InspectedModel:
    model = code.model
    level = rights.level(model) if rights.has_scopes(frozenset({READ})) else Level.HIDDEN
    reasons = () if level else tuple(why_hidden(rights, looker, own, code))
    return InspectedModel(
        label=code.label,
        name=str(model._meta.verbose_name_plural),
        level=level,
        reasons=reasons,
    )


def why_hidden(
    rights: Rights, looker: OwnRights, own: OwnRights, code: ModelExposure
) -> Iterator[str]:
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
        yield for_groups(groups, looker)
    if not own.may_view(model):
        yield refusal_of(own, code)


def for_groups(groups: frozenset[object] | None, looker: OwnRights) -> str:
    """Names of groups are rows, too."""
    if not groups or not looker.may_view(Group):
        return "Staff opened it to groups that this user is not in."
    found = looker.rows(Group).filter(pk__in=groups).order_by("name")
    names = ", ".join(str(group) for group in found[:10])
    return f"Staff opened it to groups that this user is not in: {names or 'none that exists'}."


def refusal_of(own: Rights, code: ModelExposure) -> str:
    """Why the rules of the site do not show a model to its user, who is asked once more."""
    if code.decides_itself:
        return f"The rules of {type(code).__name__} refuse this user."
    return refusal_of_admin(own, code.model)


def refusal_of_admin(own: Rights, model: type[Model]) -> str:
    # The admin is optional, and yet those who ask this are its pages.
    from mcp_django.exposure.admin_sites import Gates, model_admins, overrides

    if not model_admins(model):
        return refusal_of_permissions(own, model)
    model_admin = Gates(own.request).admin_of(model)
    if model_admin is None:
        is_staff = getattr(own.request.user, "is_staff", False)
        return "The admin does not let this user in" + ("." if is_staff else ": not staff.")
    names = ("has_view_permission", "has_view_or_change_permission")
    if any(overrides(model_admin, name) for name in names):
        return f"The rules of {type(model_admin).__name__} refuse this user, or failed: see logs."
    return refusal_of_permissions(own, model)


def refusal_of_permissions(own: Rights, model: type[Model]) -> str:
    opts = model._meta
    if may_view(own.request.user, model):
        return "The code of the site that says which rows there are failed: see the log."
    return f"This user does not have the permission {opts.app_label}.view_{opts.model_name}."

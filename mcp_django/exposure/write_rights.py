"""Who may change what: levels, scopes and switches, then the ModelAdmin of the site."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
from mcp_django.exposure.options import SECRET_WORDS, ModelExposure, looks_secret
from mcp_django.exposure.permissions import Rights
from mcp_django.levels import Level
from mcp_django.principal import DELETE, WRITE

logger = logging.getLogger("mcp_django")

#: What one can do, with the scope that a credential needs for it.
ADD, CHANGE, REMOVE = "add", "change", "delete"
SCOPES = {ADD: WRITE, CHANGE: WRITE, REMOVE: DELETE}
#: The methods of a ModelAdmin that answer, where a site may have its own.
METHODS = tuple(f"has_{verb}_permission" for verb in SCOPES)


def may_write(rights: Rights, verb: str) -> bool:
    """Whether there is any model for which this caller has the verb: "add", "change", "delete"."""
    return is_writer(rights, verb) and any(
        may(rights, one.model, verb) for one in rights.exposures()
    )


def is_writer(rights: Rights, verb: str) -> bool:
    return not rights.is_read_only and rights.has_scopes(frozenset({SCOPES[verb]}))


def may(rights: Rights, model: type[Model], verb: str, obj: Any = None) -> bool:
    """Whether level, switches, scopes and the ModelAdmin permit it: of any object, or of one."""
    if not is_writer(rights, verb) or rights.level(model) < Level.WRITE:
        return False
    model_admin = rights.model_admin(model)
    if model_admin is None:
        return False
    method = getattr(model_admin, f"has_{verb}_permission")
    try:
        return bool(method(rights.request) if verb == ADD else method(rights.request, obj))
    except Exception:
        # Code of the site. Who cannot be asked has not said yes.
        logger.exception("Whether %s may be changed cannot be told.", model._meta.label)
        return False


def model_admin_for(rights: Rights, exposure: ModelExposure, verb: str) -> Any:
    """The ModelAdmin to do it through. Raises NotFound, with the models where one may."""
    if may(rights, exposure.model, verb):
        return rights.model_admin(exposure.model)
    labels = [one.label for one in rights.exposures() if may(rights, one.model, verb)]
    raise NotFound(
        f"You cannot {verb} records of {exposure.label}. You can {verb} those of: "
        f"{', '.join(labels[:30])}."
        if labels
        else f"You cannot {verb} records of {exposure.label}."
    )


def settable(rights: Rights, exposure: ModelExposure, names: Iterable[str]) -> list[str]:
    """Those of the fields of a form that this caller's assistant may set.

    Exactly `write_fields`, where a site lists them; else all but those that are taken away by
    `exclude`, and those that look secret and are not named in `fields`. In any case none that
    staff took out of records, or `get_fields` hides from this caller.
    """
    named = {path.split("__")[0] for path in exposure.fields}
    hidden = {path.split("__")[0] for path in exposure.exclude}
    hidden |= {one[0] for one in rights.exposed.withheld.get(exposure.model, ()) if len(one) == 1}
    shown = exposure.get_fields(rights.request)
    if shown is not None:
        hidden |= named - set(shown)
    listed = exposure.write_fields
    return [
        name
        for name in names
        if name not in hidden
        and (
            name in named or not is_secret(exposure.model, name)
            if listed is None
            else name in listed
        )
    ]


def is_secret(model: type[Model], name: str) -> bool:
    """As `looks_secret`, for a form, which has fields that the model has not."""
    try:
        return looks_secret(model, name)
    except FieldDoesNotExist:
        return bool(SECRET_WORDS.search(name))


def describe_writing(
    context: CallContext, rights: Rights, exposure: ModelExposure
) -> dict[str, Any]:
    """What can be set of the records of a model, by tool. Empty for those who may only read."""
    if not any(may(rights, exposure.model, verb) for verb in SCOPES):
        return {}
    # The admin is optional; here it is there.
    from mcp_django.exposure import admin_descriptions

    return admin_descriptions.describe_writing(context, rights, exposure)


def asks_site(rights: Rights) -> bool:
    """Whether code of the site decides about any model that could be written."""
    models = [one.model for one in rights.exposures() if rights.level(one.model) >= Level.WRITE]
    found = [rights.model_admin(model) for model in models]
    return any(one is not None and asks_own_code(one) for one in found)


def asks_own_code(model_admin: Any) -> bool:
    # The admin is optional; here it is there.
    from django.contrib.admin import AdminSite

    from mcp_django.exposure.admin_sites import overrides

    gate = getattr(model_admin.admin_site.has_permission, "__func__", None)
    is_own = gate is not AdminSite.has_permission
    return is_own or any(overrides(model_admin, name) for name in METHODS)

"""What a caller can set of the records of a model: the forms of the admin as schemas."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from django.contrib.admin.utils import flatten_fieldsets

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_form_schemas import form_schema, formset_schema
from mcp_django.exposure.admin_forms import RecordForm
from mcp_django.exposure.admin_inlines import InlineForms
from mcp_django.exposure.admin_posts import open_names
from mcp_django.exposure.admin_requests import admin_request, own_copy, path_of
from mcp_django.exposure.form_schemas import Schema
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.refusals import refusals_in_words
from mcp_django.exposure.write_rights import ADD, CHANGE, REMOVE, may, settable

logger = logging.getLogger("mcp_django")

#: Said of an update where its form has the fields of the add form.
AS_FOR_CREATE = "The fields of create_record, each of them optional."


def describe_writing(
    context: CallContext, rights: Rights, exposure: ModelExposure
) -> dict[str, Any]:
    """By tool. Empty for those who may only read."""
    found: dict[str, Any] = {}
    model = exposure.model
    if may(rights, model, ADD):
        found["create_record"] = described(creation, context, rights, exposure)
    if may(rights, model, CHANGE):
        changed = described(change, context, rights, exposure)
        names = names_of(changed)
        is_same = names is not None and names == names_of(found.get("create_record"))
        found["update_record"] = {"values": AS_FOR_CREATE} if is_same else changed
    if may(rights, model, REMOVE):
        found["delete_record"] = True
    return found


def described(
    describe: Any, context: CallContext, rights: Rights, exposure: ModelExposure
) -> dict[str, Any] | None:
    try:
        with refusals_in_words():
            made: dict[str, Any] = describe(context, rights, exposure)
            return made
    except ToolError:
        return None
    except Exception:
        # Code of the site. The rest of the description holds.
        logger.exception("What can be set of %s cannot be told.", exposure.label)
        return None


def names_of(schemas: dict[str, Any] | None) -> Collection[str] | None:
    return None if schemas is None else schemas["values"]["properties"].keys()


def creation(context: CallContext, rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    form = RecordForm(context, rights, exposure, rights.model_admin(exposure.model))
    found = {"values": only(form_schema(form.form, rights=rights), form.names)}
    rows = {one.prefix: rows_schema(one, rights) for one in form.inlines if one.is_offered}
    return {**found, "inlines": rows} if rows else found


def change(context: CallContext, rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    """Of no record in particular, so a form that depends on the record may differ from it."""
    model_admin = rights.model_admin(exposure.model)
    request, _ = admin_request(
        context, rights, model_admin, path=path_of(model_admin, "changelist")
    )
    one_call, some = own_copy(model_admin), exposure.model()
    fields = flatten_fieldsets(one_call.get_fieldsets(request, some))
    form = one_call.get_form(request, some, change=True, fields=fields)(instance=some)
    names = settable(rights, exposure, open_names(form))
    return {"values": only(form_schema(form, rights=rights, partial=True), names)}


def rows_schema(inline: InlineForms, rights: Rights) -> Schema:
    schema = formset_schema(inline.formset, rights=rights)
    items = only(schema["items"], [*inline.names, "pk", "delete"])
    for way in items["anyOf"]:
        # A field that is withheld cannot be asked for.
        way["required"] = [name for name in way["required"] if name in items["properties"]]
    return {**schema, "items": items}


def only(schema: Schema, names: Collection[str]) -> Schema:
    kept = {name: one for name, one in schema["properties"].items() if name in names}
    found = {**schema, "properties": kept}
    required = [name for name in schema.get("required", ()) if name in kept]
    if required:
        found["required"] = required
    else:
        found.pop("required", None)
    return found

"""What a model can be asked: its fields, filters and orders, as far as this caller reaches."""

from __future__ import annotations

import json
from typing import Any

from mcp_django.exposure.guard import FILTER, ORDER, RETURN
from mcp_django.exposure.operators import OPERATORS, kind_of, target_of, transforms_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import SEARCH, Reach, reach_of
from mcp_django.exposure.serializers import Trimming, as_text

MAX_CHOICES = 100


def describe(rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    """The definition of a model for this caller, as JSON values. `example` is a working call."""
    reach = reach_of(rights, exposure)
    opts = exposure.model._meta
    filters = {path.names: path for path in reach.paths[FILTER]}
    orders = {path.names for path in reach.paths[ORDER]}
    shown = {path.names for path in reach.paths[RETURN]}
    fields = [
        {
            **about(rights, path),
            **conditions(filters.get(path.names)),
            "order": path.names in orders,
        }
        for path in reach.paths[RETURN]
    ]
    return {
        "name": exposure.label,
        "label": as_text(opts.verbose_name),
        "description": exposure.description,
        "primary_key": [part.name for part in reach.keys],
        "fields": fields,
        "filters": [
            {**about(rights, path), **conditions(path)}
            for names, path in filters.items()
            if names not in shown
        ],
        "search": reach.names(SEARCH),
        "default_order": list(reach.default_order) or [part.name for part in reach.keys],
        "example": example(reach),
    }


def about(rights: Rights, path: Path) -> dict[str, Any]:
    field = path.field
    found: dict[str, Any] = {"name": path.text, "type": type_of(path)}
    if field is None:
        found["label"] = as_text(path.hops[-1].model._meta.verbose_name_plural)
    else:
        found["label"] = as_text(field.verbose_name)
        found["null"] = path.is_nullable
        if field.help_text:
            found["help"] = as_text(field.help_text)
        if field.choices:
            found["choices"] = [
                {"value": Trimming(MAX_CHOICES, whole=True).json(key), "label": as_text(label)}
                for key, label in field.flatchoices[:MAX_CHOICES]
            ]
    target = path.hops[-1].model if field is None else field.related_model
    if target is not None and target in rights.registry.exposures and rights.may_view(target):
        found["relation"] = target._meta.label_lower
    return found


def type_of(path: Path) -> str:
    """The kind of the values; what a key holds is the kind of the key that it points to."""
    field = path.hops[-1].model._meta.pk if path.field is None else path.field
    kind = kind_of(target_of(field))
    if kind == "other":
        return str(field.get_internal_type()).removesuffix("Field").lower()
    return kind


def conditions(path: Path | None) -> dict[str, list[str]]:
    kind = None if path is None else kind_of(path.field)
    if kind is None:
        return {"operators": [], "transforms": []}
    return {"operators": list(OPERATORS[kind]), "transforms": list(transforms_of(kind))}


def example(reach: Reach) -> str:
    """A call of find_records with what there is."""
    call: dict[str, Any] = {"model": reach.exposure.label}
    if reach.paths[FILTER]:
        call["filters"] = {f"{reach.names(FILTER)[0]}__isnull": False}
    if reach.paths[ORDER]:
        call["order_by"] = [f"-{reach.names(ORDER)[0]}"]
    call["limit"] = 5
    return json.dumps(call)

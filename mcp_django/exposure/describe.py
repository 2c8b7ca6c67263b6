"""What a model can be asked: its fields, filters and orders, as far as this caller reaches."""

from __future__ import annotations

from typing import Any

from django.db.models import FileField

from mcp_django.exposure.declarations import SEARCH
from mcp_django.exposure.guard import FILTER, ORDER, RETURN
from mcp_django.exposure.operators import OPERATORS, kind_of, target_of, transforms_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.serializers import Trimming, as_text

MAX_CHOICES = 100


def describe(rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    """The definition of a model for this caller, as JSON values. `example` is a working call.

    What is empty, false or the usual is left out: models pay for every character.
    """
    reach = reach_of(rights, exposure)
    opts = exposure.model._meta
    filters = {path.names: path for path in reach.paths[FILTER]}
    orders = {path.names for path in reach.paths[ORDER]}
    shown = {path.names for path in reach.paths[RETURN]}
    fields = []
    for path in reach.paths[RETURN]:
        field = about(rights, path)
        if path.names in filters:
            field["filter"] = kind_of(path.field)
        if path.names in orders:
            field["order"] = True
        fields.append(field)
    others = [
        {**about(rights, path), "filter": kind_of(path.field)}
        for names, path in filters.items()
        if names not in shown
    ]
    kinds = {kind_of(path.field) for path in filters.values()}
    found: dict[str, Any] = {
        "name": exposure.label,
        "label": as_text(opts.verbose_name),
        "description": exposure.description,
        "primary_key": [part.name for part in reach.keys],
        "fields": fields,
        "more_filters": others,
        "operators": {kind: operators(kind) for kind in sorted(kinds)},
        "search": reach.names(SEARCH),
        "default_order": list(reach.default_order) or [part.name for part in reach.keys],
        "example": {"tool": "find_records", "arguments": example(reach)},
    }
    return {name: value for name, value in found.items() if value}


def about(rights: Rights, path: Path) -> dict[str, Any]:
    field = path.field
    found: dict[str, Any] = {"name": path.text, "type": type_of(path)}
    if field is None:
        found["label"] = as_text(path.hops[-1].model._meta.verbose_name_plural)
    else:
        hops = [as_text(hop.field.verbose_name) for hop in path.hops if hop.field.concrete]
        found["label"] = " ".join([*hops, as_text(field.verbose_name)])
        if path.is_nullable:
            found["null"] = True
        if isinstance(field, FileField) and not path.hops:
            found["content"] = f"django://files/{path.model._meta.label_lower}/{{pk}}/{field.name}"
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


def operators(kind: str) -> list[str]:
    """What may follow a path of this kind after `__`; a part of a date takes another operator."""
    return [*OPERATORS[kind], *transforms_of(kind)]


def example(reach: Reach) -> dict[str, Any]:
    """Arguments of find_records that work, with what there is."""
    call: dict[str, Any] = {"model": reach.exposure.label}
    if reach.paths[FILTER]:
        lookups = [example_lookup(path) for path in reach.paths[FILTER]]
        # The most telling one: a choice, then a text, and what any path has at the last.
        call["filters"] = min(lookups, key=lambda one: one[0])[1]
    if reach.paths[ORDER]:
        call["order_by"] = [f"-{reach.names(ORDER)[0]}"]
    call["limit"] = 5
    return call


def example_lookup(path: Path) -> tuple[int, dict[str, Any]]:
    """A filter on one path, and how little it teaches."""
    kind = kind_of(path.field)
    if kind == "text" and path.field is not None and path.field.choices:
        return 0, {path.text: path.field.flatchoices[0][0]}
    if kind == "text":
        return 1 + len(path.hops), {f"{path.text}__icontains": "a"}
    return 9, {f"{path.text}__isnull": False}

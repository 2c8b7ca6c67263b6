"""Exposures on a ModelAdmin: `mcp_expose mcp_fields mcp_exclude_fields mcp_actions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model

from mcp_django.exposure.admin_sites import admin_sites
from mcp_django.exposure.options import ModelExposure, WaitingExposure, looks_secret


def exposures_of_admins() -> dict[type[Model], type[ModelExposure]]:
    """An exposure for each ModelAdmin. The first site with `mcp_expose = True` wins, else the
    first that has the model; it waits for staff then."""
    found: dict[type[Model], type[ModelExposure]] = {}
    for site in admin_sites():
        for model, model_admin in site._registry.items():
            is_offered = bool(getattr(model_admin, "mcp_expose", False))
            is_better = model not in found or (
                is_offered and issubclass(found[model], WaitingExposure)
            )
            # Some packages register classes that are no models.
            if is_better and issubclass(model, Model):
                base = ModelExposure if is_offered else WaitingExposure
                made = exposure_of(model_admin, base=base)
                if made.fields:
                    found[model] = made
    return found


def exposure_of(
    model_admin: ModelAdmin[Any], *, base: type[ModelExposure] = ModelExposure
) -> type[ModelExposure]:
    model = model_admin.model
    named = getattr(model_admin, "mcp_fields", None)
    fields = list(named) if named is not None else list(readable_fields(model_admin))
    hidden = set(getattr(model_admin, "mcp_exclude_fields", ()))
    filters = [path for path in filter_paths(model_admin) if is_open(model, path)]
    search = [path for path in model_admin.search_fields if is_open(model, path.lstrip("^=@"))]
    attributes = {
        "fields": tuple(name for name in fields if name not in hidden),
        # It knows every spelling of a path, and what lies behind it.
        "exclude": tuple(hidden),
        "filter_fields": tuple(
            dict.fromkeys(
                path for path in [*fields, *filters] if path.split("__")[0] not in hidden
            )
        ),
        "search_fields": tuple(
            path for path in search if path.lstrip("^=@").split("__")[0] not in hidden
        ),
        "ordering": tuple(name for name in model_admin.ordering or () if isinstance(name, str)),
        "actions": tuple(getattr(model_admin, "mcp_actions", ())),
        "__module__": type(model_admin).__module__,
    }
    return type(f"{type(model_admin).__name__}Exposure", (base,), attributes)


def readable_fields(model_admin: ModelAdmin[Any]) -> Iterator[str]:
    """The key and the columns that the admin's list and form show, but none that looks secret."""
    model = model_admin.model
    names: Iterable[Any] = (
        *(part.name for part in model._meta.pk_fields),
        *model_admin.list_display,
        *form_fields(model_admin),
        *model_admin.readonly_fields,
    )
    for name in dict.fromkeys(name for name in names if isinstance(name, str)):
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            continue
        if field.concrete and not field.many_to_many and not looks_secret(model, name):
            yield name


def form_fields(model_admin: ModelAdmin[Any]) -> list[Any]:
    if model_admin.fieldsets:
        return list(flatten_fieldsets(model_admin.fieldsets))
    if model_admin.fields:
        return [
            name
            for row in model_admin.fields
            for name in (row if isinstance(row, list | tuple) else [row])
        ]
    left_out = set(model_admin.exclude or ())
    return [
        field.name
        for field in model_admin.model._meta.concrete_fields
        if field.editable and field.name not in left_out
    ]


def filter_paths(model_admin: ModelAdmin[Any]) -> Iterator[str]:
    for item in model_admin.list_filter:
        path = item[0] if isinstance(item, list | tuple) else item
        if isinstance(path, str):
            yield path


def is_open(model: type[Model], path: str) -> bool:
    """Whether a path exists and no part of it looks secret."""
    current: Any = model
    for name in path.split("__"):
        if current is None:
            return False
        try:
            field = current._meta.get_field(current._meta.pk.name if name == "pk" else name)
        except FieldDoesNotExist:
            return False
        if looks_secret(current, field.name):
            return False
        current = field.related_model if field.is_relation else None
    return True

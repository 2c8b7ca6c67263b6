"""Texts that stand for records: the columns of `label_fields`, never `str()` of an object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Model, Q

from mcp_django.exposure.budget import limited
from mcp_django.exposure.declarations import declaration_of
from mcp_django.exposure.find import objects_of
from mcp_django.exposure.guard import RETURN
from mcp_django.exposure.paths import key_parts
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.records import label
from mcp_django.exposure.relations import policy_of
from mcp_django.exposure.rows import guarded, settled
from mcp_django.levels import Level


def shows_records(rights: Rights, model: type[Model]) -> bool:
    """Whether records of a model are shown to this caller at all."""
    return rights.level(model) >= Level.READ


def shows_column(rights: Rights, model: type[Model], name: str) -> bool:
    """Whether records show this caller a column. Keys are shown with every record."""
    return name in ("pk", *(part.name for part in key_parts(model))) or (
        shows_records(rights, model)
        and name in reach_of(rights, rights.exposed.exposures[model]).tables[RETURN]
    )


def visible_labels(rights: Rights, model: type[Model], keys: Iterable[Any]) -> dict[Any, str]:
    """The labels of those records, out of these, that this caller may see, by primary key.

    Empty texts where the exposure names no label, or one that this caller may not see.
    """
    wanted = list(keys)
    if not wanted or not shows_records(rights, model):
        return {}
    (key,) = key_parts(model)
    columns = [one.attname for one in label_fields(rights, model)]
    rows = settled(guarded(rights.rows(model), policy_of(model, [key.attname, *columns])))
    # Each once: Django 5.2.0 forgets a column that is named twice.
    names = list(dict.fromkeys([key.attname, *columns]))
    places = [names.index(column) for column in columns]
    with limited(rows.db):
        found = rows.filter(Q((f"{key.attname}__in", wanted))).values_list(*names)
        labels = {row[0]: label([row[place] for place in places]) for row in found}
    return judged(rights, model, labels) if rights.judges_objects(model) else labels


def judged(rights: Rights, model: type[Model], labels: dict[Any, str]) -> dict[Any, str]:
    """Those that `has_view_permission(request, obj)` leaves."""
    base = settled(rights.rows(model))
    with limited(base.db):
        objects = objects_of(base, [(one,) for one in labels])
    kept = {one.pk for one in objects if rights.may_view_object(model, one)}
    return {one: text for one, text in labels.items() if one in kept}


def label_fields(rights: Rights, model: type[Model]) -> list[Any]:
    """The columns of the label, if this caller may see all of them."""
    found = [path.field for path in declaration_of(rights.exposed.exposures[model]).labels]
    shown = rights.shown(model)
    is_hidden = shown is not None and any(field.name not in shown for field in found)
    return [] if is_hidden else found

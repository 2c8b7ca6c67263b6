"""What describe_model says of a model: fields, filters and orders that this caller may use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db.models import FileField

from mcp_django.exposure.fields import choices_of, kind_of, operators_of, target_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import (
    FILTER,
    GROUP,
    MAX_HOPS,
    METRIC,
    ORDER,
    RETURN,
    SEARCH,
    Path,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import aggregates
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths
from mcp_django.exposure.query.aggregates import COUNTS, PARTS, floor_of, measured
from mcp_django.exposure.query.paths_by_rule import Rule
from mcp_django.exposure.query.serializers import Trimming, as_text

MAX_CHOICES = 100
#: Where paths of each use are listed.
LISTS = {"fields": (RETURN,), "more_filters": (FILTER,), "more_aggregates": (GROUP, METRIC)}
#: The rule, said once.
PATHS = (
    f"A relation, __ and a field of its model make a path, with at most {MAX_HOPS} relations. It "
    "can be used like the field. Behind many_relations: in filters only."
)


def describe(rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    """The definition of a model for this caller, as JSON values. `example` is a working call.

    What is empty, false or the usual is left out: models pay for every character.
    """
    access = allowed_paths(rights, exposure)
    found: dict[str, Any] = {
        "name": exposure.label,
        "label": as_text(exposure.model._meta.verbose_name),
        "description": exposure.description,
    }
    if exposure.is_definition_only:
        found["definition_only"] = True
        found["fields"] = [about(rights, path) for path in access.paths[RETURN]]
    else:
        found |= describe_use(rights, access)
    return {name: value for name, value in found.items() if value}


def describe_use(rights: Rights, access: AccessiblePaths) -> dict[str, Any]:
    """What find_records and aggregate_records take."""
    exposure, key = access.exposure, [part.name for part in access.keys]
    groups = [] if rights.checks_rows_one_by_one(exposure.model) else access.paths[GROUP]
    return {
        "aggregates_only": exposure.aggregates_only,
        "smallest_group": floor_of(exposure),
        "primary_key": key,
        **entries(rights, access),
        **relations(rights, access),
        "operators": by_kind(access.paths[FILTER], operators_of),
        "buckets": by_kind(groups, lambda kind: list(PARTS.get(kind, ()))),
        "search": access.names(SEARCH),
        "default_order": [] if exposure.aggregates_only else list(access.default_order) or key,
        "example": example_call(access),
    }


def relations(rights: Rights, access: AccessiblePaths) -> dict[str, Any]:
    """The relations that may be followed, with the models that they lead to, and how."""
    steps = Rule(rights, access).relations
    labels = {name: step.hop.model._meta.label_lower for name, step in steps.items()}
    many = {name: label for name, label in labels.items() if steps[name].hop.is_many}
    return {
        "relations": {name: label for name, label in labels.items() if name not in many},
        "many_relations": many,
        "paths": PATHS if steps else "",
    }


def uses_of(rights: Rights, access: AccessiblePaths) -> Mapping[tuple[str, ...], dict[str, Any]]:
    """What each path can be used for besides being shown, by the names of its fields."""
    found: dict[tuple[str, ...], dict[str, Any]] = defaultdict(dict)
    for path in access.paths[FILTER]:
        found[path.names]["filter"] = kind_of(path.field)
    if not access.exposure.aggregates_only:
        for path in access.paths[ORDER]:
            found[path.names]["order"] = True
    if rights.checks_rows_one_by_one(access.model):
        return found
    for path in access.paths[GROUP]:
        found[path.names]["group"] = True
    for path, functions in measured(access):
        # What makes groups can be counted: that need not be said each time.
        left = [one for one in functions if one not in COUNTS or "group" not in found[path.names]]
        if left:
            found[path.names]["metric"] = left
    return found


def entries(rights: Rights, access: AccessiblePaths) -> dict[str, list[dict[str, Any]]]:
    """Each path once: among those that records show, else those that filter, else the rest."""
    uses = uses_of(rights, access)
    seen: set[tuple[str, ...]] = set()
    found = {}
    for name, kinds in LISTS.items():
        paths = {path.names: path for kind in kinds for path in access.paths[kind]}
        found[name] = [
            {**about(rights, path), **uses.get(names, {})}
            for names, path in paths.items()
            if names not in seen and (names in uses or names in access.shown)
        ]
        seen |= paths.keys()
    return found


def by_kind(paths: Iterable[Path], names_of: Callable[[str], list[str]]) -> dict[str, list[str]]:
    kinds = sorted({kind_of(path.field) for path in paths})
    return {kind: names for kind in kinds if (names := names_of(kind))}


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
        is_shown = not rights.exposed.exposures[path.model].aggregates_only
        if isinstance(field, FileField) and not path.hops and is_shown:
            found["content"] = f"django://files/{path.model._meta.label_lower}/{{pk}}/{field.name}"
        if field.help_text:
            found["help"] = as_text(field.help_text)
        if choices := choices_of(field):
            found["choices"] = [
                {"value": Trimming(MAX_CHOICES, whole=True).json(key), "label": as_text(label)}
                for key, label in choices[:MAX_CHOICES]
            ]
    target = path.hops[-1].model if field is None else field.related_model
    if target is not None and target in rights.exposed.exposures and rights.may_view(target):
        found["relation"] = target._meta.label_lower
    return found


def type_of(path: Path) -> str:
    """The kind of the values; what a key holds is the kind of the key that it points to."""
    field = path.hops[-1].model._meta.pk if path.field is None else path.field
    kind = kind_of(target_of(field))
    if kind == "other":
        return str(field.get_internal_type()).removesuffix("Field").lower()
    return kind


def example_call(access: AccessiblePaths) -> dict[str, Any]:
    if not access.exposure.aggregates_only:
        return {"tool": "find_records", "arguments": example(access)}
    found = aggregates.examples(access, is_grouped=True)
    return {"tool": "aggregate_records", "arguments": {"model": access.exposure.label, **found}}


def example(access: AccessiblePaths) -> dict[str, Any]:
    """Arguments of find_records that work, with what there is."""
    call: dict[str, Any] = {"model": access.exposure.label}
    if access.paths[FILTER]:
        lookups = [example_lookup(path) for path in access.paths[FILTER]]
        # The most telling one: a choice, then a text, and what any path has at the last.
        call["filters"] = min(lookups, key=lambda one: one[0])[1]
    if access.paths[ORDER]:
        call["order_by"] = [f"-{access.names(ORDER)[0]}"]
    call["limit"] = 5
    return call


def example_lookup(path: Path) -> tuple[int, dict[str, Any]]:
    """A filter on one path, and how little it teaches."""
    kind = kind_of(path.field)
    if kind == "text" and path.field is not None and (choices := choices_of(path.field)):
        return 0, {path.text: choices[0][0]}
    if kind == "text":
        return 1 + len(path.hops), {f"{path.text}__icontains": "a"}
    return 9, {f"{path.text}__isnull": False}

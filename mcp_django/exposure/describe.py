"""What a model can be asked: its fields, filters and orders, as far as this caller reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from django.db.models import FileField

from mcp_django.exposure import aggregates
from mcp_django.exposure.declarations import SEARCH
from mcp_django.exposure.groups import PARTS
from mcp_django.exposure.guard import FILTER, GROUP, METRIC, ORDER, RETURN
from mcp_django.exposure.metrics import COUNTS, floor_of, measured
from mcp_django.exposure.operators import OPERATORS, kind_of, target_of, transforms_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.serializers import Trimming, as_text

MAX_CHOICES = 100
#: Where paths of each use are listed.
LISTS = {"fields": (RETURN,), "more_filters": (FILTER,), "more_aggregates": (GROUP, METRIC)}


def describe(rights: Rights, exposure: ModelExposure) -> dict[str, Any]:
    """The definition of a model for this caller, as JSON values. `example` is a working call.

    What is empty, false or the usual is left out: models pay for every character.
    """
    reach = reach_of(rights, exposure)
    if exposure.is_definition_only:
        return describe_alone(rights, reach)
    opts = exposure.model._meta
    uses = uses_of(rights, reach)
    listed = dict(entries(rights, reach, uses))
    groups = [] if rights.judges_objects(exposure.model) else reach.paths[GROUP]
    found: dict[str, Any] = {
        "name": exposure.label,
        "label": as_text(opts.verbose_name),
        "description": exposure.description,
        "aggregates_only": exposure.aggregates_only,
        "smallest_group": floor_of(exposure),
        "primary_key": [part.name for part in reach.keys],
        **listed,
        "operators": by_kind(reach.paths[FILTER], operators),
        "buckets": by_kind(groups, lambda kind: list(PARTS.get(kind, ()))),
        "search": reach.names(SEARCH),
        "default_order": list(reach.default_order) or [part.name for part in reach.keys],
        "example": example_call(reach),
    }
    if exposure.aggregates_only:
        del found["default_order"]
    return {name: value for name, value in found.items() if value}


def describe_alone(rights: Rights, reach: Reach) -> dict[str, Any]:
    """The definition of a model of which there is nothing else."""
    exposure = reach.exposure
    found: dict[str, Any] = {
        "name": exposure.label,
        "label": as_text(exposure.model._meta.verbose_name),
        "description": exposure.description,
        "definition_only": True,
        "fields": [about(rights, path) for path in reach.paths[RETURN]],
    }
    return {name: value for name, value in found.items() if value}


Uses: TypeAlias = Mapping[tuple[str, ...], dict[str, Any]]


def uses_of(rights: Rights, reach: Reach) -> Uses:
    """What each path is good for beside being shown, by the names of its fields."""
    found: dict[tuple[str, ...], dict[str, Any]] = defaultdict(dict)
    for path in reach.paths[FILTER]:
        found[path.names]["filter"] = kind_of(path.field)
    if not reach.exposure.aggregates_only:
        for path in reach.paths[ORDER]:
            found[path.names]["order"] = True
    if rights.judges_objects(reach.model):
        return found
    for path in reach.paths[GROUP]:
        found[path.names]["group"] = True
    for path, functions in measured(reach):
        # What makes groups can be counted: that need not be said each time.
        left = [one for one in functions if one not in COUNTS or "group" not in found[path.names]]
        if left:
            found[path.names]["metric"] = left
    return found


def entries(
    rights: Rights, reach: Reach, uses: Uses
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each path once: among those that records show, else those that filter, else the rest."""
    seen: set[tuple[str, ...]] = set()
    for name, kinds in LISTS.items():
        paths = {path.names: path for kind in kinds for path in reach.paths[kind]}
        yield (
            name,
            [
                {**about(rights, path), **uses.get(names, {})}
                for names, path in paths.items()
                if names not in seen and (names in uses or names in reach.shown)
            ],
        )
        seen |= paths.keys()


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
        if field.choices:
            found["choices"] = [
                {"value": Trimming(MAX_CHOICES, whole=True).json(key), "label": as_text(label)}
                for key, label in field.flatchoices[:MAX_CHOICES]
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


def operators(kind: str) -> list[str]:
    """What may follow a path of this kind after `__`; a part of a date takes another operator."""
    return [*OPERATORS[kind], *transforms_of(kind)]


def example_call(reach: Reach) -> dict[str, Any]:
    if not reach.exposure.aggregates_only:
        return {"tool": "find_records", "arguments": example(reach)}
    found = aggregates.examples(reach, is_grouped=True)
    return {"tool": "aggregate_records", "arguments": {"model": reach.exposure.label, **found}}


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

"""What describe_model says of a model: fields, filters and orders that this caller may use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db.models import FileField

from mcp_django.exposure.fields import MEASURES, choices_of, kind_of, operators_of, target_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import (
    COUNT_RELATED,
    FILTER,
    GROUP,
    INCLUDE,
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
from mcp_django.exposure.query.computed import described_columns
from mcp_django.exposure.query.paths_by_rule import RelationStep, Rule
from mcp_django.exposure.query.serializers import Trimming, as_text
from mcp_django.templating.fences import FENCES

MAX_CHOICES = 100
#: Where paths of each use are listed.
LISTS = {"fields": (RETURN,), "more_filters": (FILTER,), "more_aggregates": (GROUP, METRIC)}
#: The rule, said once.
PATHS = (
    f"A relation, __ and a field of its model make a path, with at most {MAX_HOPS} relations. It "
    "can be used like the field. Behind many_relations: in filters only."
)
#: What else many_relations are good for. A name, so that the example can be copied.
COUNTS_OF_RELATED = (
    ' A metric can count {names}, also at the end of a path: {{"count": "{example}"}}.'
)
#: The exception, where there is one.
NO_PATHS = " Those of only_in_include make no path."


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
        found["fields"] = [about(rights, access, path) for path in access.columns]
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
        "computed": described_columns(rights, exposure),
        **relations(rights, access),
        "fences": FENCES if any(map(access.is_untrusted, access.columns)) else "",
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
    only_in_include = [name for name in many if FILTER not in steps[name].uses]
    paths = PATHS + counts_of_related(rights, access, steps) + NO_PATHS * bool(only_in_include)
    return {
        "relations": {name: label for name, label in labels.items() if name not in many},
        "many_relations": many,
        "only_in_include": only_in_include,
        "only_in_filters": [name for name in many if INCLUDE not in steps[name].uses],
        "paths": paths if steps else "",
    }


def counts_of_related(
    rights: Rights, access: AccessiblePaths, steps: Mapping[str, RelationStep]
) -> str:
    """Which relations of the model a metric counts."""
    if rights.checks_rows_one_by_one(access.model):
        return ""
    many = {name: step for name, step in steps.items() if step.hop.is_many}
    filters = [name for name, step in many.items() if FILTER in step.uses]
    counted = [name for name in filters if is_countable(rights, many[name])]
    if not counted:
        return ""
    names = "them" if counted == filters else ", ".join(counted)
    return COUNTS_OF_RELATED.format(names=names, example=counted[0])


def is_countable(rights: Rights, step: RelationStep) -> bool:
    exposures = [rights.exposed.exposures[model] for model in step.hop.models]
    return COUNT_RELATED in step.uses and not any(one.smallest_group for one in exposures)


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
        listed = {kind: access.columns if kind == RETURN else access.paths[kind] for kind in kinds}
        paths = {path.names: path for kind in kinds for path in listed[kind]}
        found[name] = [
            {**about(rights, access, path), **uses.get(names, {})}
            for names, path in paths.items()
            if names not in seen
            and (names in uses or names in access.shown or path in access.masks)
        ]
        seen |= paths.keys()
    return found


def by_kind(paths: Iterable[Path], names_of: Callable[[str], list[str]]) -> dict[str, list[str]]:
    kinds = sorted({kind_of(path.field) for path in paths})
    return {kind: names for kind in kinds if (names := names_of(kind))}


def about(rights: Rights, access: AccessiblePaths, path: Path) -> dict[str, Any]:
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
    if path in access.masks:
        found["masked"] = access.masks[path]
    elif access.is_untrusted(path):
        found["untrusted"] = True
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
    return {"tool": "aggregate_records", "arguments": aggregates.examples(access)}


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


# The same in few words: what most fields have in common is said once, the rest field by field.

#: In words, by how a description marks it.
USES = {"filter": "filtered", "order": "ordered", "group": "grouped"}
#: What values can be measured by unless a field says otherwise. Texts: by nothing.
MEASURED = {kind: list(names) for kind, names in MEASURES.items() if kind != "text"}


def compacted(described: Mapping[str, Any]) -> dict[str, Any]:
    """The same description, as `describe` made it, with `uses` for what holds of all fields."""
    found = dict(described)
    # Any model knows Django's lookups, and a refusal lists those that there are.
    found.pop("operators", None)
    found.pop("buckets", None)
    if is_said_by(found.get("label"), found["name"].partition(".")[2]):
        found.pop("label", None)
    if found.get("default_order") == found.get("primary_key"):
        found.pop("default_order", None)
    if found.get("primary_key") == ["id"]:
        found.pop("primary_key")
    fields, relations = found.get("fields", []), found.get("relations", {})
    uses = [use for use in USES if any(use in one for one in fields)]
    for kind in ("fields", "more_aggregates"):
        if kind in found:
            found[kind] = [brief_field(one, uses, relations) for one in found[kind]]
    if "more_filters" in found:
        found["more_filters"] = [one["name"] for one in found["more_filters"]]
    if "writing" in found:
        known = {one["name"]: one for one in fields}
        found["writing"] = brief_writing(found["writing"], known)
    return {"name": found.pop("name"), "uses": sentence_of(uses), **found} if uses else found


def sentence_of(uses: Iterable[str]) -> str:
    words = [USES[use] for use in uses]
    first = ", ".join(words[:-1])
    joined = f"{first} and {words[-1]}" if first else words[-1]
    measures = ""
    if "group" in uses:
        measures = " Numbers have sum, avg, min and max, dates and times min and max."
    return f"Fields can be {joined} by, unless `not` names it.{measures}"


def brief_field(
    one: Mapping[str, Any], uses: Iterable[str], relations: Mapping[str, str]
) -> dict[str, Any]:
    name, kind = one["name"], one["type"]
    found: dict[str, Any] = {"name": name, "type": kind}
    if not is_said_by(one.get("label"), name):
        found["label"] = one["label"]
    if one.get("filter") == "key":
        found["type"] = "key"
    elif "filter" in one and one["filter"] != kind:
        found["filter"] = one["filter"]
    if "relation" in one and relations.get(name) != one["relation"]:
        found["relation"] = one["relation"]
    if "choices" in one:
        found["choices"] = brief_choices(one["choices"])
    found |= {
        key: one[key] for key in ("null", "masked", "untrusted", "content", "help") if key in one
    }
    if missing := [use for use in uses if use not in one]:
        found["not"] = missing
    usual = MEASURED.get(kind, []) if one.get("filter") != "key" else []
    if one.get("metric", []) != usual and "group" in uses:
        found["metric"] = one.get("metric", [])
    return found


def brief_choices(choices: Iterable[Mapping[str, Any]]) -> Any:
    """Values alone where they say what their labels say, and an object where they are texts."""
    values = [one["value"] for one in choices]
    if all(is_said_by(one["label"], one["value"]) for one in choices):
        return values
    if all(isinstance(value, str) for value in values):
        return {one["value"]: one["label"] for one in choices}
    return list(choices)


def brief_writing(writing: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """What can be set, without what the fields say already."""
    found = dict(writing)
    for tool in ("create_record", "update_record"):
        schemas = found.get(tool)
        if not isinstance(schemas, dict):
            continue
        values = schemas.get("values")
        if isinstance(values, dict) and "properties" in values:
            properties = {
                name: brief_schema(schema, known.get(name, {}))
                for name, schema in values["properties"].items()
            }
            kept = {"required": values["required"]} if values.get("required") else {}
            found[tool] = {**schemas, "values": {"properties": properties, **kept}}
    return found


def brief_schema(schema: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of one value, without what the field says already."""
    found = dict(schema)
    if is_said_by(found.get("title"), one.get("label", "")):
        found.pop("title", None)
    if "help" in one and found.get("description") == one["help"]:
        del found["description"]
    values = [choice["value"] for choice in one.get("choices", ())]
    if values and [choice.get("const") for choice in found.get("oneOf", ())] == values:
        del found["oneOf"]
        found.pop("type", None)
    return found


def is_said_by(label: Any, name: Any) -> bool:
    """Whether a label has no other words than a name."""
    if not (isinstance(label, str) and isinstance(name, str)):
        return label is None
    return words_of(label) == words_of(name)


def words_of(text: str) -> list[str]:
    return text.replace("_", " ").casefold().split()

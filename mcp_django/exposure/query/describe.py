"""What describe_model says of a model: fields, filters and orders that this caller may use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp_django.exposure.fields import MEASURES, choices_of, kind_of, target_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import (
    COUNT_RELATED,
    FILTER,
    GROUP,
    INCLUDE,
    MAX_HOPS,
    METRIC,
    ORDER,
    SEARCH,
    Path,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import aggregates
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths, filtered_kind
from mcp_django.exposure.query.aggregates import COUNTS, floor_of, measured
from mcp_django.exposure.query.computed import computed_columns, orderable_path
from mcp_django.exposure.query.paths_by_rule import RelationStep, Rule
from mcp_django.exposure.query.serializers import Trimming, as_text, plain_text
from mcp_django.templating.fences import FENCES

MAX_CHOICES = 100
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


def describe(
    rights: Rights, exposure: ModelExposure, *, writing: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the definition of a model for this caller, as JSON values. `example` is a working
    call, and `writing` what can be set, by tool.

    What is empty, false or the usual is left out: models pay for every character.
    """
    access = allowed_paths(rights, exposure)
    label = as_text(exposure.model._meta.verbose_name)
    entries = Entries(rights, access)
    fields = [entries.entry(path) for path in entries.columns]
    definition: dict[str, Any] = {
        "name": exposure.label,
        "uses": sentence_of(entries.common),
        "label": "" if has_words_of(label, exposure.label.partition(".")[2]) else label,
        "description": exposure.description,
    }
    if exposure.is_definition_only:
        definition |= {"definition_only": True, "fields": fields}
    else:
        key, order = [part.name for part in access.keys], list(access.default_order)
        tool = "aggregate_records" if exposure.aggregates_only else "find_records"
        arguments = (aggregates.examples if exposure.aggregates_only else example)(access)
        computed = computed_columns(rights, exposure).values()
        has_fences = (computed and rights.exposed.untrusted) or any(
            map(access.is_untrusted, access.columns)
        )
        definition |= {
            "aggregates_only": exposure.aggregates_only,
            "smallest_group": floor_of(exposure),
            "primary_key": [] if key == ["id"] else key,
            "fields": fields,
            "more_filters": [path.text for path in entries.filters],
            "more_aggregates": [entries.entry(path) for path in entries.numbers],
            "computed": [
                {"name": one.name, "label": plain_text(one.label)}
                | ({"order": True} if orderable_path(rights, exposure, one) else {})
                for one in computed
            ],
            **entries.relations,
            "fences": FENCES if has_fences else "",
            "search": access.names(SEARCH),
            "default_order": [] if exposure.aggregates_only or order == key else order,
            "example": {"tool": tool, "arguments": arguments},
        }
    definition["writing"] = brief_writing(writing or {}, {one["name"]: one for one in fields})
    return {name: value for name, value in definition.items() if value}


class Entries:
    """Describe the paths of a model by what neither their names nor `common` say of each."""

    def __init__(self, rights: Rights, access: AccessiblePaths) -> None:
        self.rights = rights
        self.access = access
        #: What each path can be used for besides being shown, by the names of its fields.
        self.uses: defaultdict[tuple[str, ...], dict[str, Any]] = defaultdict(dict)
        self.relations: dict[str, Any] = {}
        self.columns, self.filters, self.numbers = [*access.columns], list[Path](), list[Path]()
        if not access.exposure.is_definition_only:
            self._add_uses()
            self.relations = self._relations()
            # Each path once: among those that records show, else those that filter, else the rest.
            seen: set[tuple[str, ...]] = set()
            self.columns = self._new(access.columns, seen)
            self.filters = self._new(access.paths[FILTER], seen)
            self.numbers = self._new((*access.paths[GROUP], *access.paths[METRIC]), seen)
        #: What fields can be used for: all of them, but for those whose entry says that not.
        self.common = [
            use for use in USES if any(use in self.uses.get(one.names, {}) for one in self.columns)
        ]

    def _add_uses(self) -> None:
        access = self.access
        for path in access.paths[FILTER]:
            self.uses[path.names]["filter"] = filtered_kind(access, path)
        if not access.exposure.aggregates_only:
            for path in access.paths[ORDER]:
                self.uses[path.names]["order"] = True
        if self.rights.checks_rows_one_by_one(access.model):
            return
        for path in access.paths[GROUP]:
            self.uses[path.names]["group"] = True
        for path, functions in measured(access):
            # What makes groups can be counted: that need not be said each time.
            uses = self.uses[path.names]
            if left := [one for one in functions if one not in COUNTS or "group" not in uses]:
                uses["metric"] = left

    def _relations(self) -> dict[str, Any]:
        """The relations that may be followed, with the models that they lead to, and how."""
        steps = Rule(self.rights, self.access).relations
        labels = {name: step.hop.model._meta.label_lower for name, step in steps.items()}
        many = {name: label for name, label in labels.items() if steps[name].hop.is_many}
        filters = [name for name in many if FILTER in steps[name].uses]
        only_in_include = [name for name in many if name not in filters]
        counts = self._counts_of_related({name: steps[name] for name in filters})
        return {
            "relations": {name: label for name, label in labels.items() if name not in many},
            "many_relations": many,
            "only_in_include": only_in_include,
            "only_in_filters": [name for name in many if INCLUDE not in steps[name].uses],
            "paths": f"{PATHS}{counts}{NO_PATHS * bool(only_in_include)}" if steps else "",
        }

    def _counts_of_related(self, filters: Mapping[str, RelationStep]) -> str:
        """Which relations to many, among those that filters take, a metric counts."""
        exposures = self.rights.exposed.exposures
        counted = [
            name
            for name, step in filters.items()
            if COUNT_RELATED in step.uses
            and not any(exposures[model].smallest_group for model in step.hop.models)
        ]
        if not counted or self.rights.checks_rows_one_by_one(self.access.model):
            return ""
        names = "them" if len(counted) == len(filters) else ", ".join(counted)
        return COUNTS_OF_RELATED.format(names=names, example=counted[0])

    def _new(self, paths: Iterable[Path], seen: set[tuple[str, ...]]) -> list[Path]:
        """Return the paths that can be used and are not in `seen`, to which they are added."""
        access, new = self.access, {one.names: one for one in paths if one.names not in seen}
        seen.update(new)
        return [
            path
            for names, path in new.items()
            if names in self.uses or names in access.shown or path in access.masks
        ]

    def entry(self, path: Path) -> dict[str, Any]:
        access, kind, uses = self.access, type_of(path), self.uses.get(path.names, {})
        label, kind_of_filter = label_of(path), uses.get("filter", kind)
        # The model that the values are keys of, unless `relations` says it.
        model = path.hops[-1].model if path.field is None else path.field.related_model
        is_there = model in self.rights.exposed.exposures and self.rights.may_view(model)
        to = model._meta.label_lower if is_there else ""
        is_key, is_masked = kind_of_filter == "key", path in access.masks
        is_file = path.field in access.files and not path.hops
        is_read = is_file and not access.exposure.aggregates_only
        entry = {
            "name": path.text,
            "type": "key" if is_key else kind,
            "label": "" if has_words_of(label, path.text) else label,
            "filter": "" if kind_of_filter in ("key", kind) else kind_of_filter,
            "relation": "" if self.relations.get("relations", {}).get(path.text) == to else to,
            "choices": brief_choices(path.field),
            "null": path.field is not None and path.is_nullable,
            "masked": access.masks.get(path),
            "untrusted": not is_masked and access.is_untrusted(path),
            "content": f"django://files/{access.exposure.label}/{{pk}}/{path.text}" * is_read,
            "help": as_text(getattr(path.field, "help_text", "")),
            "not": [use for use in self.common if use not in uses],
        }
        entry = {name: value for name, value in entry.items() if value}
        metric, usual = uses.get("metric", []), [] if is_key else MEASURED.get(kind, [])
        return {**entry, "metric": metric} if "group" in self.common and metric != usual else entry


def label_of(path: Path) -> str:
    if path.field is None:
        return as_text(path.hops[-1].model._meta.verbose_name_plural)
    fields = [*(hop.field for hop in path.hops if hop.field.concrete), path.field]
    return " ".join(as_text(field.verbose_name) for field in fields)


def brief_choices(field: Any) -> Any:
    """Return values alone where they say what their labels say, an object where they are texts."""
    choices = [
        (Trimming(MAX_CHOICES, whole=True).json(key), as_text(label))
        for key, label in (choices_of(field)[:MAX_CHOICES] if field is not None else ())
    ]
    if all(has_words_of(label, value) for value, label in choices):
        return [value for value, _ in choices]
    if all(isinstance(value, str) for value, _ in choices):
        return dict(choices)
    return [{"value": value, "label": label} for value, label in choices]


def type_of(path: Path) -> str:
    """The kind of the values; what a key holds is the kind of the key that it points to."""
    field = path.hops[-1].model._meta.pk if path.field is None else path.field
    kind = kind_of(target_of(field))
    if kind == "other":
        return str(field.get_internal_type()).removesuffix("Field").lower()
    return kind


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


# What is said of all fields at once, and not again.

#: In words, by what a path is good for.
USES = {"filter": "filtered", "order": "ordered", "group": "grouped"}
#: What values can be measured by unless a field says otherwise. Texts: by nothing.
MEASURED = {kind: list(names) for kind, names in MEASURES.items() if kind != "text"}


def sentence_of(uses: Sequence[str]) -> str:
    if not uses:
        return ""
    *first, last = [USES[use] for use in uses]
    joined = f"{', '.join(first)} and {last}" if first else last
    measures = " Numbers have sum, avg, min and max, dates and times min and max."
    return f"Fields can be {joined} by, unless `not` names it.{measures * ('group' in uses)}"


def brief_writing(
    writing: Mapping[str, Any], fields: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what can be set, without what the fields say already."""
    brief = dict(writing)
    for tool in ("create_record", "update_record"):
        values = writing.get(tool, {}).get("values")
        if isinstance(values, dict):
            properties = {
                name: brief_schema(schema, fields[name]) if name in fields else schema
                for name, schema in values["properties"].items()
            }
            required = {"required": values["required"]} if values.get("required") else {}
            brief[tool] = {**writing[tool], "values": {"properties": properties, **required}}
    return brief


def brief_schema(schema: Mapping[str, Any], field: Mapping[str, Any]) -> dict[str, Any]:
    left_out = set()
    if has_words_of(schema.get("title"), field.get("label", field["name"])):
        left_out.add("title")
    if "help" in field and schema.get("description") == field["help"]:
        left_out.add("description")
    values = [one["value"] if isinstance(one, dict) else one for one in field.get("choices", ())]
    if values and [choice.get("const") for choice in schema.get("oneOf", ())] == values:
        left_out |= {"oneOf", "type"}
    return {name: value for name, value in schema.items() if name not in left_out}


def has_words_of(label: Any, name: Any) -> bool:
    """Return whether a label has the words of a name, and no others."""
    if not (isinstance(label, str) and isinstance(name, str)):
        return False
    return words_of(label) == words_of(name)


def words_of(text: str) -> list[str]:
    return text.replace("_", " ").casefold().split()

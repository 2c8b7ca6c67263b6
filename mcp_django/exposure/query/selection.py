"""What records show: the columns that are read, in one query, and how each member of a record is
made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from mcp_django.exposure.masks import mask_column
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths
from mcp_django.exposure.query.content_types import holds_content_type, labels_of_types
from mcp_django.exposure.query.serializers import Columns, Values, as_text, converter_of
from mcp_django.exposure.query.tables import Labels, Table
from mcp_django.templating.fences import fenced_part, fenced_value

MAX_FIELDS = 64
#: Selections that are remembered for one set of paths. Callers choose fields, so there are many.
MOST_SELECTIONS = 100

Render: TypeAlias = Callable[[Columns], Values]
Converter: TypeAlias = Callable[[Values], Values] | None


@dataclass(kw_only=True, eq=False)
class Selection:
    """The columns of a SELECT, and for each member of a record how it is made of them."""

    lookups: dict[str, None] = field(default_factory=dict)
    renders: dict[str, Render] = field(default_factory=dict)
    #: What stands for the rows that foreign keys point to, by name of the key.
    labels: dict[str, Callable[[Columns], Labels]] = field(default_factory=dict)
    #: Foreign keys whose label may be of a row that the caller cannot see, by name of a column.
    checks: dict[str, Path] = field(default_factory=dict)
    #: The kind of mask of a column, by name. What it makes of a value depends on the caller.
    masks: dict[str, str] = field(default_factory=dict)
    #: Columns whose texts strangers wrote, and foreign keys whose labels they wrote, by name.
    untrusted: set[str] = field(default_factory=set)
    #: Foreign keys to content types, by name.
    types: dict[str, Any] = field(default_factory=dict)
    #: Whether it has more than paths, with the rights of one call, so that nobody else may get it.
    is_for_one_call: bool = False

    def table(self, columns: Columns, rights: Rights, *, is_answer: bool = True) -> Table:
        """The rows of one call. Only here is it known who gets them. What is no answer but
        compared, or offered to be sent back, has no fences.
        """
        rendered = {name: render(columns) for name, render in self.renders.items()}
        # The same user gets the same pseudonyms, by whatever credential.
        reader = str(rights.principal.user.pk)
        for name, kind in self.masks.items():
            rendered[name] = mask_column(rendered[name], kind, reader=reader)
        labels = {name: labels_of(columns) for name, labels_of in self.labels.items()}
        for name, key in self.types.items():
            using = rights.rows(key.model).db
            labels[name] = labels_of_types(rights, key, rendered[name], using=using)
        for name in self.untrusted if is_answer else ():
            if name in labels:
                labels[name] = fenced_labels(labels[name], rights)
            else:
                rendered[name] = fence_column(rendered[name], rights)
        rows = list(zip(*rendered.values(), strict=True))
        return Table(columns=tuple(self.renders), rows=rows, labels=labels)

    def extended(self, cells: Mapping[str, tuple[str, Render]]) -> Selection:
        """Return a selection with more members, each made of one column."""
        keys = {key: None for key, _ in cells.values()}
        renders = {name: render for name, (_, render) in cells.items()}
        return replace(
            self,
            lookups=self.lookups | keys,
            renders=self.renders | renders,
            is_for_one_call=True,
        )


def is_list_of_names(given: Any) -> bool:
    return (
        isinstance(given, list | tuple)
        and 0 < len(given) <= MAX_FIELDS
        and all(isinstance(name, str) for name in given)
    )


def select_paths(
    access: AccessiblePaths, names: Sequence[str] | None, *, whole: bool = False
) -> Selection:
    """Return the selection of paths with these names, which exist. None: of all paths."""
    key = (whole, None if names is None else tuple(names))
    selection = access.selections.get(key)
    if selection is None:
        table = access.column_table
        paths = access.columns if names is None else dict.fromkeys(table[name] for name in names)
        selection = selection_of(access, paths, whole=whole)
        if len(access.selections) >= MOST_SELECTIONS:
            access.selections.clear()
        access.selections[key] = selection
    return selection


def selection_of(access: AccessiblePaths, paths: Iterable[Path], *, whole: bool) -> Selection:
    selection = Selection()
    for path in paths:
        selection.lookups[path.lookup] = None
        is_untrusted = access.is_untrusted(path)
        if path in access.masks:
            selection.masks[path.text] = access.masks[path]
        elif is_untrusted:
            selection.untrusted.add(path.text)
        # Equal values have one mask, so that no text is cut and no choice has its label. What
        # stands in a fence is cut there.
        convert = converter_of(path.field, whole=whole or is_untrusted or path in access.masks)
        selection.renders[path.text] = plain(path.lookup, convert)
        if holds_content_type(path.field):
            selection.types[path.text] = path.field
        labels = access.labels.get(path, ())
        if not labels:
            continue
        check = None
        if path.field.related_model in access.restricted:
            check = f"_seen{len(selection.checks)}"
            selection.checks[check] = path
        if any(access.is_untrusted(one) for one in labels):
            selection.untrusted.add(path.text)
        names = [one.lookup for one in labels]
        selection.lookups.update(dict.fromkeys(names))
        selection.labels[path.text] = labels_of_keys(path, convert, names, check)
    return selection


def plain(name: str, convert: Converter) -> Render:
    if convert is None:
        return lambda columns: columns[name]
    return lambda columns: convert(columns[name])


def fence_column(values: Values, rights: Rights) -> Values:
    """Values that strangers wrote. NULL and the empty text stay as they are."""
    return [fenced_value(value, rights.mark) for value in values]


def fenced_labels(labels: Labels, rights: Rights) -> Labels:
    texts = {key: fenced_part(text, rights.mark) for key, text in labels.texts.items()}
    return replace(labels, texts=texts)


def labels_of_keys(
    path: Path, convert: Converter, names: list[str], check: str | None
) -> Callable[[Columns], Labels]:
    """What stands for the rows that a foreign key points to, as far as they may be seen."""
    keys_of, of = plain(path.lookup, convert), target_name(path.field)

    def labels_of(columns: Columns) -> Labels:
        keys = keys_of(columns)
        parts = zip(*(columns[one] for one in names), strict=True)
        seen = [True] * len(keys) if check is None else columns[check]
        # Many rows refer to the same one.
        parts_by_key = {
            key: part
            for key, part, is_seen in zip(keys, parts, seen, strict=True)
            if is_seen and key is not None
        }
        texts = {str(key): label(part) for key, part in parts_by_key.items()}
        return Labels(texts=texts, of=of)

    return labels_of


def target_name(field: Any) -> str:
    """What a foreign key holds: "shop.customer", or "shop.customer.code" for another column."""
    target = field.target_field
    label: str = target.model._meta.label_lower
    return label if target.primary_key else f"{label}.{target.name}"


def label(parts: Sequence[Any]) -> str:
    return " ".join([as_text(part) for part in parts if part is not None])

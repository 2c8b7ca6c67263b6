"""What records show: the columns that are read for them, and the table or the objects made of
these."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeAlias, cast

from msgspec import Struct, defstruct

from mcp_django.conf import get_config
from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.masks import mask_column
from mcp_django.exposure.paths import RETURN, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths
from mcp_django.exposure.query.serializers import Columns, Values, as_text, converter_of, encoder
from mcp_django.templating.fences import fenced_part

#: Sets of names that are remembered, over all models.
MOST_CLASSES = 500

Row: TypeAlias = tuple[Any, ...]


class Record(Struct, frozen=True, gc=False):
    """One row as an object, to be encoded."""


@lru_cache(maxsize=MOST_CLASSES)
def record_class(names: tuple[str, ...]) -> type[Record]:
    """Encoded as an object with these members, and made many times faster than a dictionary.

    Members have names of their own in Python, where a field of a model may be called anything.
    """
    places = {f"field_{at}": name for at, name in enumerate(names)}
    members = [(place, Any) for place in places]
    made = defstruct("Record", members, bases=(Record,), rename=places, frozen=True, gc=False)
    return cast("type[Record]", made)


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """What stands for the values of one column, which are keys of other rows."""

    #: By the value as a text. A row that the caller may not see has none.
    texts: Mapping[str, str]
    #: The model of the other rows, and the field if that is not their primary key.
    of: str

    def beside(self, value: Any) -> Any:
        """The value and its label as an object."""
        return None if value is None else {"pk": value, "label": self.texts.get(str(value))}


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Rows, and the names of their columns. A cell may be a `RelatedTable`."""

    columns: tuple[str, ...]
    rows: Sequence[Row]
    labels: Mapping[str, Labels] = field(default_factory=dict)

    def members(self) -> dict[str, Any]:
        """`columns` and `rows`, and the `labels` of foreign keys by model and key."""
        nested: dict[str, list[RelatedTable]] = {
            name: list(self.column(name))
            for name, cell in zip(self.columns, self.rows[0] if self.rows else (), strict=False)
            if isinstance(cell, RelatedTable)
        }
        columns = [
            {name: nested[name][0].table.columns} if name in nested else name
            for name in self.columns
        ]
        rows = [tuple(map(in_row, row)) for row in self.rows] if nested else self.rows
        labels: dict[str, dict[str, str]] = {}
        for table in (self, *(cell.table for cells in nested.values() for cell in cells)):
            for name, one in table.labels.items():
                if used := table.used(name):
                    labels.setdefault(one.of, {}).update(used)
        return {"columns": columns, "rows": rows} | ({"labels": labels} if labels else {})

    def column(self, name: str) -> Iterator[Any]:
        at = self.columns.index(name)
        return (row[at] for row in self.rows)

    def used(self, name: str) -> dict[str, str]:
        """The labels of a column as far as these rows have them."""
        texts = self.labels[name].texts
        keys = dict.fromkeys(str(value) for value in self.column(name))
        return {key: texts[key] for key in keys if key in texts}

    def objects(self) -> list[Record]:
        """Each row as an object, its values beside their labels."""
        make, rows = record_class(self.columns), self.rows
        if self.labels or any(isinstance(cell, RelatedTable) for row in rows[:1] for cell in row):
            labels = [self.labels.get(name) for name in self.columns]
            rows = [
                tuple(
                    in_object(cell) if of_cell is None else of_cell.beside(cell)
                    for cell, of_cell in zip(row, labels, strict=True)
                )
                for row in rows
            ]
        return [make(*row) for row in rows]

    def encoded(self) -> bytes:
        """The members of the table as a JSON object."""
        return encoder.encode(self.members())


@dataclass(frozen=True, kw_only=True, eq=False)
class RelatedTable:
    """Some of the rows that belong to one, and how many there are."""

    count: int
    table: Table
    #: The call that gives all.
    rest: Mapping[str, Any] | None = None

    def more(self) -> dict[str, Any]:
        return {} if self.rest is None else {"rest": self.rest}


def in_row(cell: Any) -> Any:
    """A cell under a column that has the names and labels."""
    if not isinstance(cell, RelatedTable):
        return cell
    return {"count": cell.count, "rows": cell.table.rows, **cell.more()}


def in_object(cell: Any) -> Any:
    if not isinstance(cell, RelatedTable):
        return cell
    return {"count": cell.count, **cell.table.members(), **cell.more()}


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of tables with the same columns, one table at least."""
    labels = {
        name: replace(one, texts=merged(table.labels[name].texts for table in tables))
        for name, one in tables[0].labels.items()
    }
    return replace(tables[0], rows=[row for table in tables for row in table.rows], labels=labels)


def merged(texts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {key: text for one in texts for key, text in one.items()}


def encode_fitting(table: Table) -> tuple[bytes, Table]:
    """A JSON object with as many rows as an answer holds, one at least, and those rows."""
    encoded, most = table.encoded(), longest_answer()
    if len(encoded) <= most:
        return encoded, table
    sizes = [len(replace(table, rows=[row]).encoded()) for row in table.rows]
    count = max(1, sum(total < most for total in accumulate(sizes)))
    fitting = replace(table, rows=table.rows[:count])
    return fitting.encoded(), fitting


def longest_answer() -> int:
    """Bytes of records in one answer. They travel as text in JSON, where quotes take two, or
    twice."""
    return get_config().max_response // 2


def with_members(encoded: bytes, members: Mapping[str, Any]) -> bytes:
    """An encoded JSON object with more members."""
    return encoded[:-1] + b"," + encoder.encode(members)[1:] if members else encoded


# Which columns are read, in one query, and how each column of the table is made of them.

MAX_FIELDS = 64
#: Layouts that are remembered for one set of paths. Callers choose fields, so there are many.
MOST_LAYOUTS = 100

Render: TypeAlias = Callable[[Columns], Values]
Converter: TypeAlias = Callable[[Values], Values] | None


@dataclass(kw_only=True, eq=False)
class RecordLayout:
    """The columns of a SELECT, and for each field of a record how it is made of them."""

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
    #: Records in a page, if the settings allow no fewer: some records take more memory.
    most_in_page: int = sys.maxsize
    #: Whether it holds the rights of one call, so that nobody else may get it.
    is_for_one_call: bool = False

    def table(self, columns: Columns, rights: Rights, *, is_answer: bool = True) -> Table:
        """The rows of one call. Only here is it known who gets them. What is no answer but
        compared, or offered to be sent back, has no fences.
        """
        rendered = {name: render(columns) for name, render in self.renders.items()}
        for name, kind in self.masks.items():
            rendered[name] = mask_column(rendered[name], kind, reader=rights.reader)
        labels = {name: labels_of(columns) for name, labels_of in self.labels.items()}
        for name in self.untrusted if is_answer else ():
            if name in labels:
                labels[name] = fenced_labels(labels[name], rights)
            else:
                rendered[name] = fence_column(rendered[name], rights)
        rows = list(zip(*rendered.values(), strict=True))
        return Table(columns=tuple(self.renders), rows=rows, labels=labels)


def layout_of(access: AccessiblePaths, given: Any, *, whole: bool = False) -> RecordLayout:
    """What `fields` asks for; an empty tuple asks for nothing. Raises QueryError for anything that
    is not a path to return.
    """
    key = (whole, tuple(given) if is_list_of_names(given) else given)
    if given not in (None, ()) and not is_list_of_names(given):
        names = access.names(RETURN)
        raise QueryError(
            f"fields takes a list of 1 to {MAX_FIELDS} names, such as {names[:3]}."
            if names
            else "fields: This model shows none."
        )
    found = access.layouts.get(key)
    if found is None:
        found = make_layout(access, named_paths(access, given), whole=whole)
        if len(access.layouts) >= MOST_LAYOUTS:
            access.layouts.clear()
        access.layouts[key] = found
    return found


def is_list_of_names(given: Any) -> bool:
    return (
        isinstance(given, list | tuple)
        and 0 < len(given) <= MAX_FIELDS
        and all(isinstance(name, str) for name in given)
    )


def named_paths(access: AccessiblePaths, names: Sequence[str] | None) -> list[Path]:
    if names is None:
        return list(access.columns)
    table = access.column_table
    for name in names:
        if name not in table:
            raise unknown(name, access.names(RETURN), "fields")
    return list(dict.fromkeys(table[name] for name in names))


def make_layout(access: AccessiblePaths, paths: Sequence[Path], *, whole: bool) -> RecordLayout:
    layout = RecordLayout()
    for path in paths:
        layout.lookups[path.lookup] = None
        if path in access.masks:
            # Equal values have one mask, so that no text is cut and no choice has its label.
            convert = converter_of(path.field, whole=True)
            layout.renders[path.text] = plain(path.lookup, convert)
            layout.masks[path.text] = access.masks[path]
            continue
        is_untrusted = access.is_untrusted(path)
        if is_untrusted:
            layout.untrusted.add(path.text)
        # What stands in a fence is cut there.
        convert = converter_of(path.field, whole=whole or is_untrusted)
        layout.renders[path.text] = plain(path.lookup, convert)
        labels = access.labels.get(path, ())
        if not labels:
            continue
        check = (
            f"_seen{len(layout.checks)}" if path.field.related_model in access.restricted else None
        )
        if check:
            layout.checks[check] = path
        if any(access.is_untrusted(one) for one in labels):
            layout.untrusted.add(path.text)
        names = [one.lookup for one in labels]
        layout.lookups.update(dict.fromkeys(names))
        layout.labels[path.text] = labels_of_keys(path, convert, names, check)
    return layout


def plain(name: str, convert: Converter) -> Render:
    if convert is None:
        return lambda columns: columns[name]
    return lambda columns: convert(columns[name])


def fence_column(values: Values, rights: Rights) -> Values:
    """Texts that strangers wrote. NULL and the empty text stay as they are."""
    return [fenced_part(as_text(value), rights.mark) if value else value for value in values]


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
        texts = {
            str(key): label(part)
            for key, part, is_seen in zip(keys, parts, seen, strict=True)
            if is_seen and key is not None
        }
        return Labels(texts=texts, of=of)

    return labels_of


def target_name(field: Any) -> str:
    """What a foreign key holds: "shop.customer", or "shop.customer.code" for another column."""
    target = field.target_field
    label: str = target.model._meta.label_lower
    return label if target.primary_key else f"{label}.{target.name}"


def label(parts: Sequence[Any]) -> str:
    return " ".join(as_text(part) for part in parts if part is not None)

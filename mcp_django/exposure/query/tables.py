"""The answers made of rows: a table, or an object for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypeAlias

from mcp_django.conf import get_config
from mcp_django.exposure.query.serializers import cut, encoder

Row: TypeAlias = tuple[Any, ...]


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
            name: self.column(name)
            for name, cell in zip(self.columns, self.rows[0] if self.rows else (), strict=False)
            if isinstance(cell, RelatedTable)
        }
        columns = [
            {name: nested[name][0].table.columns} if name in nested else name
            for name in self.columns
        ]
        rows = self.rows
        if nested:
            rows = [
                tuple(
                    cell.members({"rows": cell.table.rows})
                    if isinstance(cell, RelatedTable)
                    else cell
                    for cell in row
                )
                for row in rows
            ]
        labels: dict[str, dict[str, str]] = {}
        for table in (self, *(cell.table for cells in nested.values() for cell in cells)):
            for name, one in table.labels.items():
                if used := table.used(name):
                    labels.setdefault(one.of, {}).update(used)
        return {"columns": columns, "rows": rows} | ({"labels": labels} if labels else {})

    def column(self, name: str) -> list[Any]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def used(self, name: str) -> dict[str, str]:
        """The labels of a column as far as these rows have them."""
        texts = self.labels[name].texts
        keys = dict.fromkeys(map(str, self.column(name)))
        return {key: texts[key] for key in keys if key in texts}

    def objects(self) -> list[dict[str, Any]]:
        """Each row as an object, its values beside their labels."""
        objects = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        for record in objects:
            for name, cell in record.items():
                if isinstance(cell, RelatedTable):
                    record[name] = cell.members(cell.table.members())
                elif name in self.labels:
                    record[name] = self.labels[name].beside(cell)
        return objects

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

    def members(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        return {"count": self.count, **rows} | ({} if self.rest is None else {"rest": self.rest})


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of tables with the same columns, one table at least."""
    labels = {}
    for name, first in tables[0].labels.items():
        texts = [pair for table in tables for pair in table.labels[name].texts.items()]
        labels[name] = replace(first, texts=dict(texts))
    return replace(tables[0], rows=[row for table in tables for row in table.rows], labels=labels)


#: Characters of each text in a record, or of a file, that is too long for an answer.
LONGEST_IN_RECORD = 4_000
#: Related records in such a record.
MOST_IN_LONG_RECORD = 20


def beginning(name: str, text: str) -> str:
    """Return the first characters of the text of a field, and how it goes on."""
    rest = f'get_record with "fields": ["{name}"], "offset": {LONGEST_IN_RECORD} goes on'
    return cut(text, most=LONGEST_IN_RECORD, rest=rest)


def with_short_texts(table: Table) -> Table:
    """The same rows with the beginnings of long texts and values of JSON, and how each goes on."""

    def short(name: str, cell: Any) -> Any:
        if isinstance(cell, RelatedTable):
            rows = cell.table.rows[:MOST_IN_LONG_RECORD]
            return replace(cell, table=replace(cell.table, rows=rows))
        if not isinstance(cell, str | dict | list):
            return cell
        written = cell if isinstance(cell, str) else encoder.encode(cell).decode()
        if len(written) <= LONGEST_IN_RECORD:
            return cell
        return beginning(name, written)

    rows = [tuple(map(short, table.columns, row)) for row in table.rows]
    return replace(table, rows=rows)


def encode_fitting(table: Table, longest: int) -> tuple[bytes, Table]:
    """A JSON object with as many rows as fit into that many bytes, one at least, and those
    rows.
    """
    encoded = table.encoded()
    if len(encoded) <= longest:
        return encoded, table
    sizes = [len(replace(table, rows=[row]).encoded()) for row in table.rows]
    count = max(1, sum(total < longest for total in accumulate(sizes)))
    fitting = replace(table, rows=table.rows[:count])
    return fitting.encoded(), fitting


def longest_answer() -> int:
    """Bytes of records in one answer. They travel as text in JSON, where quotes take two, or
    twice."""
    return get_config().max_response // 2


#: Bytes that clients put before a model, by how their names begin, where these are few:
#: openai/codex#7906, google-gemini/gemini-cli#19365.
SMALL_BUDGETS = {"codex": 10_000, "gemini-cli": 40_000}


def answer_budget(client: Mapping[str, Any]) -> int:
    """Bytes of records in an answer of a tool, for a client that calls itself so."""
    name = str(client.get("name", "")).lower()
    budgets = [size for start, size in SMALL_BUDGETS.items() if name.startswith(start)]
    return min(longest_answer(), get_config().answer_budget, *budgets)


def with_members(encoded: bytes, members: Mapping[str, Any]) -> bytes:
    """An encoded JSON object with more members."""
    if not members:
        return encoded
    return encoded[:-1] + b"," * (encoded != b"{}") + encoder.encode(members)[1:]

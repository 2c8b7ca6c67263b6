"""An object as the argument of a prompt: what the caller may read of it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mcp_django.exceptions import NotFound, ToolError
from mcp_django.exposure import completion, completion_queries
from mcp_django.exposure.declarations import declaration_of
from mcp_django.exposure.find import check_shows_records, row_of
from mcp_django.exposure.guard import RETURN
from mcp_django.exposure.paths import Path
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.records import Shape, shape_of
from mcp_django.exposure.resources import key_of
from mcp_django.exposure.serializers import Columns, as_text
from mcp_django.exposure.values import quoted
from mcp_django.templating import Record

if TYPE_CHECKING:
    from mcp_django.exposure.options import ModelExposure
    from mcp_django.exposure.permissions import Rights

#: Columns that templates get as they are: filters such as `date` and comparisons need them so.
AS_THEY_ARE = frozenset({bool, int, float, Decimal, date, datetime, time, timedelta, type(None)})
PLAIN_JSON = (list, dict)
MOST_NAMED = 5


def object_of(rights: Rights, label: str, text: str, *, argument: str) -> Record:
    """The object that a text names: by its key, or by the whole of what stands for it.

    Raises ToolError, in the same words for what is missing and what the caller may not see.
    """
    try:
        exposure = rights.exposure(label)
        check_shows_records(exposure)
        return record_of(rights, exposure, text)
    except NotFound:
        pass
    keys = keys_called(rights, label, text)
    if len(keys) == 1:
        return record_of(rights, rights.exposure(label), keys[0])
    if keys:
        named = ", ".join(keys[:MOST_NAMED])
        raise ToolError(
            f"Argument {argument}: {len(keys)} objects of {label} are called {quoted(text)}. "
            f"Send a key: {named}."
        )
    raise ToolError(f"Argument {argument}: there is no {label} {quoted(text)}.")


def keys_called(rights: Rights, label: str, text: str) -> list[str]:
    """Keys of visible objects of which one of the label fields is exactly this text."""
    try:
        exposure = rights.exposure(label)
    except NotFound:
        return []
    found = completion_queries.keys_of(rights, exposure, text)
    wanted = text.casefold()
    return [
        key
        for key, texts in found.candidates
        if text and any(one.casefold() == wanted for one in texts[1:])
    ]


def complete_object(rights: Rights, label: str, value: str) -> list[str]:
    """Keys of visible objects that go on from what was typed, by key or label."""
    try:
        exposure = rights.exposure(label)
    except NotFound:
        return []
    if exposure.aggregates_only:
        return []
    return list(completion.keys(rights, exposure, value).values)


def labelled_keys(rights: Rights, label: str) -> list[tuple[str, str]]:
    """The first keys, each with what stands for the object: to choose from."""
    try:
        exposure = rights.exposure(label)
    except NotFound:
        return []
    found = completion_queries.keys_of(rights, exposure, "")
    return [(key, " ".join(texts[1:]) or key) for key, texts in found.candidates]


# What templates get


@dataclass
class Branch:
    """A record while it is made: the values by name, and the text that stands for it."""

    names: dict[str, Any] = field(default_factory=dict)
    text: str = ""

    def put(self, names: Sequence[str], value: Any) -> None:
        first, *rest = names
        if rest:
            below = self.names.get(first)
            if not isinstance(below, Branch):
                below = self.names[first] = Branch()
            below.put(rest, value)
        elif isinstance(value, Branch) and isinstance(known := self.names.get(first), Branch):
            known.text = value.text
            known.names.update(value.names)
        elif value is not None or first not in self.names:
            self.names[first] = value

    @property
    def is_empty(self) -> bool:
        """Whether nothing is behind it: a foreign key that leads nowhere."""
        return not self.text and all(
            value.is_empty if isinstance(value, Branch) else value is None
            for value in self.names.values()
        )

    def record(self) -> Record:
        made = {name: leaf_of(value) for name, value in self.names.items()}
        return Record(made, made.__getitem__, self.text)


def leaf_of(value: Any) -> Any:
    if isinstance(value, Branch):
        return None if value.is_empty else value.record()
    return value


def record_of(rights: Rights, exposure: ModelExposure, key: str) -> Record:
    """Raises NotFound. Its names are those that records of this caller have, and `pk`."""
    reach = reach_of(rights, exposure)
    shape = shape_of(reach, None, whole=True)
    columns = row_of(rights, exposure, key_of(exposure, [key]), shape=shape).columns
    made = Branch()
    for path in reach.paths[RETURN]:
        made.put(path.names, value_of(path, shape, columns))
        if path.field.choices:
            choice = first(shape, path, columns)
            label = None if choice is None else choice["label"]
            made.put((*path.names[:-1], f"get_{path.names[-1]}_display"), label)
    shown = reach.tables[RETURN]
    labels = [path.text for path in declaration_of(exposure).labels if path.text in shown]
    made.text = " ".join(as_text(columns[shown[name].lookup][0]) for name in labels) or key
    made.names["pk"] = key
    return made.record()


def value_of(path: Path, shape: Shape, columns: Columns) -> Any:
    if path.field.is_relation:
        return relation_of(first(shape, path, columns))
    raw = columns[path.lookup][0]
    shown = raw if is_plain(raw) else first(shape, path, columns)
    return shown if is_plain(shown) or isinstance(shown, PLAIN_JSON) else as_text(shown)


def is_plain(value: Any) -> bool:
    return type(value) in AS_THEY_ARE or isinstance(value, str)


def relation_of(shown: Any) -> Branch | None:
    """A foreign key: its key, and what stands for the other row if that may be seen."""
    if shown is None:
        return None
    key = shown["pk"] if isinstance(shown, dict) else shown
    label = shown["label"] if isinstance(shown, dict) else None
    return Branch(names={"pk": key if is_plain(key) else as_text(key)}, text=label or as_text(key))


def first(shape: Shape, path: Path, columns: Columns) -> Any:
    return shape.renders[path.text](columns)[0]


def names_of(exposure: ModelExposure) -> list[str]:
    """What templates may write behind the argument, whatever a caller may see of it."""
    found = ["pk"]
    for path in declaration_of(exposure).paths[RETURN]:
        found.append(".".join(path.names))
        if path.field.choices:
            found.append(".".join((*path.names[:-1], f"get_{path.names[-1]}_display")))
    return list(dict.fromkeys(found))

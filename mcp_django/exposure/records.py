"""How records are read: which columns, in one query, and how each record is made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, cast

from django.db.models import Q
from msgspec import Struct, defstruct

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.guard import RETURN, GuardedQuery
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach
from mcp_django.exposure.relations import policy_of
from mcp_django.exposure.rows import guarded
from mcp_django.exposure.serializers import Columns, Values, as_text, converter_of

MAX_FIELDS = 64
#: Shapes that are remembered for one Reach: callers choose among fields, so there are many.
MOST_SHAPES = 100
#: Sets of names that are remembered, over all models.
MOST_CLASSES = 500

Render: TypeAlias = Callable[[Columns], Values]
Converter: TypeAlias = Callable[[Values], Values] | None


class Record(Struct, frozen=True, gc=False):
    """One record, to be encoded."""


@dataclass(kw_only=True, eq=False)
class Shape:
    """The columns of a SELECT, and for each field of a record how it is made of them."""

    lookups: dict[str, None] = field(default_factory=dict)
    renders: dict[str, Render] = field(default_factory=dict)
    #: Foreign keys whose label may be of a row that the caller cannot see, by name of a column.
    checks: dict[str, Path] = field(default_factory=dict)

    def records(self, columns: Columns) -> list[Record]:
        make = record_class(tuple(self.renders))
        rendered = [render(columns) for render in self.renders.values()]
        return [make(*row) for row in zip(*rendered, strict=True)]


@lru_cache(maxsize=MOST_CLASSES)
def record_class(names: tuple[str, ...]) -> type[Record]:
    """Encoded as an object with these members, and made many times faster than a dictionary.

    Members have names of their own in Python, where a field of a model may be called anything.
    """
    places = {f"field_{at}": name for at, name in enumerate(names)}
    members = [(place, Any) for place in places]
    made = defstruct("Record", members, bases=(Record,), rename=places, frozen=True, gc=False)
    return cast("type[Record]", made)


def shape_of(reach: Reach, given: Any, *, whole: bool = False) -> Shape:
    """What `fields` asks for. Raises QueryError for anything that is not a path to return."""
    key = (whole, tuple(given) if is_list_of_names(given) else given)
    if given is not None and not is_list_of_names(given):
        names = reach.names(RETURN)
        raise QueryError(
            f"fields takes a list of 1 to {MAX_FIELDS} names, such as {names[:3]}."
            if names
            else "This model shows no fields."
        )
    found = reach.shapes.get(key)
    if found is None:
        found = make_shape(reach, named_paths(reach, given), whole=whole)
        if len(reach.shapes) >= MOST_SHAPES:
            reach.shapes.clear()
        reach.shapes[key] = found
    return found


def is_list_of_names(given: Any) -> bool:
    return (
        isinstance(given, list | tuple)
        and 0 < len(given) <= MAX_FIELDS
        and all(isinstance(name, str) for name in given)
    )


def named_paths(reach: Reach, names: Sequence[str] | None) -> list[Path]:
    if names is None:
        return list(reach.paths[RETURN])
    table = reach.tables[RETURN]
    for name in names:
        if name not in table:
            raise unknown(name, reach.names(RETURN), "fields")
    return list(dict.fromkeys(table[name] for name in names))


def make_shape(reach: Reach, paths: Sequence[Path], *, whole: bool) -> Shape:
    shape = Shape()
    for path in paths:
        shape.lookups[path.lookup] = None
        convert = converter_of(path.field, whole=whole)
        labels = reach.labels.get(path, ())
        if not labels:
            shape.renders[path.text] = plain(path.lookup, convert)
            continue
        check = f"_seen{len(shape.checks)}" if path.field.related_model in reach.narrowed else None
        if check:
            shape.checks[check] = path
        names = [one.lookup for one in labels]
        shape.lookups.update(dict.fromkeys(names))
        shape.renders[path.text] = labelled(path.lookup, convert, names, check)
    return shape


def plain(name: str, convert: Converter) -> Render:
    if convert is None:
        return lambda columns: columns[name]
    return lambda columns: convert(columns[name])


def labelled(name: str, convert: Converter, names: list[str], check: str | None) -> Render:
    """A foreign key: its value, and what stands for the row if that row may be seen."""
    keys_of = plain(name, convert)

    def render(columns: Columns) -> Values:
        keys = keys_of(columns)
        parts = zip(*(columns[one] for one in names), strict=True)
        seen = [True] * len(keys) if check is None else columns[check]
        return [
            None if key is None else {"pk": key, "label": label(part) if is_seen else None}
            for key, part, is_seen in zip(keys, parts, seen, strict=True)
        ]

    return render


def label(parts: Sequence[Any]) -> str:
    return " ".join(as_text(part) for part in parts if part is not None)


def select(rights: Rights, query: GuardedQuery, shape: Shape, extra: Sequence[str]) -> list[str]:
    """Put the columns of a shape, and those of the order, into a query. Returns their names."""
    names = list(dict.fromkeys((*shape.lookups, *extra)))
    for check, path in shape.checks.items():
        model = path.field.related_model
        key = path.field.target_field.attname
        visible = guarded(rights.rows(model), policy_of(model, [key])).values(key)
        query.add_annotation(Q((f"{path.lookup}__in", visible)), check)
    names += shape.checks
    query.set_values(names)
    return names


def read(compiler: Any, sql: str, params: Any) -> tuple[list[Any], list[Values]]:
    """Rows as the driver gave them, and the same as columns of Python values."""
    with compiler.connection.cursor() as cursor:
        cursor.execute(sql, params)
        rows = cursor.fetchall()
    columns: list[Values] = list(zip(*rows, strict=True))
    if rows:
        for at, (converters, expression) in compiler.get_converters(
            [one for one, _, _ in compiler.select]
        ).items():
            column = columns[at]
            for convert in converters:
                column = [convert(value, expression, compiler.connection) for value in column]
            columns[at] = column
    return rows, columns

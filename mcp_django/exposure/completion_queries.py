"""Values that are in the database, for completion: a few queries, only rows that are visible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from mcp_django.exceptions import QueryError
from mcp_django.exposure import values
from mcp_django.exposure.declarations import declaration_of
from mcp_django.exposure.find import judged, listed
from mcp_django.exposure.guard import FILTER, RETURN
from mcp_django.exposure.keys import LONGEST_KEY, key_value
from mcp_django.exposure.operators import kind_of, target_of
from mcp_django.exposure.ordering import parse_order
from mcp_django.exposure.paths import Path
from mcp_django.exposure.query import Wanted
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.records import shape_of
from mcp_django.exposure.relations import Condition
from mcp_django.exposure.searches import Search
from mcp_django.exposure.serializers import encoder
from mcp_django.protocol.uri_templates import decode, encode

if TYPE_CHECKING:
    from mcp_django.exposure.options import ModelExposure
    from mcp_django.exposure.permissions import Rights

#: Rows of one query: what an answer may hold, and one that says that there are more.
MOST = 101
#: Queries for the values of one column. Each leaves out what the ones before have found.
ROUNDS = 4
WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,18})\Z")
HEXADECIMAL = re.compile(r"[0-9a-f]{1,32}\Z")


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Keys as texts, each with the texts that it is found by, and whether there are more."""

    candidates: Sequence[tuple[str, Sequence[str]]]
    has_more: bool


def keys_of(rights: Rights, exposure: ModelExposure, text: str) -> Keys:
    """Keys of visible records, found by the key or by the label fields.

    None where records do not show this caller their key. Labels count where they may be shown
    and filtered by.
    """
    reach = reach_of(rights, exposure)
    names = [part.name for part in reach.keys]
    if not (is_usable(text) and set(names) <= reach.tables[RETURN].keys()):
        return Keys(candidates=(), has_more=False)
    own = [path.text for path in declaration_of(exposure).labels]
    usable = reach.tables[RETURN].keys() & reach.tables[FILTER].keys()
    labels = [name for name in own if name in usable and name not in names]
    finder = Finder(rights, reach, [*names, *labels])
    found: dict[str, Sequence[str]] = {}
    has_more = False
    for anywhere in finder.passes(text):
        alternatives = list(key_alternatives(reach, text, using=finder.using))
        paths = [reach.tables[FILTER][name] for name in labels]
        if anywhere and len(names) == 1:
            paths += reach.key_paths
        for path in paths:
            alternatives += matching(path, text, using=finder.using, anywhere=anywhere)
        records, has_more = finder.find(text, alternatives)
        for record in records:
            key, *texts = key_and_labels(record, parts=len(names))
            if len(key) <= LONGEST_KEY:
                found.setdefault(key, (key, *texts))
        if len(found) >= MOST:
            break
    return Keys(candidates=list(found.items()), has_more=has_more)


def key_and_labels(record: Mapping[str, Any], *, parts: int) -> list[str]:
    """The key of a record, its parts with slashes between them, and the texts behind it."""
    texts = [text_of(value) for value in record.values()]
    key = texts[0] if parts == 1 else "/".join(encode(part) for part in texts[:parts])
    return [key, *texts[parts:]]


def distinct_values(rights: Rights, reach: Reach, path: Path, text: str) -> tuple[list[str], bool]:
    """Values of a column that begin with the text, in rows and columns that records show."""
    shown = reach.tables[RETURN].get(path.text)
    if shown is None or kind_of(path.field) == "other" or not is_usable(text):
        return [], False
    finder = Finder(rights, reach, [shown.text])
    alternatives = list(matching(path, text, using=finder.using, anywhere=False))
    known: dict[str, Any] = {}
    has_more = False
    for _ in range(1 if finder.is_judged else ROUNDS):
        seen = [Condition(path=path, operator="in", value=list(known.values()))] if known else []
        records, has_more = finder.find(text, alternatives, present=path, exclude=seen)
        before = len(known)
        for record in records:
            written = text_of(next(iter(record.values())))
            try:
                # What a filter would not take is no help.
                known[written] = values.scalar(path.field, written, using=finder.using)
            except QueryError:
                continue
        if not has_more or len(known) == before or len(known) >= MOST:
            break
    return [one for one in known if one], has_more


class Finder:
    """Reads a few columns of the rows that this caller may see, in the order of their keys."""

    def __init__(self, rights: Rights, reach: Reach, names: Sequence[str]) -> None:
        self.rights = rights
        self.reach = reach
        self.shape = shape_of(reach, names)
        self.using = rights.rows(reach.model).db
        self.is_judged = rights.judges_objects(reach.model)

    def passes(self, text: str) -> tuple[bool, ...]:
        """What begins with the text, and then what has it anywhere; rows that are judged once."""
        if not text:
            return (False,)
        return (True,) if self.is_judged else (False, True)

    def find(
        self,
        text: str,
        alternatives: Sequence[Sequence[Condition]],
        *,
        present: Path | None = None,
        exclude: Sequence[Condition] = (),
    ) -> tuple[list[dict[str, Any]], bool]:
        """Records that match one of the alternatives; all for an empty text."""
        if text and not alternatives:
            return [], False
        filters = (
            [] if present is None else [Condition(path=present, operator="isnull", value=False)]
        )
        search = Search(
            rights=self.rights,
            reach=self.reach,
            shape=self.shape,
            order=parse_order(self.reach, ()),
            wanted=Wanted(filters=filters, exclude=exclude, any_of=alternatives if text else ()),
            using=self.using,
        )
        try:
            found = (judged if self.is_judged else listed)(search, None, MOST)
        except QueryError:  # too slow, or no database can compare this
            return [], False
        # As JSON has them: there, every value has one form.
        records = msgspec.json.decode(encoder.encode(found.records))
        return records, found.end is not None


def is_usable(text: str) -> bool:
    """Whether it is a text that every database takes, and not too long to search for."""
    try:
        values.short(values.attempt(values.text, text, "text"))
    except QueryError:
        return False
    return True


def key_alternatives(reach: Reach, text: str, *, using: str) -> Iterator[list[Condition]]:
    """Keys that begin with the text. The parts of a composite key stand between slashes."""
    *whole, last = [text] if len(reach.keys) == 1 else text.split("/")
    if len(whole) >= len(reach.keys):
        return
    try:
        exact = [
            Condition(
                path=path, operator="exact", value=key_value(path.field, decode(part), using=using)
            )
            for path, part in zip(reach.key_paths, whole, strict=False)
        ]
        written = decode(last) if len(reach.keys) > 1 else last
    except (QueryError, ValueError):
        return
    if exact and not written:
        yield exact
        return
    path = reach.key_paths[len(whole)]
    for found in matching(path, written, using=using, anywhere=False):
        yield [*exact, *found]


def matching(path: Path, text: str, *, using: str, anywhere: bool) -> Iterator[list[Condition]]:
    """Conditions of which one must hold: texts and numbers by how they begin, others whole."""
    field = target_of(path.field)
    kind = kind_of(field)
    is_relation = path.field.is_relation
    if kind == "text" and not is_relation:
        operator = "icontains" if anywhere else "istartswith"
        yield [Condition(path=path, operator=operator, value=text)]
    elif kind == "integer":
        low, high = values.bounds_of(field.get_internal_type(), using=using)
        for least, most in numbers_from(text, low=low, high=high):
            yield between(path, least, most)
    elif kind == "uuid" and not is_relation:
        digits = text.replace("-", "").lower()
        if HEXADECIMAL.match(digits):
            yield between(path, UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f")))
    else:
        try:
            value = key_value(path.field, text, using=using)
        except QueryError:
            return
        yield [Condition(path=path, operator="exact", value=value)]


def between(path: Path, least: Any, most: Any) -> list[Condition]:
    # Not `range`, which foreign keys do not have.
    return [
        Condition(path=path, operator="gte", value=least),
        Condition(path=path, operator="lte", value=most),
    ]


def numbers_from(text: str, *, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The numbers whose digits begin with these, as ranges that an index can use."""
    if not WHOLE.match(text):
        return
    size, sign = abs(int(text)), -1 if text.startswith("-") else 1
    step = 1
    while True:
        ends = (sign * size * step, sign * (size * step + step - 1))
        least, most = max(min(ends), low), min(max(ends), high)
        if least > most:
            return
        yield least, most
        if not size:
            return
        step *= 10


def text_of(value: Any) -> str:
    """A value of a record as it stands in a URI."""
    if isinstance(value, dict):  # a choice, or a foreign key with a label
        value = value.get("value", value.get("pk"))
    return "" if value is None else str(value)

"""Values that are in the database, for completion: a few queries, only rows that are visible."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from mcp_django.exceptions import QueryError
from mcp_django.exposure import fields
from mcp_django.exposure.fields import has_equals, kind_of, target_of
from mcp_django.exposure.paths import FILTER, LONGEST_KEY, RETURN, Path, declaration_of, key_value
from mcp_django.exposure.query.access import AccessiblePaths, Condition, allowed_paths
from mcp_django.exposure.query.filters import ParsedFilters
from mcp_django.exposure.query.find import page_of_permitted
from mcp_django.exposure.query.pagination import parse_order
from mcp_django.exposure.query.search import Search
from mcp_django.exposure.query.selection import select_paths
from mcp_django.exposure.query.serializers import encoder
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


def keys_of(
    rights: Rights, exposure: ModelExposure, text: str
) -> tuple[dict[str, Sequence[str]], bool]:
    """Keys of visible records as texts, each with the texts that it is found by: the key and the
    label fields. And whether there are more.

    None where records do not show this caller their key. A label counts where the caller may see
    it and filter by it.
    """
    access = allowed_paths(rights, exposure)
    names = [part.name for part in access.keys]
    if not (is_usable(text) and set(names) <= access.tables[RETURN].keys()):
        return {}, False
    own = [path.text for path in declaration_of(exposure).labels]
    usable = access.tables[RETURN].keys() & access.tables[FILTER].keys()
    labels = [name for name in own if name in usable and name not in names]
    using, is_judged = (
        rights.rows(exposure.model).db,
        rights.checks_rows_one_by_one(exposure.model),
    )
    found: dict[str, Sequence[str]] = {}
    has_more = False
    # First what begins with the text, then what contains it. Rows that are judged are read once.
    passes = (True,) if is_judged else (False, True)
    for anywhere in passes if text else (False,):
        alternatives = list(key_alternatives(access, text, using=using))
        paths = [access.tables[FILTER][name] for name in labels]
        if anywhere and len(names) == 1:
            paths += access.key_paths
        for path in paths:
            alternatives += matching(path, text, using=using, anywhere=anywhere)
        rows, has_more = find_rows(rights, access, [*names, *labels], text, alternatives)
        for row in rows:
            texts = [text_of(value) for value in row]
            parts = texts[: len(names)]
            key = parts[0] if len(parts) == 1 else "/".join(encode(part) for part in parts)
            if len(key) <= LONGEST_KEY:
                found.setdefault(key, (key, *texts[len(names) :]))
        if len(found) >= MOST:
            break
    return found, has_more


def distinct_values(
    rights: Rights, access: AccessiblePaths, path: Path, text: str
) -> tuple[list[str], bool]:
    """Values of a column that begin with the text, in rows and columns that records show."""
    shown = access.tables[RETURN].get(path.text)
    if shown is None or not has_equals(path.field) or not is_usable(text):
        return [], False
    using = rights.rows(access.model).db
    alternatives = list(matching(path, text, using=using, anywhere=False))
    known: dict[str, Any] = {}
    has_more = False
    present = [Condition(path=path, operator="isnull", value=False)]
    for _ in range(1 if rights.checks_rows_one_by_one(access.model) else ROUNDS):
        seen = [Condition(path=path, operator="in", value=list(known.values()))] if known else []
        rows, has_more = find_rows(
            rights, access, [shown.text], text, alternatives, filters=present, exclude=seen
        )
        before = len(known)
        for [value] in rows:
            written = text_of(value)
            try:
                # What a filter would not take is no help.
                known[written] = fields.scalar(path.field, written, using=using)
            except QueryError:
                continue
        if not has_more or len(known) == before or len(known) >= MOST:
            break
    return [one for one in known if one], has_more


def find_rows(
    rights: Rights,
    access: AccessiblePaths,
    names: Sequence[str],
    text: str,
    alternatives: Sequence[Sequence[Condition]],
    **conditions: Any,
) -> tuple[list[list[Any]], bool]:
    """A few columns of the rows that this caller may see and that match one of the alternatives,
    all for an empty text, in the order of their keys.
    """
    if text and not alternatives:
        return [], False
    search = Search(
        rights=rights,
        access=access,
        selection=select_paths(access, names),
        order=parse_order(access, ()),
        parsed_filters=ParsedFilters(any_of=alternatives if text else (), **conditions),
        using=rights.rows(access.model).db,
        is_answer=False,
    )
    try:
        if rights.checks_rows_one_by_one(access.model):
            found = page_of_permitted(search, None, MOST)
            table, has_more = found.table, found.has_more
        else:
            rows = search.rows(None, most=MOST)
            table, has_more = rows.table(), rows.has_more
    except QueryError:  # too slow, or no database can compare this
        return [], False
    # As JSON has them: there, every value has one form.
    return msgspec.json.decode(encoder.encode(table.rows)), has_more


def is_usable(text: str) -> bool:
    """Whether every database takes the text, and it is not too long to search for."""
    try:
        fields.bounded_text(text)
    except QueryError:
        return False
    return True


def key_alternatives(
    access: AccessiblePaths, text: str, *, using: str
) -> Iterator[list[Condition]]:
    """Keys that begin with the text. The parts of a composite key stand between slashes."""
    *whole, last = [text] if len(access.keys) == 1 else text.split("/")
    if len(whole) >= len(access.keys):
        return
    try:
        exact = [
            Condition(
                path=path, operator="exact", value=key_value(path.field, decode(part), using=using)
            )
            for path, part in zip(access.key_paths, whole, strict=False)
        ]
        written = decode(last) if len(access.keys) > 1 else last
    except (QueryError, ValueError):
        return
    if exact and not written:
        yield exact
        return
    path = access.key_paths[len(whole)]
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
        low, high = fields.bounds_of(field.get_internal_type(), using=using)
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
    return "" if value is None else str(value)

"""Reading records: one page, one record, how many. What leaves this module is encoded JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import Q, QuerySet

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound, QueryError, unknown
from mcp_django.exposure import cursors, values
from mcp_django.exposure.budget import limited
from mcp_django.exposure.guard import GuardedQuery
from mcp_django.exposure.operators import kind_of, target_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.ordering import Ordering, after, parse_order
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import restrictions
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.records import Shape, read, select, shape_of
from mcp_django.exposure.rows import guarded, guarded_query
from mcp_django.exposure.serializers import encoder

ARGUMENTS = (
    "filters", "exclude", "any_of", "search", "order_by", "fields", "limit", "cursor",
)  # fmt: skip
#: Pages of rows that may be judged one by one before a short page goes out.
OVERFETCH = 4
#: Characters of a key that is a text.
LONGEST_KEY = 1000


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some records. `next_cursor` is None at the end; a page may be short and have one."""

    #: A JSON array of objects.
    encoded_records: bytes
    count: int
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Search:
    """One understood call: everything but the rows."""

    rights: Rights
    reach: Reach
    shape: Shape
    order: Sequence[Ordering]
    conditions: list[Q]
    arguments: Mapping[str, Any]
    using: str

    def query(self, position: Sequence[Any] | None) -> tuple[GuardedQuery, list[str]]:
        query = guarded_query(self.rights.rows(self.reach.model), self.reach.policy)
        for condition in self.conditions:
            query.add_q(condition)
        if position is not None:
            query.add_q(after(self.order, position, using=self.using))
        query.add_ordering(*(one.term for one in self.order))
        return query, select(self.rights, query, self.shape, [one.lookup for one in self.order])

    def rows(self, position: Sequence[Any] | None, most: int) -> Rows:
        """At most `most` rows behind a position, and whether there are more."""
        query, names = self.query(position)
        query.set_limits(high=most + 1)
        with limited(self.using):
            raw, columns = read(query, using=self.using)
        found = dict(zip(names, columns, strict=False)) or dict.fromkeys(names, ())
        return Rows(self, raw, found, most=most)

    def bound(self) -> str:
        return cursors.binding(self.rights, self.reach, self.arguments)


class Rows:
    """What one query brought."""

    def __init__(
        self, search: Search, raw: list[Any], columns: Mapping[str, Sequence[Any]], *, most: int
    ) -> None:
        self.search = search
        self.raw = raw
        self.columns = columns
        self.names = list(columns)
        self.has_more = len(raw) > most
        self.count = min(len(raw), most)

    def position(self, at: int) -> list[Any]:
        vendor = connections[self.search.using].vendor
        return [
            one.position(
                self.raw[at][self.names.index(one.lookup)],
                self.columns[one.lookup][at],
                vendor=vendor,
            )
            for one in self.search.order
        ]

    def records(self) -> list[dict[str, Any]]:
        return self.search.shape.records(self.columns)[: self.count]


def find_records(rights: Rights, exposure: ModelExposure, arguments: Mapping[str, Any]) -> Page:
    """One page of the records that the caller may see and that the arguments leave.

    Raises QueryError for anything that cannot run, in words that say what would.
    """
    for name in arguments:
        if name not in ARGUMENTS:
            raise unknown(name, ARGUMENTS, "find_records")
    reach = reach_of(rights, exposure)
    using = rights.rows(exposure.model).db
    limit = page_limit(arguments.get("limit"))
    search = Search(
        rights=rights,
        reach=reach,
        shape=shape_of(reach, arguments.get("fields")),
        order=parse_order(reach, arguments.get("order_by")),
        conditions=restrictions(rights, reach, arguments, using=using),
        arguments=arguments,
        using=using,
    )
    position = None
    if arguments.get("cursor") is not None:
        position = cursors.decode(search.bound(), arguments["cursor"], size=len(search.order))
    if rights.judges_objects(exposure.model):
        return judged_page(search, position, limit)
    rows = search.rows(position, limit)
    end = rows.position(limit - 1) if rows.has_more else None
    return page(search, rows.records(), rows.position, end=end)


def judged_page(search: Search, position: Sequence[Any] | None, limit: int) -> Page:
    """Rows that `has_view_permission(request, obj)` leaves, from a few pages at most.

    It goes on behind the last row that was looked at, so a short page with a cursor is no end.
    """
    kept: list[dict[str, Any]] = []
    places: list[list[Any]] = []
    end: list[Any] | None = None
    for _ in range(OVERFETCH):
        rows = search.rows(position, limit)
        may_be_seen = judge(search, rows)
        for at, record in enumerate(rows.records()):
            end = rows.position(at)
            if may_be_seen[at]:
                kept.append(record)
                places.append(end)
            if len(kept) == limit:
                is_last = at == rows.count - 1 and not rows.has_more
                return page(search, kept, places.__getitem__, end=None if is_last else end)
        if not rows.has_more:
            return page(search, kept, places.__getitem__, end=None)
        position = end
    return page(search, kept, places.__getitem__, end=end)


def judge(search: Search, rows: Rows) -> list[bool]:
    """The verdict on each row. Judges need whole objects: those of the site's own queryset."""
    model = search.reach.model
    names = [part.attname for part in search.reach.keys]
    keys = list(zip(*(rows.columns[name][: rows.count] for name in names), strict=True))
    with limited(search.using):
        objects = objects_of(search.rights.rows(model), keys)
    found = {tuple(getattr(obj, name) for name in names): obj for obj in objects}
    return [key in found and search.rights.may_view_object(found[key]) for key in keys]


def objects_of(base: QuerySet[Any], keys: Sequence[tuple[Any, ...]]) -> list[Any]:
    if base.query.is_sliced or base.query.combinator:  # Django cannot filter these any more
        base = base.model._base_manager.using(base.db)
    is_composite = len(base.model._meta.pk_fields) > 1
    return list(base.filter(pk__in=keys if is_composite else [key for (key,) in keys]))


def page(
    search: Search,
    records: list[dict[str, Any]],
    place: Callable[[int], list[Any]],
    *,
    end: list[Any] | None,
) -> Page:
    """`end` is where the next page goes on; a page that is too long in bytes ends before."""
    encoded, count = encoder.encode(records), len(records)
    most = get_config().max_response
    if len(encoded) > most and count > 1:
        encoded, count = fitting(records, most)
        end = place(count - 1)
    cursor = None if end is None else cursors.encode(search.bound(), end)
    return Page(encoded_records=encoded, count=count, next_cursor=cursor)


def fitting(records: list[dict[str, Any]], most: int) -> tuple[bytes, int]:
    parts: list[bytes] = []
    size = 1
    for record in records:
        part = encoder.encode(record)
        size += len(part) + 1
        if parts and size > most:
            break
        parts.append(part)
    return b"[" + b",".join(parts) + b"]", len(parts)


def page_limit(given: Any) -> int:
    config = get_config()
    if given is None:
        return config.page_size
    return values.integer(given, low=1, high=config.max_page_size)


def get_record(
    rights: Rights, exposure: ModelExposure, pk: Any, *, fields: Sequence[str] | None = None
) -> bytes:
    """One record as an encoded JSON object, with its texts whole.

    `pk` is a value, a text as in a URI, or a list of them for a composite key. Raises NotFound
    with one sentence whether it is missing, forbidden or no key, and QueryError for `fields`.
    """
    reach = reach_of(rights, exposure)
    base = rights.rows(exposure.model)
    shape = shape_of(reach, fields, whole=True)
    missing = NotFound(
        f"There is no {exposure.label} with the key {values.quoted(pk)}. "
        f'Call find_records with {{"model": "{exposure.label}"}} to see which there are.'
    )
    try:
        condition = key_condition(reach, pk, using=base.db)
    except QueryError:
        raise missing from None
    if rights.judges_objects(exposure.model):
        key = tuple(value for _, value in condition)
        with limited(base.db):
            objects = objects_of(base, [key])
        if not any(rights.may_view_object(obj) for obj in objects):
            raise missing
    query = guarded_query(base, reach.policy)
    query.add_q(Q(*condition))
    names = select(rights, query, shape, ())
    with limited(base.db):
        _, columns = read(query, using=base.db)
    if not columns:
        raise missing
    (record,) = shape.records(dict(zip(names, columns, strict=True)))
    return encoder.encode(record)


def key_condition(reach: Reach, pk: Any, *, using: str) -> list[tuple[str, Any]]:
    """What each part of the key must equal. Raises QueryError for what cannot be a key."""
    parts = reach.keys
    given = pk if isinstance(pk, list | tuple) else [pk]
    if len(given) != len(parts):
        raise QueryError("This is not a key.")
    return [
        (part.attname, key_value(part, value, using=using))
        for part, value in zip(parts, given, strict=True)
    ]


def key_value(part: Any, value: Any, *, using: str) -> Any:
    if kind_of(target_of(part)) != "other":
        return values.scalar(part, value, using=using, longest=LONGEST_KEY)
    # A class of the site's own knows its values; the text is one that every database takes.
    written = values.short(values.attempt(values.text, value, "text"), longest=LONGEST_KEY)
    try:
        return target_of(part).to_python(written)
    except Exception:
        raise QueryError("This is not a key.") from None


def count_records(rights: Rights, exposure: ModelExposure, *, most: int = 10_000) -> int | None:
    """How many records the caller may see. Above `most`: that there are more than `most`.

    None where rows are judged one by one, so that no database can count them.
    """
    if rights.judges_objects(exposure.model):
        return None
    base = rights.rows(exposure.model)
    rows = guarded(base, reach_of(rights, exposure).policy)
    with limited(base.db):
        return rows[: most + 1].count()

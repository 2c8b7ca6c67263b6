"""Reading records: one page, one record, how many. What leaves this module is encoded JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from django.db.models import QuerySet

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound, QueryError, unknown
from mcp_django.exposure import cursors, values
from mcp_django.exposure.budget import limited
from mcp_django.exposure.keys import parse_key
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.ordering import parse_order
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import Wanted, parse
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.records import Record, Shape, shape_of
from mcp_django.exposure.relations import Condition
from mcp_django.exposure.rows import guarded, settled
from mcp_django.exposure.searches import Rows, Search
from mcp_django.exposure.serializers import encoder

ARGUMENTS = (
    "filters", "exclude", "any_of", "search", "order_by", "fields", "limit", "cursor",
)  # fmt: skip
#: Pages of rows that may be judged one by one before a short page goes out.
OVERFETCH = 4


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some records. `next_cursor` is None at the end; a page may be short and have one."""

    #: A JSON array of objects.
    encoded_records: bytes
    count: int
    next_cursor: str | None


def find_records(rights: Rights, exposure: ModelExposure, arguments: Mapping[str, Any]) -> Page:
    """One page of the records that the caller may see and that the arguments leave.

    Raises QueryError for anything that cannot run, in words that say what would.
    """
    check_shows_records(exposure)
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
        wanted=parse(reach, arguments, using=using),
        using=using,
    )
    bound = partial(cursors.binding, rights, reach, arguments)
    position = None
    if arguments.get("cursor") is not None:
        position = cursors.decode(bound(), arguments["cursor"], size=len(search.order))
    find = judged if rights.judges_objects(exposure.model) else listed
    found = page(find(search, position, limit), bound)
    rights.returned = found.count
    return found


def check_shows_numbers(exposure: ModelExposure) -> None:
    """Raise QueryError where there is nothing but the definition."""
    if exposure.is_definition_only:
        raise QueryError(
            f"Of {exposure.label} only the definition is open, neither records nor numbers. Call "
            f'describe_model with {{"model": "{exposure.label}"}}.'
        )


def check_shows_records(exposure: ModelExposure) -> None:
    """Raise QueryError where there are numbers about records only, whatever is asked for."""
    check_shows_numbers(exposure)
    if exposure.aggregates_only:
        raise QueryError(
            f"Records of {exposure.label} are not shown, only numbers about groups of them. Call "
            f'aggregate_records with {{"model": "{exposure.label}"}}.'
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """Records, the place of each in the order, and where the next page goes on."""

    records: list[Record]
    place: Callable[[int], list[Any]]
    end: list[Any] | None


def listed(search: Search, position: Sequence[Any] | None, limit: int) -> Found:
    rows = search.rows(position, most=limit)
    end = rows.position(limit - 1) if rows.has_more else None
    return Found(records=rows.records(), place=rows.position, end=end)


def judged(search: Search, position: Sequence[Any] | None, limit: int) -> Found:
    """Rows that `has_view_permission(request, obj)` leaves, from a few pages at most.

    It goes on behind the last row that was looked at, so a short page with a cursor is no end.
    """
    kept: list[Record] = []
    places: list[list[Any]] = []
    for _ in range(OVERFETCH):
        rows = search.rows(position, most=limit + 1)
        verdicts = judge(search, rows)
        for at, record in enumerate(rows.records()):
            position = rows.position(at)
            if not verdicts[at]:
                continue
            if len(kept) == limit:
                # One more that may be seen: a cursor that led to none would tell of others.
                return Found(records=kept, place=places.__getitem__, end=places[-1])
            kept.append(record)
            places.append(position)
        if not rows.has_more:
            return Found(records=kept, place=places.__getitem__, end=None)
    return Found(records=kept, place=places.__getitem__, end=list(position or ()))


def judge(search: Search, rows: Rows) -> list[bool]:
    """The verdict on each row. Judges need whole objects: those of the site's own queryset."""
    model = search.reach.model
    names = [part.attname for part in search.reach.keys]
    keys = list(zip(*(rows.columns[name][: rows.count] for name in names), strict=True))
    with limited(search.using):
        objects = objects_of(search.rights.rows(model).using(search.using), keys)
    found = {tuple(getattr(obj, name) for name in names): obj for obj in objects}
    return [key in found and search.rights.may_view_object(model, found[key]) for key in keys]


def objects_of(base: QuerySet[Any], keys: Sequence[tuple[Any, ...]]) -> list[Any]:
    if base.query.is_sliced or base.query.combinator:  # Django cannot filter these any more
        base = base.model._base_manager.using(base.db)
    is_composite = len(base.model._meta.pk_fields) > 1
    return list(base.filter(pk__in=keys if is_composite else [key for (key,) in keys]))


def page(found: Found, bound: Callable[[], str]) -> Page:
    """Encode. A page that is too long in bytes ends early, with a cursor."""
    encoded, count, end = encoder.encode(found.records), len(found.records), found.end
    most = longest_answer()
    if len(encoded) > most and count > 1:
        encoded, count = fitting(found.records, most)
        end = found.place(count - 1)
    cursor = None if end is None else cursors.encode(bound(), end)
    return Page(encoded_records=encoded, count=count, next_cursor=cursor)


def fitting(records: Sequence[Any], most: int) -> tuple[bytes, int]:
    parts = [encoder.encode(record) for record in records]
    totals = accumulate(len(part) + 1 for part in parts)
    count = max(1, sum(total < most for total in totals))
    return b"[" + b",".join(parts[:count]) + b"]", count


def page_limit(given: Any) -> int:
    config = get_config()
    if given is None:
        return config.page_size
    return values.integer(given, low=1, high=config.max_page_size)


def get_record(
    rights: Rights,
    exposure: ModelExposure,
    pk: Any,
    *,
    fields: Sequence[str] | None = None,
    using: str | None = None,
) -> bytes:
    """One record as an encoded JSON object, with its texts whole.

    `pk` is a value, a text as in a URI, or a list of them for a composite key. Raises NotFound
    with one sentence whether it is missing, forbidden or no key, and QueryError for `fields`.
    With `using` it is read there: what was just written is on no replica yet.
    """
    check_shows_records(exposure)
    shape = shape_of(reach_of(rights, exposure), fields, whole=True)
    rows = row_of(rights, exposure, pk, shape=shape, using=using)
    encoded = encoder.encode(rows.records()[0])
    if len(encoded) > longest_answer():
        raise QueryError(
            f"This record has {len(encoded)} bytes, which is too long for one answer. Name some "
            f"of its fields: {json.dumps(list(shape.renders)[:2])}."
        )
    rights.returned = 1
    return encoded


def row_of(
    rights: Rights, exposure: ModelExposure, pk: Any, *, shape: Shape, using: str | None = None
) -> Rows:
    """The row with a key, as far as a shape takes it. Raises NotFound as `get_record` does."""
    reach = reach_of(rights, exposure)
    rows = rights.rows(exposure.model)
    base = settled(rows) if using is None else rows.using(using)
    missing = missing_record(exposure, pk)
    try:
        key = key_conditions(reach, pk, using=base.db)
    except QueryError:
        raise missing from None
    if rights.judges_objects(exposure.model):
        with limited(base.db):
            objects = objects_of(base, [tuple(one.value for one in key)])
        if not any(rights.may_view_object(exposure.model, obj) for obj in objects):
            raise missing
    search = Search(
        rights=rights,
        reach=reach,
        shape=shape,
        order=(),
        wanted=Wanted(filters=key),
        using=base.db,
    )
    found = search.rows(None, most=1)
    if not found.count:
        raise missing
    return found


def missing_record(exposure: ModelExposure, pk: Any) -> NotFound:
    return NotFound(
        f"There is no {exposure.label} with the key {values.quoted(pk)}. "
        f'Call find_records with {{"model": "{exposure.label}"}} to see which there are.'
    )


def longest_answer() -> int:
    """Bytes of records in one answer: they travel twice, as text and as data."""
    return get_config().max_response // 2


def key_conditions(reach: Reach, pk: Any, *, using: str) -> list[Condition]:
    """What each part of the key must equal. Raises QueryError for what cannot be a key."""
    key = parse_key(reach.model, pk, using=using)
    return [
        Condition(path=path, operator="exact", value=value)
        for path, value in zip(reach.key_paths, key, strict=True)
    ]


def count_records(rights: Rights, exposure: ModelExposure, *, most: int = 10_000) -> int | None:
    """How many records the caller may see. Above `most`: that there are more than `most`.

    None where rows are judged one by one, so that no database can count them.
    """
    if rights.judges_objects(exposure.model):
        return None
    rows = settled(guarded(rights.rows(exposure.model), reach_of(rights, exposure).policy))
    with limited(rows.db):
        return rows[: most + 1].count()

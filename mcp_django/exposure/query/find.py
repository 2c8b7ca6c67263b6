"""Reading records: one page, one record, how many. What leaves this module is encoded JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from django.db.models import Model
from msgspec import UNSET

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound, QueryError, unknown
from mcp_django.exposure.fields import quoted
from mcp_django.exposure.limits import limited
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import INCLUDE, RETURN, parse_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import pagination
from mcp_django.exposure.query.access import AccessiblePaths, Condition, allowed_paths
from mcp_django.exposure.query.arguments import FindRecords, or_default
from mcp_django.exposure.query.computed import ComputedCells, computed_columns, ordered_by_paths
from mcp_django.exposure.query.filters import ParsedFilters, note_on_texts, parse
from mcp_django.exposure.query.guard import guarded, pinned_to_database
from mcp_django.exposure.query.included import IncludedRelation
from mcp_django.exposure.query.pagination import page_limit, parse_order
from mcp_django.exposure.query.paths_by_rule import RelationStep, Rule, paths_of_call
from mcp_django.exposure.query.search import Rows, Search
from mcp_django.exposure.query.selection import (
    MAX_FIELDS,
    Selection,
    is_list_of_names,
    select_paths,
)
from mcp_django.exposure.query.serializers import encoder
from mcp_django.exposure.query.tables import (
    Table,
    concatenated,
    encode_fitting,
    longest_answer,
    with_members,
    with_short_texts,
)

#: Pages of rows that may be judged one by one before a short page goes out.
OVERFETCH = 4
#: Rows that may be judged one by one for the first record of a page.
FARTHEST = 5_000
TOO_SPARSE = (
    "Too many records had to be checked for the next one that you may see. Narrow the search with "
    "filters, or order it in another way, and call again without a cursor."
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some records, or groups of them. `next_cursor` is None at the end; a page may be short and
    have one.
    """

    #: A JSON object, as `Table.encoded`.
    encoded: bytes
    #: The same rows.
    table: Table
    next_cursor: str | None = None
    #: What the caller should know of the answer.
    note: str = ""

    @property
    def count(self) -> int:
        return len(self.table.rows)

    @property
    def answer(self) -> bytes:
        """The page with what leads on: `next`, as long as there is more."""
        more = {} if self.next_cursor is None else {"next": self.next_cursor}
        return with_members(self.encoded, more | ({"note": self.note} if self.note else {}))


#: Relations in one call.
MOST_RELATIONS = 4
#: Related records of one record, in a page and alone.
MOST_IN_PAGE, MOST_IN_RECORD = 20, 100
#: Records in a page that shows more than paths.
MOST_RECORDS = 50


def parse_selection(
    rights: Rights,
    access: AccessiblePaths,
    fields: Any,
    include: Any,
    *,
    whole: bool = False,
    all_computed: bool = False,
    using: str | None = None,
    obj: Any = None,
) -> Selection:
    """Return what `fields` and `include` name: paths, relations that lead to many records, and
    computed columns; with `all_computed` every one of these, unless there are `fields`. Raises
    QueryError for anything else.
    """
    if fields is not None and not is_list_of_names(fields):
        names = access.names(RETURN)
        raise QueryError(
            f"fields takes a list of 1 to {MAX_FIELDS} names, such as {names[:3]}."
            if names
            else "fields: This model shows none."
        )
    paths, others = fields, [name for name in fields or () if name not in access.column_table]
    if others:
        paths = [name for name in fields if name not in others]
    all_computed = all_computed and fields is None
    computed = computed_columns(rights, access.exposure) if all_computed else {}
    if include in (UNSET, []) and not (others or computed):  # nearly always
        return select_paths(access, paths, whole=whole)
    rule = Rule(rights, access)
    relations = parse_include(rule, include)
    for name in others:
        step = rule.relation(name)
        if step is not None and INCLUDE in step.uses:
            relations[name] = step
    if len(relations) > MOST_RELATIONS:
        raise QueryError(
            f"include and fields name {len(relations)} relations that lead to many records. At "
            f"most {MOST_RELATIONS} fit into one call."
        )
    if others := [name for name in dict.fromkeys(others) if name not in relations]:
        columns = computed_columns(rights, access.exposure)
        for name in others:
            if name not in columns:
                raise unknown(name, [*access.names(RETURN), *columns], "fields")
        computed = {name: columns[name] for name in others}
    cells = ComputedCells(rights, access, whole=whole, using=using, obj=obj)
    most = MOST_IN_RECORD if whole else MOST_IN_PAGE
    related = {
        name: IncludedRelation(rights=rights, access=access, step=step, most=most)
        for name, step in relations.items()
    }
    return select_paths(access, paths, whole=whole).extended(
        {name: (one.key, one.cells) for name, one in related.items()}
        | {name: (cells.key, partial(cells.of, one)) for name, one in computed.items()}
    )


def parse_include(rule: Rule, include: Any) -> dict[str, RelationStep]:
    if include in (UNSET, []):
        return {}
    if not isinstance(include, list | tuple) or len(include) > MOST_RELATIONS:
        raise QueryError(f"include takes a list of 1 to {MOST_RELATIONS} relations.")
    relations = {}
    for name in include:
        step = rule.relation(name) if isinstance(name, str) else None
        if step is None or INCLUDE not in step.uses:
            if step is not None and not step.hop.is_many:
                raise QueryError(
                    f"include: {name} leads to one record. Name {name}__<field> in fields."
                )
            many = [name for name, step in rule.relations.items() if INCLUDE in step.uses]
            raise unknown(name, many, "include")
        relations[name] = step
    return relations


def find_records(
    rights: Rights,
    exposure: ModelExposure,
    asked: FindRecords,
    *,
    longest: int | None = None,
    whole: bool = False,
) -> Page:
    """One page of the records that the caller may see and that the arguments leave, in at most
    `longest` bytes. With `whole` it is for a person: texts are whole, and have no fences.

    Raises QueryError for anything that cannot run, in words that say what would.
    """
    check_shows_records(exposure)
    access = paths_of_call(rights, exposure, asked)
    ordered = ordered_by_paths(rights, access, asked)
    if ordered is not asked:
        asked, access = ordered, paths_of_call(rights, exposure, ordered)
    using = rights.rows(exposure.model).db
    fields = or_default(asked.fields)
    selection = parse_selection(rights, access, fields, asked.include, whole=whole)
    config = get_config()
    most = config.max_page_size
    if selection.is_for_one_call:
        most = min(most, MOST_RECORDS)
    limit, note = page_limit(or_default(asked.limit), default=config.page_size, most=most)
    order = parse_order(access, or_default(asked.order_by))
    search = Search(
        rights=rights,
        access=access,
        selection=selection,
        order=order,
        parsed_filters=parse(rights, access, asked, using=using),
        using=using,
        counts_records=not pagination.is_shown(access, order),
        is_answer=not whole,
    )
    bound = partial(pagination.binding, rights, access, asked)
    position = None
    # Some clients write "null" for no value.
    if asked.cursor is not UNSET and asked.cursor != "null":
        position = pagination.decode(bound(), asked.cursor)
    if rights.checks_rows_one_by_one(exposure.model):
        page = page_of_permitted(search, position, limit)
    else:
        rows = search.rows(position, most=limit)
        page = PageRows(table=rows.table(), place=rows.position, has_more=rows.has_more)
        if position is None and not rows.count:
            about_texts = note_on_texts(search.parsed_filters, search.count)
            note = " ".join(filter(None, [note, about_texts]))
    encoded, table = encode_fitting(page.table, longest or longest_answer())
    cursor, count = None, len(table.rows)
    # A page that is too long in bytes ends early.
    if page.has_more or count < len(page.table.rows):
        cursor = pagination.encode(bound(), page.place(count - 1))
    return Page(encoded=encoded, table=table, next_cursor=cursor, note=note)


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
class PageRows:
    """Rows, the place of each in the order, and whether there are more."""

    table: Table
    place: Callable[[int], list[Any]]
    has_more: bool


def page_of_permitted(search: Search, position: Sequence[Any] | None, limit: int) -> PageRows:
    """Rows that `has_view_permission(request, obj)` leaves. Raises QueryError where they are rare.

    A cursor holds nothing of a hidden row: a page ends with a row that may be seen, and a position
    that is a number counts such rows alone.
    """
    skip = 0
    if search.counts_records and position is not None:
        [skip], position = position, None
    found: list[tuple[Rows, int]] = []
    has_more, looked_at = True, 0
    # One more that may be seen: a cursor that led to none would tell of others.
    while has_more and len(found) <= skip + limit:
        is_sparse = looked_at >= OVERFETCH * (limit + 1)
        if is_sparse and len(found) > skip:
            break
        if looked_at >= FARTHEST:
            raise QueryError(TOO_SPARSE)
        rows = search.rows(position, most=get_config().max_page_size if is_sparse else limit + 1)
        looked_at += rows.count
        has_more = rows.has_more
        position = rows.position(rows.count - 1) if has_more else None
        found += [(rows, at) for at, may_view in enumerate(judge(search, rows)) if may_view]
    page = found[skip : skip + limit]

    def place(at: int) -> list[Any]:
        shown, row = page[at]
        return [skip + at + 1] if search.counts_records else shown.position(row)

    groups = groupby(page, key=lambda one: one[0])
    tables = [shown.table([at for _, at in group]) for shown, group in groups]
    table = concatenated(tables or [rows.table([])])
    return PageRows(table=table, place=place, has_more=has_more or len(found) > skip + limit)


def judge(search: Search, rows: Rows) -> list[bool]:
    """Whether the caller may view the object of each row."""
    model = search.access.model
    names = [part.attname for part in search.access.keys]
    keys = list(zip(*(rows.columns[name][: rows.count] for name in names), strict=True))
    objects = objects_of(search.rights, model, keys, using=search.using)
    permitted = {tuple(getattr(one, name) for name in names) for one in objects}
    return [key in permitted for key in keys]


def objects_of(
    rights: Rights, model: type[Model], keys: Sequence[tuple[Any, ...]], *, using: str
) -> list[Any]:
    """The objects with these keys, out of the site's own queryset, that the caller may view."""
    base = rights.rows(model).using(using)
    if base.query.is_sliced or base.query.combinator:  # Django cannot filter these any more
        base = model._base_manager.using(using)
    is_composite = len(model._meta.pk_fields) > 1
    with limited(using):
        objects = list(base.filter(pk__in=keys if is_composite else [key for (key,) in keys]))
    if rights.checks_rows_one_by_one(model):
        return [one for one in objects if rights.may_view_object(model, one)]
    return objects


def get_record(
    rights: Rights,
    exposure: ModelExposure,
    pk: Any,
    *,
    fields: Sequence[str] | None = None,
    include: Any = UNSET,
    all_computed: bool = False,
    using: str | None = None,
    obj: Any = None,
    longest: int | None = None,
) -> bytes:
    """One record as an encoded JSON object, with its texts whole, or with their beginnings where
    it has more than `longest` bytes.

    `pk` is a value, a text as in a URI, or a list of them for a composite key. Raises NotFound
    with one sentence whether it is missing, forbidden or no key, and QueryError for `fields`.
    With `using` it is read there: what was just written is on no replica yet. `obj` is the record
    if `find_object` has given it to code of the site already.
    """
    check_shows_records(exposure)
    access = paths_of_call(rights, exposure, {"fields": fields})
    options: dict[str, Any] = {"all_computed": all_computed, "using": using, "obj": obj}
    selection = parse_selection(rights, access, fields, include, whole=True, **options)
    row = row_of(rights, access, pk, selection=selection, using=using, is_judged=obj is not None)
    table = row.table()
    encoded = encoder.encode(table.objects()[0])
    if longest is not None and len(encoded) > longest:
        encoded = encoder.encode(with_short_texts(table).objects()[0])
        if len(encoded) > longest:
            raise QueryError(
                f"This record has {len(encoded)} bytes, which is too long for one answer, with "
                "its texts cut. Name fewer fields, without include."
            )
    return encoded


#: Characters before the words that a part of a text is read for.
BEFORE_WORDS = 200


def part_of_text(text: str, *, offset: int, search: str, longest: int) -> dict[str, Any]:
    """Return the part of a text from a character on, or from the first place behind it that has
    some words, as far as it fits into that many bytes; `next` is where the text goes on.

    Raises QueryError where there is none.
    """
    length, found = len(text), {}
    if not 0 <= offset < max(length, 1):
        raise QueryError(f"offset: The text has {length} characters. Name one from 0 on.")
    if search:
        match = re.compile(re.escape(search), re.IGNORECASE).search(text, offset)
        if match is None:
            raise QueryError(f"search: {quoted(search)} is not there from character {offset} on.")
        found = {"found_at": match.start()}
        offset = max(offset, match.start() - BEFORE_WORDS)
    size = longest
    while (encoded := len(encoder.encode(part := text[offset : offset + size]))) > longest:
        if size == 1:  # a character at least, or nothing would come of it
            break
        size = max(1, size * longest // encoded)
    end = offset + len(part)
    more = {"next": end} if end < length else {}
    return {"text": part, "offset": offset, "length": length, **found, **more}


def row_of(
    rights: Rights,
    access: AccessiblePaths,
    pk: Any,
    *,
    selection: Selection,
    using: str | None = None,
    is_judged: bool = False,
) -> Rows:
    """The row with a key, as far as a selection takes it. Raises NotFound as `get_record` does."""
    rows = rights.rows(access.model)
    base = pinned_to_database(rows) if using is None else rows.using(using)
    missing = missing_record(access.exposure, pk)
    try:
        key = parse_key(access.model, pk, using=base.db)
    except QueryError:
        raise missing from None
    is_judged = is_judged or not rights.checks_rows_one_by_one(access.model)
    if not is_judged and not objects_of(rights, access.model, [key], using=base.db):
        raise missing
    filters = [
        Condition(path=path, operator="exact", value=value)
        for path, value in zip(access.key_paths, key, strict=True)
    ]
    search = Search(
        rights=rights,
        access=access,
        selection=selection,
        parsed_filters=ParsedFilters(filters=filters),
        using=base.db,
    )
    found = search.rows(None, most=1)
    if not found.count:
        raise missing
    return found


def missing_record(exposure: ModelExposure, pk: Any) -> NotFound:
    return NotFound(
        f"There is no {exposure.label} with the key {quoted(pk)}. "
        f'Call find_records with {{"model": "{exposure.label}"}} to see which there are.'
    )


def count_records(rights: Rights, exposure: ModelExposure, *, most: int = 10_000) -> int | None:
    """How many records the caller may see. Above `most`: that there are more than `most`.

    None where rows are judged one by one, so that no database can count them.
    """
    if rights.checks_rows_one_by_one(exposure.model):
        return None
    rows = pinned_to_database(
        guarded(rights.rows(exposure.model), allowed_paths(rights, exposure).policy)
    )
    with limited(rows.db):
        return rows[: most + 1].count()

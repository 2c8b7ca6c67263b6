"""Reading records: one page, one record, how many. What leaves this module is encoded JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connections
from django.db.models import Model, Q
from django.db.models.expressions import Col
from django.db.models.lookups import Lookup
from django.db.models.sql.where import AND, WhereNode
from msgspec import UNSET

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure import fields as values
from mcp_django.exposure.fields import log_once
from mcp_django.exposure.limits import limited
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import parse_key
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import pagination
from mcp_django.exposure.query.access import AccessiblePaths, Condition, allowed_paths, policy_of
from mcp_django.exposure.query.arguments import FindRecords, or_default
from mcp_django.exposure.query.filters import ParsedFilters, note_on_texts, parse
from mcp_django.exposure.query.guard import (
    GuardedQuery,
    guarded,
    guarded_query,
    is_plain,
    pinned_to_database,
)
from mcp_django.exposure.query.pagination import Ordering, after, page_limit, parse_order
from mcp_django.exposure.query.paths_by_rule import paths_of_call
from mcp_django.exposure.query.serializers import Columns, Values, encoder
from mcp_django.exposure.query.tables import (
    RecordLayout,
    Table,
    concatenated,
    encode_fitting,
    label,
    layout_of,
    longest_answer,
    with_members,
)

# How rows are read: in one query, as columns of values.

#: Stands for a value that its field fails on. What is stored may be enciphered, so it stays out.
UNREADABLE = "<unreadable>"


def labels_by_key(
    rights: Rights, model: type[Model], key: str, columns: Sequence[str], wanted: Iterable[Any]
) -> dict[Any, str]:
    """The labels of those rows of the site, out of these, by the column `key`."""
    # Each once: Django 5.2.0 forgets a column that is named twice.
    names = list(dict.fromkeys([key, *columns]))
    places = [names.index(column) for column in columns]
    rows = pinned_to_database(guarded(rights.rows(model), policy_of(model, names)))
    with limited(rows.db):
        found = rows.filter(Q((f"{key}__in", wanted))).values_list(*names)
        return {row[0]: label([row[place] for place in places]) for row in found}


def select(
    rights: Rights, query: GuardedQuery, layout: RecordLayout, extra: Sequence[str]
) -> list[str]:
    """Put the columns of a layout, and those of the order, into a query. Returns their names."""
    names = list(dict.fromkeys((*layout.lookups, *extra)))
    for check, path in layout.checks.items():
        model = path.field.related_model
        key = path.field.target_field.attname
        visible = guarded(rights.rows(model), policy_of(model, [key])).values(key)
        query.add_annotation(Q((f"{path.lookup}__in", visible)), check)
    names += layout.checks
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
            columns[at] = converted(columns[at], converters, expression, compiler.connection)
    return rows, columns


def converted(
    column: Values, converters: Sequence[Any], expression: Any, connection: Any
) -> Values:
    """Values as fields have them. Where code of a field fails on one, the others are there."""
    for convert in converters:
        try:
            column = [convert(value, expression, connection) for value in column]
        except Exception as error:
            name = str(getattr(expression, "target", expression))
            log_once(name, "has values that cannot be read.", error)
            column = [attempt(convert, value, expression, connection) for value in column]
    return column


def attempt(convert: Any, value: Any, expression: Any, connection: Any) -> Any:
    try:
        return UNREADABLE if value is UNREADABLE else convert(value, expression, connection)
    except Exception:  # logged by the caller
        return UNREADABLE


# SQL that passed the guard once, run again with other values.
#
# A plan is kept with the paths of a caller for one layout, so it ends with the rights and the
# declarations that it was made under. Its text is only sent when the WHERE that the new values
# make is the same to the letter: no SQL leaves that the guard has not seen.

#: Plans that are remembered for one set of paths.
MOST_PLANS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    query: GuardedQuery
    sql: str
    #: The condition in `sql`, and the comparisons that it is made of.
    where: str | None
    comparisons: tuple[tuple[type[Lookup[Any]], Any], ...]
    select: Any
    names: list[str]

    def run(self, values: Sequence[Any], *, using: str) -> tuple[list[Any], list[Values]] | None:
        """The rows for these values, or None where they need SQL of another form."""
        compiler: Any = self.query.get_compiler(using)
        params: Sequence[Any] = ()
        if self.where is not None:
            children: list[Any] = [
                kind(lhs, value)
                for (kind, lhs), value in zip(self.comparisons, values, strict=True)
            ]
            try:
                where, params = compiler.compile(WhereNode(children))
            except (EmptyResultSet, FullResultSet):
                return None
            if where != self.where:
                return None
        compiler.select = self.select
        return read(compiler, self.sql, params)


def make_plan(
    query: GuardedQuery, compiler: Any, sql: str, params: Sequence[Any], names: list[str]
) -> Plan | None:
    """A plan of a query that was compiled just now, if its only values are compared columns."""
    children: list[Any] = query.where.children
    where, found = compiler.compile(query.where) if children else (None, ())
    is_simple = (
        query.where.connector == AND
        and not query.where.negated
        and all(isinstance(one, Lookup) and type(one.lhs) is Col for one in children)
        and list(found) == list(params)
    )
    if not is_simple:
        return None
    return Plan(
        query=query,
        sql=sql,
        where=where,
        comparisons=tuple((type(one), one.lhs) for one in children),
        select=compiler.select,
        names=names,
    )


# One understood call and the rows that it brings, from SQL made now or kept from before.


@dataclass(frozen=True, kw_only=True)
class Search:
    """One understood call: everything but the rows."""

    rights: Rights
    access: AccessiblePaths
    layout: RecordLayout
    order: Sequence[Ordering]
    parsed_filters: ParsedFilters
    using: str
    #: Whether a position is the number of records before it. What the caller may not see, such as
    #: a key that is not in `fields`, must not be in a cursor.
    counts_records: bool = False
    #: Whether a model reads what is found.
    is_answer: bool = True

    def rows(self, position: Sequence[Any] | None, *, most: int) -> Rows:
        """At most `most` rows behind a position, and whether there are more."""
        key = self.plan_key(most) if position is None else None
        with limited(self.using):
            plan = None if key is None else self.access.plans.get(key)
            if plan is not None:
                found = plan.run(
                    [one.value for one in self.parsed_filters.filters], using=self.using
                )
                if found is not None:
                    return Rows(self, *found, names=plan.names, most=most)
            return self.compiled(position, most=most, key=key)

    def plan_key(self, most: int) -> Any:
        """The layout of a call whose SQL depends on nothing else, or None."""
        base = self.rights.rows(self.access.model)
        if not (self.parsed_filters.is_conjunction and is_plain(base.query)):
            return None
        if self.layout.checks or self.layout.is_for_one_call:
            return None
        conditions: list[Any] = []
        for one in self.parsed_filters.filters:
            if one.transform or self.access.needs_subquery(one.path) is not None:
                return None
            has_layout = one.operator in ("isnull", "in")
            conditions.append((one.path, one.operator, has_layout and form_of(one.value)))
        terms = tuple(one.term for one in self.order)
        return base.model, self.using, self.layout, terms, tuple(conditions), most

    def compiled(self, position: Sequence[Any] | None, *, most: int, key: Any) -> Rows:
        query = guarded_query(self.rights.rows(self.access.model), self.access.policy)
        condition = self.parsed_filters.build(self.rights, self.access)
        if condition:
            query.add_q(condition)
        start = 0
        if position is not None and self.counts_records:
            [start] = position
        elif position is not None:
            query.add_q(after(self.order, position, using=self.using))
        query.add_ordering(*(one.term for one in self.order))
        names = select(self.rights, query, self.layout, [one.lookup for one in self.order])
        query.set_limits(start, start + most + 1)
        compiler: Any = query.get_compiler(self.using)
        try:
            sql, params = compiler.as_sql()
        except EmptyResultSet:
            return Rows(self, [], [], names=names, most=most, start=start)
        if key is not None:
            plans = self.access.plans
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plans[key] = make_plan(query, compiler, sql, params, names)
        return Rows(self, *read(compiler, sql, params), names=names, most=most, start=start)

    def count(self, parsed_filters: ParsedFilters, *, most: int) -> int:
        """How many records other filters find, or one more than `most`."""
        rows = guarded(self.rights.rows(self.access.model), self.access.policy).using(self.using)
        condition = parsed_filters.build(self.rights, self.access)
        with limited(self.using):
            return rows.filter(condition)[: most + 1].count()


def form_of(value: Any) -> Any:
    return len(value) if isinstance(value, list) else value


class Rows:
    """What one query brought: rows as the driver gave them, and their columns by name."""

    def __init__(
        self,
        search: Search,
        raw: list[Any],
        columns: Sequence[Sequence[Any]],
        *,
        names: Sequence[str],
        most: int,
        start: int = 0,
    ) -> None:
        self.search = search
        self.start = start
        self.raw = raw
        self.names = names
        self.columns = dict(zip(names, columns or [()] * len(names), strict=True))
        self.has_more = len(raw) > most
        self.count = min(len(raw), most)

    def position(self, at: int) -> list[Any]:
        """What a cursor keeps of a row."""
        if self.search.counts_records:
            return [self.start + at + 1]
        vendor = connections[self.search.using].vendor
        return [
            one.position(
                self.raw[at][self.names.index(one.lookup)],
                self.columns[one.lookup][at],
                vendor=vendor,
            )
            for one in self.search.order
        ]

    def table(self, places: Sequence[int] | None = None) -> Table:
        """Those of the page, or at some places: what no answer shows is not made."""
        columns: Columns = self.columns
        if places is not None:
            columns = {name: [found[at] for at in places] for name, found in columns.items()}
        elif self.has_more:
            columns = {name: found[: self.count] for name, found in columns.items()}
        search = self.search
        return search.layout.table(columns, search.rights, is_answer=search.is_answer)


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
    """Some records. `next_cursor` is None at the end; a page may be short and have one."""

    #: A JSON object, as `Table.encoded`.
    encoded: bytes
    #: The same rows.
    table: Table
    next_cursor: str | None
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


#: Like `layout_of`. Another one may know more names, such as those of related records.
LayoutOf: TypeAlias = Callable[..., RecordLayout]


def find_records(
    rights: Rights, exposure: ModelExposure, asked: FindRecords, *, layout_of: LayoutOf = layout_of
) -> Page:
    """One page of the records that the caller may see and that the arguments leave.

    Raises QueryError for anything that cannot run, in words that say what would.
    """
    check_shows_records(exposure)
    access = paths_of_call(rights, exposure, asked)
    using = rights.rows(exposure.model).db
    layout = layout_of(access, or_default(asked.fields))
    config = get_config()
    most = min(config.max_page_size, layout.most_in_page)
    limit, note = page_limit(or_default(asked.limit), default=config.page_size, most=most)
    order = parse_order(access, or_default(asked.order_by))
    search = Search(
        rights=rights,
        access=access,
        layout=layout,
        order=order,
        parsed_filters=parse(rights, access, asked, using=using),
        using=using,
        counts_records=not pagination.is_shown(access, order),
    )
    bound = partial(pagination.binding, rights, access, asked)
    position = None
    if asked.cursor is not UNSET:
        position = pagination.decode(bound(), asked.cursor)
    if rights.checks_rows_one_by_one(exposure.model):
        return page(page_of_permitted(search, position, limit), bound, note=note)
    rows = search.rows(position, most=limit)
    end = rows.position(limit - 1) if rows.has_more else None
    if position is None and not rows.count:
        about_texts = note_on_texts(search.parsed_filters, search.count)
        note = " ".join(filter(None, [note, about_texts]))
    return page(PageRows(table=rows.table(), place=rows.position, end=end), bound, note=note)


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
    """Rows, the place of each in the order, and where the next page goes on."""

    table: Table
    place: Callable[[int], list[Any]]
    end: list[Any] | None


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

    is_end = not has_more and len(found) <= skip + limit
    groups = groupby(page, key=lambda one: one[0])
    tables = [shown.table([at for _, at in group]) for shown, group in groups]
    table = concatenated(tables or [rows.table([])])
    return PageRows(table=table, place=place, end=None if is_end else place(len(page) - 1))


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


def page(found: PageRows, bound: Callable[[], str], *, note: str) -> Page:
    """Encode. A page that is too long in bytes ends early, with a cursor."""
    encoded, table = encode_fitting(found.table)
    count = len(table.rows)
    end = found.end if count == len(found.table.rows) else found.place(count - 1)
    cursor = None if end is None else pagination.encode(bound(), end)
    return Page(encoded=encoded, table=table, next_cursor=cursor, note=note)


def get_record(
    rights: Rights,
    exposure: ModelExposure,
    pk: Any,
    *,
    fields: Sequence[str] | None = None,
    using: str | None = None,
    layout_of: LayoutOf = layout_of,
) -> bytes:
    """One record as an encoded JSON object, with its texts whole.

    `pk` is a value, a text as in a URI, or a list of them for a composite key. Raises NotFound
    with one sentence whether it is missing, forbidden or no key, and QueryError for `fields`.
    With `using` it is read there: what was just written is on no replica yet.
    """
    check_shows_records(exposure)
    access = paths_of_call(rights, exposure, {"fields": fields})
    layout = layout_of(access, fields, whole=True)
    rows = row_of(rights, exposure, pk, layout=layout, using=using, access=access)
    encoded = encoder.encode(rows.table().objects()[0])
    if len(encoded) > longest_answer():
        raise QueryError(
            f"This record has {len(encoded)} bytes, which is too long for one answer. Name some "
            f"of its fields: {json.dumps(list(layout.renders)[:2])}."
        )
    return encoded


def row_of(
    rights: Rights,
    exposure: ModelExposure,
    pk: Any,
    *,
    layout: RecordLayout,
    using: str | None = None,
    access: AccessiblePaths | None = None,
) -> Rows:
    """The row with a key, as far as a layout of `access` takes it.

    Raises NotFound as `get_record` does.
    """
    access = access or allowed_paths(rights, exposure)
    rows = rights.rows(exposure.model)
    base = pinned_to_database(rows) if using is None else rows.using(using)
    missing = missing_record(exposure, pk)
    try:
        key = key_conditions(access, pk, using=base.db)
    except QueryError:
        raise missing from None
    if rights.checks_rows_one_by_one(exposure.model):
        keys = [tuple(one.value for one in key)]
        if not objects_of(rights, exposure.model, keys, using=base.db):
            raise missing
    search = Search(
        rights=rights,
        access=access,
        layout=layout,
        order=(),
        parsed_filters=ParsedFilters(filters=key),
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


def key_conditions(access: AccessiblePaths, pk: Any, *, using: str) -> list[Condition]:
    """What each part of the key must equal. Raises QueryError for what cannot be a key."""
    key = parse_key(access.model, pk, using=using)
    return [
        Condition(path=path, operator="exact", value=value)
        for path, value in zip(access.key_paths, key, strict=True)
    ]


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

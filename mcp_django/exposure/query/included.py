"""Related records beside a record: some of each relation that leads to many, and their number.

They are read with the rights of their own model, with two queries for each relation, whatever the
number of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber
from msgspec import UNSET

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.limits import limited
from mcp_django.exposure.paths import FILTER, INCLUDE, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, Condition, RelationSubquery
from mcp_django.exposure.query.filters import ParsedFilters
from mcp_django.exposure.query.find import Search
from mcp_django.exposure.query.guard import pinned_to_database
from mcp_django.exposure.query.paths_by_rule import RelationStep, Rule
from mcp_django.exposure.query.serializers import Columns, Values
from mcp_django.exposure.query.tables import (
    RecordLayout,
    RelatedTable,
    Row,
    Table,
    is_list_of_names,
    layout_of,
)

#: Relations in one call.
MOST_RELATIONS = 4
#: Records in a page that has them.
MOST_RECORDS = 50
#: Related records of one record, in a page and alone.
MOST_IN_PAGE, MOST_IN_RECORD = 20, 100


def with_included(
    rights: Rights,
    access: AccessiblePaths,
    fields: Any,
    *,
    include: Any = UNSET,
    most: int,
    whole: bool = False,
) -> RecordLayout:
    """`layout_of` with a `RelatedTable` for each of some relations.

    They are those of `include`, and those that `fields` names among its paths. Where there are
    more than `most` rows, its `rest` is the call of find_records that gives all, if this caller
    may filter the other model by the relation. Raises QueryError for what is no relation that
    leads to many records and may be followed.
    """
    listed = list_of_relations(include)
    others = names_beyond_paths(access, fields)
    if not listed and not others:  # nearly always
        return layout_of(access, fields, whole=whole)
    rule = Rule(rights, access)
    among_fields = [
        name for name in others if (step := rule.relation(name)) and INCLUDE in step.uses
    ]
    paths = [name for name in fields if name not in among_fields] if among_fields else fields
    # Nothing but relations may be left: that is no path, and not the default.
    layout = layout_of(access, tuple(paths) if among_fields else fields, whole=whole)
    names = [*listed, *(name for name in among_fields if name not in listed)]
    if len(names) > MOST_RELATIONS:
        raise QueryError(
            f"include and fields name {len(names)} relations that lead to many records. At most "
            f"{MOST_RELATIONS} fit into one call."
        )
    found = replace(layout, lookups=dict(layout.lookups), renders=dict(layout.renders))
    for relation in [find_relation(rule, name, most=most) for name in names]:
        near = relation.step.hop.link[0].attname
        found.lookups[near] = None
        found.renders[relation.step.hop.name] = partial(members_of, relation, near)
    found.is_for_one_call, found.most_in_page = True, MOST_RECORDS
    return found


@dataclass(frozen=True, kw_only=True)
class IncludedRelation:
    """One relation, the rows behind it, and how many of them a record may have beside it."""

    rights: Rights
    access: AccessiblePaths
    step: RelationStep
    most: int


def list_of_relations(include: Any) -> Sequence[Any]:
    if include in (UNSET, []):
        return ()
    if not isinstance(include, list | tuple) or len(include) > MOST_RELATIONS:
        raise QueryError(f"include takes a list of 1 to {MOST_RELATIONS} relations.")
    return include


def names_beyond_paths(access: AccessiblePaths, fields: Any) -> list[str]:
    """What `fields` names that no record shows: relations, or what does not exist."""
    if fields is None or not is_list_of_names(fields):
        return []
    return list(dict.fromkeys(name for name in fields if name not in access.column_table))


def relations_to_include(rule: Rule) -> dict[str, RelationStep]:
    return {name: step for name, step in rule.relations.items() if INCLUDE in step.uses}


def find_relation(rule: Rule, name: Any, *, most: int) -> IncludedRelation:
    many = relations_to_include(rule)
    if isinstance(name, str) and name in rule.relations and not rule.relations[name].hop.is_many:
        raise QueryError(f"include: {name} leads to one record. Name {name}__<field> in fields.")
    if not isinstance(name, str) or name not in many:
        raise unknown(name, many, "include")
    return IncludedRelation(rights=rule.rights, access=rule.access, step=many[name], most=most)


def members_of(relation: IncludedRelation, near: str, columns: Columns) -> Values:
    """What stands beside each record."""
    keys = columns[near]
    links = links_of(relation, keys)
    table, shown = related_records(relation, {pk for _, pks in links.values() for pk in pks})
    return [beside(relation, key, *links.get(str(key), (0, ())), table, shown) for key in keys]


def beside(
    relation: IncludedRelation,
    key: Any,
    count: int,
    pks: Sequence[Any],
    table: Table,
    shown: dict[Any, Row],
) -> RelatedTable:
    rows = [shown[pk] for pk in pks if pk in shown]
    back, rest = name_of_back(relation), None
    if count > len(pks) and back is not None:
        arguments = {"model": relation.step.access.exposure.label, "filters": {back: key}}
        rest = {"tool": "find_records", "arguments": arguments}
    return RelatedTable(count=count, table=replace(table, rows=rows), rest=rest)


def name_of_back(relation: IncludedRelation) -> str | None:
    """The filter of the related model that leads back, if this caller has one."""
    field = relation.step.hop.field
    name = field.field.name if field.auto_created else getattr(field.remote_field, "name", None)
    target = relation.step.access
    if name is None or name in target.tables[FILTER]:
        return name
    by_rule = Rule(relation.rights, target).find(name)
    return name if by_rule is not None and by_rule.path.text == name else None


def links_of(
    relation: IncludedRelation, keys: Iterable[Any]
) -> dict[str, tuple[int, Sequence[Any]]]:
    """By the key of each record, as text: how many belong to it, and the keys of the first."""
    hop = relation.step.hop
    path = Path(text=hop.name, model=relation.access.model, hops=(hop,), field=None)
    rows = RelationSubquery(relation.rights, relation.access, path, hard=0).rows([])
    near = hop.link[1].attname
    far = relation.step.access.keys[0].attname if hop.ends is None else hop.ends[1].attname
    rows = pinned_to_database(rows.filter(Q((f"{near}__in", list(keys)))))
    partition = [F(near)]
    numbered = rows.annotate(
        _row=Window(RowNumber(), partition_by=partition, order_by=[F(far)]),
        _count=Window(Count("*"), partition_by=partition),
    ).filter(Q(("_row__lte", relation.most)))
    found: dict[str, tuple[int, list[Any]]] = {}
    with limited(rows.db):
        links = list(numbered.values_list(near, far, "_count", "_row"))
    for key, pk, count, _ in sorted(links, key=itemgetter(3)):
        found.setdefault(str(key), (count, []))[1].append(pk)
    return dict(found)


def related_records(
    relation: IncludedRelation, pks: Iterable[Any]
) -> tuple[Table, dict[Any, Row]]:
    """The related records as find_records shows them, and the row of each by key."""
    access, rights, wanted = relation.step.access, relation.rights, list(pks)
    shown = layout_of(access, None)
    if not wanted:
        return Table(columns=tuple(shown.renders), rows=[]), {}
    key = access.key_paths[0]
    layout = replace(shown, lookups={**shown.lookups, key.lookup: None}, is_for_one_call=True)
    search = Search(
        rights=rights,
        access=access,
        layout=layout,
        order=(),
        parsed_filters=ParsedFilters(filters=[Condition(path=key, operator="in", value=wanted)]),
        using=rights.rows(access.model).db,
    )
    rows = search.rows(None, most=len(wanted))
    table = rows.table()
    return table, dict(zip(rows.columns[key.lookup], table.rows, strict=False))

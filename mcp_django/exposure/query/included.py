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

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.limits import limited
from mcp_django.exposure.paths import FILTER, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, Condition, RelationSubquery
from mcp_django.exposure.query.filters import ParsedFilters
from mcp_django.exposure.query.find import Record, RecordLayout, Search, layout_of
from mcp_django.exposure.query.guard import pinned_to_database
from mcp_django.exposure.query.paths_by_rule import RelationStep, Rule
from mcp_django.exposure.query.serializers import Columns, Values

#: Relations in one call.
MOST_RELATIONS = 4
#: Records in a page that has them.
MOST_RECORDS = 50
#: Related records of one record, in a page and alone.
MOST_IN_PAGE, MOST_IN_RECORD = 20, 100


def with_included(
    rights: Rights, access: AccessiblePaths, layout: RecordLayout, names: Any, *, most: int
) -> RecordLayout:
    """The layout of records with these relations as members: `{"count": 3, "records": [...]}`.

    Where there are more than `most`, `rest` is the call of find_records that gives all, if this
    caller may filter the other model by the relation. Raises QueryError for what is no relation
    that leads to many records and may be followed.
    """
    if not isinstance(names, list | tuple) or not 0 < len(names) <= MOST_RELATIONS:
        raise QueryError(f"include takes a list of 1 to {MOST_RELATIONS} relations.")
    found = replace(layout, lookups=dict(layout.lookups), renders=dict(layout.renders))
    for relation in [find_relation(rights, access, name, most=most) for name in names]:
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


def find_relation(
    rights: Rights, access: AccessiblePaths, name: Any, *, most: int
) -> IncludedRelation:
    steps = Rule(rights, access).relations
    many = {
        name: step
        for name, step in steps.items()
        if step.hop.is_many and len(step.access.keys) == 1 and step.hop.link[0].primary_key
    }
    if isinstance(name, str) and name in steps and name not in many:
        raise QueryError(f"include: {name} leads to one record. Name {name}__<field> in fields.")
    if not isinstance(name, str) or name not in many:
        raise unknown(name, many, "include")
    return IncludedRelation(rights=rights, access=access, step=many[name], most=most)


def members_of(relation: IncludedRelation, near: str, columns: Columns) -> Values:
    """What stands beside each record."""
    keys = columns[near]
    links = links_of(relation, keys)
    shown = related_records(relation, {pk for _, pks in links.values() for pk in pks})
    return [beside(relation, key, *links.get(str(key), (0, ())), shown) for key in keys]


def beside(
    relation: IncludedRelation,
    key: Any,
    count: int,
    pks: Sequence[Any],
    shown: dict[Any, Record],
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "count": count,
        "records": [shown[pk] for pk in pks if pk in shown],
    }
    back = name_of_back(relation)
    if count > len(pks) and back is not None:
        arguments = {"model": relation.step.access.exposure.label, "filters": {back: key}}
        found["rest"] = {"tool": "find_records", "arguments": arguments}
    return found


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


def related_records(relation: IncludedRelation, pks: Iterable[Any]) -> dict[Any, Record]:
    """The related records as find_records shows them, by key."""
    wanted = list(pks)
    if not wanted:
        return {}
    access, rights = relation.step.access, relation.rights
    key = access.key_paths[0]
    shown = layout_of(access, None)
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
    return dict(zip(rows.columns[key.lookup], rows.records(), strict=False))

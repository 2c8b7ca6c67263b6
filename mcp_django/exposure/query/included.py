"""Related records beside a record: some of each relation that leads to many, and their number.

They are read with the rights of their own model, with two queries for each relation, whatever the
number of records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber

from mcp_django.exposure.limits import limited
from mcp_django.exposure.paths import FILTER, Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import AccessiblePaths, Condition, related_rows
from mcp_django.exposure.query.filters import ParsedFilters
from mcp_django.exposure.query.guard import pinned_to_database
from mcp_django.exposure.query.paths_by_rule import RelationStep, Rule
from mcp_django.exposure.query.search import Search
from mcp_django.exposure.query.selection import select_paths
from mcp_django.exposure.query.serializers import Columns, Values
from mcp_django.exposure.query.tables import RelatedTable, Row, Table


@dataclass(frozen=True, kw_only=True)
class IncludedRelation:
    """One relation, the rows behind it, and how many of them a record may have beside it."""

    rights: Rights
    access: AccessiblePaths
    step: RelationStep
    most: int

    @property
    def key(self) -> str:
        """The column that the relation begins at."""
        return str(self.step.hop.link[0].attname)

    def cells(self, columns: Columns) -> Values:
        """Return what stands beside each record. Where there are more than `most` rows, `rest` is
        the call of find_records that gives all, if this caller may filter by the relation.
        """
        keys = columns[self.key]
        links = self._links(keys)
        table, rows = self._records({pk for _, pks in links.values() for pk in pks})
        is_cut = any(count > len(pks) for count, pks in links.values())
        back, model = self._name_of_back() if is_cut else None, self.step.access.exposure.label
        cells = []
        for key in keys:
            count, pks = links.get(str(key), (0, ()))
            rest = None
            if count > len(pks) and back is not None:
                arguments = {"model": model, "filters": {back: key}}
                rest = {"tool": "find_records", "arguments": arguments}
            related = replace(table, rows=[rows[pk] for pk in pks if pk in rows])
            cells.append(RelatedTable(count=count, table=related, rest=rest))
        return cells

    def _name_of_back(self) -> str | None:
        """The filter of the related model that leads back, if this caller has one."""
        field, target = self.step.hop.field, self.step.access
        back = field.field if field.auto_created else field.remote_field
        name = getattr(back, "name", None)
        if name is None or name in target.tables[FILTER]:
            return name
        by_rule = Rule(self.rights, target).find(name)
        return name if by_rule is not None and by_rule.path.text == name else None

    def _links(self, keys: Values) -> dict[str, tuple[int, list[Any]]]:
        """By the key of each record, as text: how many belong to it, and the keys of the first."""
        hop = self.step.hop
        path = Path(text=hop.name, model=self.access.model, hops=(hop,), field=None)
        rows = related_rows(self.rights, self.access, path, [], hard=0)
        near = hop.link[1].attname
        far = self.step.access.keys[0].attname if hop.ends is None else hop.ends[1].attname
        rows = pinned_to_database(rows.filter(Q((f"{near}__in", list(keys)))))
        partition = [F(near)]
        numbered = rows.annotate(
            _row=Window(RowNumber(), partition_by=partition, order_by=[F(far)]),
            _count=Window(Count("*"), partition_by=partition),
        ).filter(Q(("_row__lte", self.most)))
        links: dict[str, tuple[int, list[Any]]] = {}
        with limited(rows.db):
            rows_of_links = list(numbered.values_list(near, far, "_count", "_row"))
        for key, pk, count, _ in sorted(rows_of_links, key=itemgetter(3)):
            links.setdefault(str(key), (count, []))[1].append(pk)
        return links

    def _records(self, pks: Iterable[Any]) -> tuple[Table, dict[Any, Row]]:
        """The related records as find_records shows them, and the row of each by key."""
        access, wanted = self.step.access, list(pks)
        selection, key = select_paths(access, None), access.key_paths[0]
        if not wanted:
            return Table(columns=tuple(selection.renders), rows=[]), {}
        search = Search(
            rights=self.rights,
            access=access,
            selection=replace(
                selection, lookups={**selection.lookups, key.lookup: None}, is_for_one_call=True
            ),
            parsed_filters=ParsedFilters(
                filters=[Condition(path=key, operator="in", value=wanted)]
            ),
            using=self.rights.rows(access.model).db,
        )
        rows = search.rows(None, most=len(wanted))
        table = rows.table()
        return table, dict(zip(rows.columns[key.lookup], table.rows, strict=False))

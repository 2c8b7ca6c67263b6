"""Conditions -> Q. A hop that multiplies or narrows rows becomes IN over the rows one may see.

IN and not EXISTS: SQLite can drive from an uncorrelated subquery (10 times faster there), the
others plan both alike, and nothing in it refers to the query outside. No join ever multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.utils import timezone

from mcp_django.exposure.guard import FILTER, ORDER, RETURN, Policy
from mcp_django.exposure.paths import ModelClass, Path, key_parts, locate
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach, prefixes, table_of
from mcp_django.exposure.rows import GuardedQuerySet, guarded


@dataclass(frozen=True, kw_only=True)
class Condition:
    path: Path
    transform: str = ""
    operator: str
    value: Any


def conjunction(
    rights: Rights, reach: Reach, conditions: Sequence[Condition], *, depth: int = 0
) -> Q:
    """All of the conditions, on the model that stands `depth` hops down their paths."""
    parts: list[Q] = []
    nested: dict[tuple[str, ...], list[Condition]] = {}
    for condition in conditions:
        path = condition.path
        hard = reach.hard_hop(path, depth)
        if hard is None:
            parts.append(leaf(condition, depth))
        elif is_about_existence(condition, hard):
            found = Across(rights, reach, path, hard=hard).condition([], depth=depth)
            parts.append(~found if condition.value else found)
        else:
            # Conditions behind the same hop speak of the same related row, in exclude too.
            nested.setdefault(path.names[: hard + 1], []).append(condition)
    for group in nested.values():
        hard = reach.hard_hop(group[0].path, depth) or 0
        across = Across(rights, reach, group[0].path, hard=hard)
        parts.append(across.condition(group, depth=depth))
    return Q(*parts)


def is_about_existence(condition: Condition, hard: int) -> bool:
    path = condition.path
    return path.field is None and hard == len(path.hops) - 1 and condition.operator == "isnull"


class Across:
    """Our key IN (the keys that the matching, visible rows behind one hop point to)."""

    def __init__(self, rights: Rights, reach: Reach, path: Path, *, hard: int) -> None:
        self.rights = rights
        self.reach = reach
        self.path = path
        self.at = hard
        self.hop = path.hops[hard]

    def condition(self, group: list[Condition], *, depth: int) -> Q:
        theirs = self.hop.link[1]
        lookup = self.path.lookup_of_link(depth, self.at)
        if self.hop.ends is not None:
            rows = self._through(group, self.hop.ends)
        elif self.hop.is_generic:
            rows = self._generic(group)
        else:
            rows = self._targets(group, theirs.attname)
        if theirs.null:  # x NOT IN (1, NULL) is never true
            rows = rows.filter(Q((f"{theirs.attname}__isnull", False)))
        return Q((f"{lookup}__in", rows.values(theirs.attname)))

    def _through(self, group: list[Condition], ends: tuple[Any, Any]) -> GuardedQuerySet:
        near, far = ends
        key = far.target_field.attname
        targets: Any = self._targets(group, key).values(key)
        through: ModelClass = near.model
        # A through model of the site's own has rows that may not be seen, too.
        base = (
            QuerySet(through, using=targets._db)
            if through._meta.auto_created
            else self.rights.rows(through)
        )
        rows = guarded(base, policy_of(through, [near.attname, far.attname]))
        return rows.filter(Q((f"{far.attname}__in", targets)))

    def _generic(self, group: list[Condition]) -> GuardedQuerySet:
        field = self.hop.field
        kind: Any = self.hop.model._meta.get_field(field.content_type_field_name)
        rows = self._targets(group, kind.attname, self.hop.link[1].attname)
        content_types: Any = apps.get_model("contenttypes", "ContentType")._default_manager
        content_type = content_types.db_manager(rows.db).get_for_model(
            field.model, for_concrete_model=field.for_concrete_model
        )
        return rows.filter(Q((kind.attname, content_type.pk)))

    def _targets(self, group: list[Condition], *links: str) -> GuardedQuerySet:
        """The visible rows behind the hop that match; only what the group needs may be used."""
        depth = self.at + 1
        used = [self.reach.lookup(one.path, depth) for one in group]
        policy = policy_of(self.hop.model, [*links, *used])
        rows = guarded(self.rights.rows(self.hop.model), policy)
        inner = conjunction(self.rights, self.reach, group, depth=depth)
        return rows.filter(inner) if inner else rows


def policy_of(model: ModelClass, lookups: Sequence[str]) -> Policy:
    """For a subquery: these columns, the key, and what joins them."""
    names = {*lookups, *(part.attname for part in key_parts(model))}
    columns = frozenset(locate(model, name) for name in names)
    return Policy(
        table=table_of(model),
        columns={FILTER: columns, RETURN: columns, ORDER: frozenset()},
        joins=prefixes(trail for trail, _ in columns),
    )


def leaf(condition: Condition, depth: int) -> Q:
    name = condition.path.lookup_from(depth)
    operator, value = condition.operator, condition.value
    if condition.transform == "date":
        return day(name, operator, value)
    if condition.transform:
        name += LOOKUP_SEP + condition.transform
        if operator == "range":
            return Q((f"{name}__gte", value[0]), (f"{name}__lte", value[1]))
    return Q((f"{name}{LOOKUP_SEP}{operator}", value))


def day(name: str, operator: str, value: Any) -> Q:
    """`placed_at__date` as a range: it can use an index, and MariaDB needs no time zone tables."""
    low, high = value if operator == "range" else (value, value)
    starts, ends = midnight(low), midnight(high + timedelta(days=1))
    if operator in ("exact", "range"):
        return Q((f"{name}__gte", starts), (f"{name}__lt", ends))
    edge = ends if operator in ("gt", "lte") else starts
    return Q((f"{name}__{'gte' if operator in ('gt', 'gte') else 'lt'}", edge))


def midnight(given: date) -> datetime:
    naive = datetime.combine(given, time.min)
    return timezone.make_aware(naive) if settings.USE_TZ else naive

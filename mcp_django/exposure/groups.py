"""What records are grouped by: values of declared paths, and parts and buckets of dates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import F, Q
from django.db.models.constants import LOOKUP_SEP
from django.db.models.functions import datetime as dates

from mcp_django.exceptions import QueryError, unknown
from mcp_django.exposure.budget import limited
from mcp_django.exposure.guard import FILTER, GROUP
from mcp_django.exposure.operators import kind_of
from mcp_django.exposure.paths import Path
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import Reach
from mcp_django.exposure.records import label
from mcp_django.exposure.relations import policy_of
from mcp_django.exposure.rows import guarded, settled
from mcp_django.exposure.serializers import Values, converter_of
from mcp_django.exposure.values import quoted

MAX_GROUPS = 3
#: Of dates; datetimes have hours, too.
DAYS: Mapping[str, Any] = {
    "trunc_year": dates.TruncYear,
    "trunc_quarter": dates.TruncQuarter,
    "trunc_month": dates.TruncMonth,
    "trunc_week": dates.TruncWeek,
    "trunc_day": dates.TruncDay,
    "year": dates.ExtractYear,
    "month": dates.ExtractMonth,
    "week_day": dates.ExtractWeekDay,
}
HOURS: Mapping[str, Any] = {"trunc_hour": dates.TruncHour, "hour": dates.ExtractHour}
PARTS: Mapping[str, Mapping[str, Any]] = {"date": DAYS, "datetime": {**DAYS, **HOURS}}


@dataclass(frozen=True, kw_only=True)
class Group:
    path: Path
    #: Of a date; empty for the value as it is.
    part: str = ""

    @property
    def name(self) -> str:
        """What the answer calls it, however the caller has spelled it."""
        return LOOKUP_SEP.join([self.path.text, *([self.part] if self.part else [])])

    @property
    def expression(self) -> Any:
        column = F(self.path.lookup)
        return PARTS[kind_of(self.path.field)][self.part](column) if self.part else column

    def rendered(self, rights: Rights, reach: Reach, values: Values) -> Values:
        """The values as records show them; a bucket keeps the offset of the current time zone."""
        if self.part:
            return [one.isoformat() if isinstance(one, date) else one for one in values]
        convert = converter_of(self.path.field, whole=False)
        shown = values if convert is None else convert(values)
        if self.path not in reach.group_labels:
            return shown
        labels = labels_of(rights, reach, self.path, values)
        return [
            None if key is None else {"pk": pk, "label": labels.get(key)}
            for key, pk in zip(values, shown, strict=True)
        ]


def labels_of(rights: Rights, reach: Reach, path: Path, keys: Values) -> dict[Any, str]:
    """The labels of related records by key: of those that the caller may see."""
    model = path.field.related_model
    key = path.field.target_field.attname
    columns = [one.field.attname for one in reach.group_labels[path]]
    rows = settled(guarded(rights.rows(model), policy_of(model, [key, *columns])))
    wanted = {one for one in keys if one is not None}
    with limited(rows.db):
        found = list(rows.filter(Q((f"{key}__in", wanted))).values_list(key, *columns))
    return {one: label(parts) for one, *parts in found}


def parse_groups(rights: Rights, reach: Reach, given: Any, *, using: str) -> list[Group]:
    """Raises QueryError for what is not a list of paths to group by, or parts of such dates."""
    if not isinstance(given, list | tuple) or len(given) > MAX_GROUPS:
        raise QueryError(f"group_by takes a list of at most {MAX_GROUPS} names.")
    found = {}
    for name in given:
        group = find_group(reach, name)
        if group is None:
            raise refusal(rights, reach, name)
        found[group.name] = group
    if any(is_zoned(group) for group in found.values()):
        check_zones(using)
    return list(found.values())


def find_group(reach: Reach, name: Any) -> Group | None:
    table = reach.tables[GROUP]
    if not isinstance(name, str):
        return None
    if name in table:
        return Group(path=table[name])
    head, _, part = name.rpartition(LOOKUP_SEP)
    path = table.get(head)
    if path is None or part not in PARTS.get(kind_of(path.field), ()):
        return None
    return Group(path=path, part=part)


def refusal(rights: Rights, reach: Reach, name: Any) -> QueryError:
    """What could be grouped by instead."""
    head = name.rpartition(LOOKUP_SEP)[0] if isinstance(name, str) else ""
    path = reach.tables[GROUP].get(head)
    if path is not None and (parts := PARTS.get(kind_of(path.field))):
        return QueryError(f"{path.text} can be grouped by {', '.join(parts)}.")
    return many_valued(rights, reach, name) or no_name(name, reach.names(GROUP), "group_by")


def no_name(given: Any, allowed: Iterable[str], what: str) -> QueryError:
    """As for any unknown name, also for what is no text at all."""
    return unknown(given if isinstance(given, str) else quoted(given), allowed, what)


def many_valued(rights: Rights, reach: Reach, name: Any) -> QueryError | None:
    """For a path with many values: adding up over it would count a record many times."""
    path = reach.tables[FILTER].get(name) if isinstance(name, str) else None
    if path is None or not path.is_many:
        return None
    sentence = f"{path.text} has many values for one record, so it cannot be aggregated here."
    model = next(hop.model for hop in path.hops if hop.is_many)
    if model in rights.exposed.exposures and rights.may_view(model):
        sentence += f" Ask {model._meta.label_lower} for it."
    return QueryError(sentence)


def is_zoned(group: Group) -> bool:
    return bool(group.part) and kind_of(group.path.field) == "datetime" and settings.USE_TZ


def check_zones(using: str) -> None:
    """MariaDB and MySQL without time zone tables make NULL of every instant."""
    features: Any = connections[using].features
    if not features.has_zoneinfo_database:
        raise QueryError(
            "The database of this site has no time zone tables, so it has no parts of points in "
            "time. Group by something else, and filter by period."
        )

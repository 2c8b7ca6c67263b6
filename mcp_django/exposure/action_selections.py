"""Which records an action is for: named by key, or found as `find_records` finds them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mcp_django.exceptions import QueryError, ToolError
from mcp_django.exposure.admin_actions import not_found
from mcp_django.exposure.find import judge
from mcp_django.exposure.guard import RETURN
from mcp_django.exposure.keys import key_value
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.ordering import parse_order
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import Wanted, parse
from mcp_django.exposure.reach import Reach, reach_of
from mcp_django.exposure.records import Record, shape_of
from mcp_django.exposure.relations import Condition
from mcp_django.exposure.searches import Search
from mcp_django.exposure.serializers import encoder

#: How records are found, beside by their keys.
QUERIES = ("filters", "exclude", "search")
#: Records that one call may act on.
MOST_RECORDS = 1000
#: Records that are shown before a call acts on them.
SAMPLES = 3
#: Fields of each.
SAMPLE_FIELDS = 4


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Records that exist for the caller, in the order of the model."""

    keys: Sequence[Any]
    #: The first of them, as a JSON array.
    samples: bytes = b"[]"

    @property
    def digest(self) -> str:
        """Of the keys in any order: other records make another one."""
        text = msgspec.json.encode(sorted(str(key) for key in self.keys))
        return hashlib.sha256(text).hexdigest()


def named(rights: Rights, exposure: ModelExposure, pks: Sequence[Any]) -> Selection:
    """The records with these keys. Raises NotFound that names those that do not exist for the
    caller, if there is one.
    """
    reach = reach_of(rights, exposure)
    using = rights.rows(exposure.model).db
    keys: dict[str, Any] = {}
    strange = []
    for given in pks:
        try:
            key = key_value(reach.key_paths[0].field, given, using=using)
        except QueryError:
            strange.append(str(given))
        else:
            keys[str(key)] = key
    wanted = Wanted(
        filters=[Condition(path=reach.key_paths[0], operator="in", value=list(keys.values()))]
    )
    found = found_records(rights, reach, wanted)
    known = {str(key) for key in found.keys}
    if missing := [*strange, *(key for key in keys if key not in known)]:
        raise not_found(missing)
    return found


def filtered(rights: Rights, exposure: ModelExposure, query: Mapping[str, Any]) -> Selection:
    """The records that a query of these QUERIES finds. Raises ToolError where it finds none, or
    too many, or would find all.
    """
    # A search for blanks is one for nothing.
    if not any(one.split() if isinstance(one, str) else one for one in query.values()):
        raise ToolError("Empty filters would select every record. Say which you mean, or use pks.")
    reach = reach_of(rights, exposure)
    using = rights.rows(exposure.model).db
    found = found_records(rights, reach, parse(reach, query, using=using))
    if not found.keys:
        raise ToolError(
            "These filters find no record. Nothing was done. Try them with find_records first."
        )
    return found


def found_records(rights: Rights, reach: Reach, wanted: Wanted) -> Selection:
    search = Search(
        rights=rights,
        reach=reach,
        shape=shape_of(reach, sample_fields(reach)),
        order=parse_order(reach, None),
        wanted=wanted,
        using=rights.rows(reach.model).db,
    )
    rows = search.rows(None, most=MOST_RECORDS)
    if rows.has_more:
        raise QueryError(
            f"These filters find more than {MOST_RECORDS} records, which is the most for one "
            "call. Nothing was done. Narrow them."
        )
    keys: Sequence[Any] = rows.columns[reach.keys[0].attname][: rows.count]
    records: Sequence[Record] = rows.records()
    if rights.judges_objects(reach.model):
        verdicts = judge(search, rows)
        keys = [key for key, is_seen in zip(keys, verdicts, strict=True) if is_seen]
        records = [one for one, is_seen in zip(records, verdicts, strict=True) if is_seen]
    return Selection(keys=list(keys), samples=encoder.encode(list(records[:SAMPLES])))


def sample_fields(reach: Reach) -> list[str] | None:
    """What tells records apart: their keys and labels, if the caller sees them."""
    shown = reach.names(RETURN)
    telling = [*(part.name for part in reach.keys), *reach.exposure.label_fields]
    return [name for name in telling if name in shown] or list(shown[:SAMPLE_FIELDS]) or None

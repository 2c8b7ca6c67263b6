"""Records as objects, for code of the admin that needs them. They never leave `exposure`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.budget import limited
from mcp_django.exposure.existence import known_keys
from mcp_django.exposure.find import (
    check_shows_records,
    judge,
    key_conditions,
    missing_record,
    objects_of,
)
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.ordering import parse_order
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import parse
from mcp_django.exposure.reach import reach_of
from mcp_django.exposure.records import Shape
from mcp_django.exposure.searches import Search
from mcp_django.exposure.values import quoted

#: Records that one call may name or find in order to change them.
MOST_OBJECTS = 1000
#: Missing keys that an error names.
MOST_MISSING = 10


def find_object(rights: Rights, exposure: ModelExposure, pk: Any, *, using: str) -> Any:
    """The record with this key. Raises NotFound in the words of `get_record`."""
    objects = find_objects(rights, exposure, [pk], using=using)
    if not objects:
        raise missing_record(exposure, pk)
    return objects[0]


def find_all(
    rights: Rights, exposure: ModelExposure, pks: Sequence[Any], *, using: str
) -> list[Any]:
    """The records with these keys. Raises NotFound, with the keys, unless there are all."""
    if not 0 < len(pks) <= MOST_OBJECTS:
        raise QueryError(f"Name between 1 and {MOST_OBJECTS} records; these are {len(pks)}.")
    objects = find_objects(rights, exposure, pks, using=using)
    found = {str(one.pk) for one in objects}
    missing = [pk for pk in pks if str(pk) not in found]
    if missing:
        told = ", ".join(quoted(pk) for pk in missing[:MOST_MISSING])
        more = f" and {len(missing) - MOST_MISSING} more" if missing[MOST_MISSING:] else ""
        raise NotFound(
            f"There is no {exposure.label} with these keys: {told}{more}. Nothing was done."
        )
    return objects


def find_objects(
    rights: Rights, exposure: ModelExposure, pks: Sequence[Any], *, using: str
) -> list[Any]:
    """Those of the records that this caller may see."""
    check_shows_records(exposure)
    reach = reach_of(rights, exposure)
    keys = []
    for pk in pks:
        try:
            key = key_conditions(reach, pk, using=using)
        except QueryError:
            continue
        keys.append(tuple(one.value for one in key))
    base = rights.rows(exposure.model).using(using)
    if base.query.is_sliced or base.query.combinator:
        # Of these `objects_of` looks among all there are.
        keys = known_keys(rights, exposure, keys, using=using)
    with limited(using):
        objects = objects_of(base, keys)
    if rights.judges_objects(exposure.model):
        return [one for one in objects if rights.may_view_object(exposure.model, one)]
    return objects


def find_keys(
    rights: Rights, exposure: ModelExposure, arguments: Mapping[str, Any], *, using: str
) -> list[Any]:
    """Keys of the records that filters leave. Raises QueryError when there are too many."""
    check_shows_records(exposure)
    reach = reach_of(rights, exposure)
    names = [part.attname for part in reach.keys]
    search = Search(
        rights=rights,
        reach=reach,
        shape=Shape(lookups=dict.fromkeys(names)),
        order=parse_order(reach, None),
        wanted=parse(reach, arguments, using=using),
        using=using,
    )
    rows = search.rows(None, most=MOST_OBJECTS)
    if rows.has_more:
        raise QueryError(f"More than {MOST_OBJECTS} records match. Narrow the filters.")
    keys = list(zip(*(rows.columns[name] for name in names), strict=True))
    if rights.judges_objects(exposure.model):
        verdicts = judge(search, rows)
        keys = [key for key, is_visible in zip(keys, verdicts, strict=True) if is_visible]
    return [key[0] if len(names) == 1 else list(key) for key in keys]

"""Some records as a caller gets them, with nothing that somebody who looks may not see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import msgspec
from django.db import DatabaseError, connections, transaction
from django.db.models import QuerySet

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.budget import limited
from mcp_django.exposure.find import get_record
from mcp_django.exposure.lookers import OwnRights
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.reach import find_reach
from mcp_django.exposure.rows import settled

#: Records that are shown, and looked at to find as many that both may see.
SHOWN, LOOKED_AT = 3, 12


class Unreadable(Exception):
    """The database has no answer: there may be no table."""


def sample_rows(
    rights: Rights, looker: OwnRights, exposure: ModelExposure
) -> list[dict[str, Any]]:
    """Up to three records of the caller that the looker may see, field by field.

    A value that the looker would get otherwise, or not at all, is left out. Raises Unreadable.
    """
    rows = settled(rights.rows(exposure.model))
    connection = connections[rows.db]
    # What fails must not break a transaction around the page.
    apart = transaction.atomic(using=rows.db) if connection.in_atomic_block else nullcontext()
    try:
        with apart:
            with limited(rows.db):
                keys = list(first_keys(rows))
            return list(shared_records(rights, looker, exposure, keys))
    except (DatabaseError, QueryError) as error:
        raise Unreadable(str(error) if isinstance(error, QueryError) else "") from error


def first_keys(rows: QuerySet[Any]) -> Any:
    """Some keys, the same each time where Django can still sort the rows of the site."""
    if not (rows.query.is_sliced or rows.query.combinator):
        rows = rows.order_by("pk")
    return rows.values_list("pk", flat=True)[:LOOKED_AT]


def shared_records(
    rights: Rights, looker: OwnRights, exposure: ModelExposure, keys: list[Any]
) -> Iterator[dict[str, Any]]:
    fields = common_fields(rights, looker, exposure)
    found = 0
    for key in keys:
        if not fields or found == SHOWN:
            return
        try:
            theirs = record(rights, exposure, key, fields)
            own = record(looker, exposure, key, fields)
        except NotFound:
            continue
        found += 1
        yield {name: value for name, value in theirs.items() if own.get(name) == value}


def common_fields(rights: Rights, looker: OwnRights, exposure: ModelExposure) -> list[str]:
    shown = find_reach(looker, exposure).shown
    reach = find_reach(rights, exposure)
    return [path.text for path in reach.paths["return"] if path.names in shown & reach.shown][:64]


def record(rights: Rights, exposure: ModelExposure, key: Any, fields: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(get_record(rights, exposure, key, fields=fields))
    return found

"""Records of calls that are old enough to go, and what the store keeps for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import router

from mcp_django.models import CallRecord
from mcp_django.stores.chosen import get_store

#: Rows in one statement: nobody who writes waits long for it.
CHUNK = 5000


def prune_calls(*, before: datetime | None = None, user: Any = None) -> Iterator[int]:
    """Delete records from before a time, of one user or of all. Yields how many, by the chunk."""
    records = CallRecord.objects.using(router.db_for_write(CallRecord))
    if before is not None:
        records = records.filter(at__lt=before)
    if user is not None:
        records = records.filter(user=user)
    while keys := list(records.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        # A range: no database takes lists of so many everywhere.
        deleted, _ = records.filter(pk__gte=keys[0], pk__lte=keys[-1]).delete()
        yield deleted


def prune_store() -> int:
    """Forget idle sessions and what else nobody can ask for. Returns how many things that were.

    Raises what the store raises when it is gone, ImproperlyConfigured where there is none.
    """
    return get_store().prune()

"""Rows that nobody can ask for any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from mcp_django.models import EventLog, Lease, LiveStream, OpenQuestion, Session
from mcp_django.stores.bounds import KEPT, LEASE, QUESTION_LIFE, idle_limit
from mcp_django.stores.database_logs import drop_logs, drop_sessions, holds
from mcp_django.stores.transactions import drop, rows, written

#: Rows that are taken in one transaction, each with what belongs to it.
CHUNK = 100


def prune_all(now: datetime) -> int:
    """Delete them in small transactions. Returns how many sessions, logs, questions and streams
    that were.
    """
    idle = rows(Session).filter(seen__lte=now - idle_limit())
    ended = rows(EventLog).filter(final_since__lte=now - KEPT)
    stale = rows(OpenQuestion).filter(Q(asked__lte=now - QUESTION_LIFE) | ~holds(now))
    left = rows(LiveStream).filter(~holds(now))
    deleted = (
        in_chunks(idle, drop_sessions)
        + in_chunks(ended, lambda keys: drop_logs(rows(EventLog).filter(pk__in=keys)))
        + in_chunks(stale, lambda keys: drop(stale.filter(pk__in=keys)))
        + in_chunks(left, lambda keys: drop(left.filter(pk__in=keys)))
    )
    in_chunks(
        rows(Lease).filter(renewed__lte=now - LEASE),
        lambda keys: drop(rows(Lease).filter(pk__in=keys, renewed__lte=now - LEASE)),
    )
    return deleted


def in_chunks(found: QuerySet[Any], forget: Callable[[Sequence[Any]], int]) -> int:
    deleted, after = 0, None
    while keys := chunk(found, after=after):
        deleted += written(forget)(keys)
        after = keys[-1]
    return deleted


def chunk(found: QuerySet[Any], *, after: Any) -> list[Any]:
    # Onwards, not again from the start: what came back to life meanwhile would stay first.
    later = found if after is None else found.filter(pk__gt=after)
    return list(later.order_by("pk").values_list("pk", flat=True)[:CHUNK])

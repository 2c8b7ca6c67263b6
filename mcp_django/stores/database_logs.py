"""Event logs in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from mcp_django.models import EventLog, Lease, LogEvent, OpenQuestion, Session, Subscription
from mcp_django.stores.bounds import (
    KEPT,
    LEASE,
    MOST_BYTES,
    MOST_EVENTS,
    MOST_LOGS,
    idle_limit,
    too_many,
)
from mcp_django.stores.interface import Event, Log, Page, StoreFull
from mcp_django.stores.transactions import drop, put, rows


def renew(owner: str, *, now: datetime) -> None:
    put(Lease(owner=owner, renewed=now), fields=["renewed"])


def holds(now: datetime, *, owner: str = "owner") -> Exists:
    """Whether the owner that a column of a row names holds its lease."""
    held = rows(Lease).filter(owner=OuterRef(owner), renewed__gt=now - LEASE)
    return Exists(held)


def live_sessions(now: datetime) -> QuerySet[Session]:
    return rows(Session).filter(seen__gt=now - idle_limit())


def lock_session(key: str, *, now: datetime) -> bool:
    """Whether it is there. Nobody else adds to it or ends it before this transaction does."""
    found = live_sessions(now).select_for_update().filter(key=key)
    return found.values_list("key").first() is not None


def open_log(log: Log, *, now: datetime) -> None:
    renew(log.owner, now=now)
    if not lock_session(log.session, now=now):
        return
    logs = rows(EventLog).filter(session=log.session)
    if logs.count() >= MOST_LOGS:
        spare = logs.filter(Q(final_since__isnull=False) | ~holds(now)).order_by("pk").first()
        if spare is None:
            raise StoreFull("The session has too many streams that go on.")
        drop_logs(rows(EventLog).filter(pk=spare.pk))
    row = EventLog(key=log.key, session_id=log.session, owner=log.owner, request=log.request)
    rows(EventLog).bulk_create([row])


def append(key: str, events: Sequence[bytes], *, is_final: bool, now: datetime) -> int:
    found = rows(EventLog).filter(key=key)
    last = add(found, events, is_final=is_final, now=now)
    if last is None:
        last = found.values_list("last", flat=True).first()
    return last or 0


def close_orphan(key: str, event: bytes, *, now: datetime) -> bool:
    orphan = rows(EventLog).filter(~holds(now), key=key)
    return add(orphan, [event], is_final=True, now=now) is not None


def add(
    found: QuerySet[EventLog], events: Sequence[bytes], *, is_final: bool, now: datetime
) -> int | None:
    """Insert the events with their numbers. Returns the last, None where no such log goes on."""
    changes: dict[str, Any] = {
        "last": F("last") + len(events),
        "size": F("size") + sum(map(len, events)),
    }
    if is_final:
        changes["final_since"] = now
    # First of all: whoever appends besides waits here for this transaction, on any database.
    if not found.filter(final_since__isnull=True).update(**changes):
        return None
    log = found.get()
    numbered = enumerate(events, log.last - len(events) + 1)
    rows(LogEvent).bulk_create(
        [LogEvent(log=log, number=number, data=data, size=len(data)) for number, data in numbered]
    )
    trim(log)
    return log.last


def trim(log: EventLog) -> None:
    if log.last - log.first < MOST_EVENTS and log.size <= MOST_BYTES:
        return
    events = rows(LogEvent).filter(log=log).order_by("number")
    sizes = list(events.values_list("size", flat=True))
    gone = too_many(sizes)
    first, left = log.first + gone, sum(sizes[gone:])
    drop(rows(LogEvent).filter(log=log, number__lt=first))
    rows(EventLog).filter(pk=log.pk).update(first=first, size=left)


def read(key: str, *, session: str, after: int, now: datetime) -> Page | None:
    found = rows(EventLog).filter(
        Q(final_since__isnull=True) | Q(final_since__gt=now - KEPT),
        key=key,
        session=session,
        session__seen__gt=now - idle_limit(),
    )
    log = found.annotate(is_held=holds(now)).first()
    if log is None:
        return None
    # Later than the log: one that was final then has all its events here.
    later = rows(LogEvent).filter(log=log, number__gt=after).order_by("number")
    events = [
        Event(number=number, data=bytes(data))
        for number, data in later.values_list("number", "data")
    ]
    oldest = events[0].number if events else log.last + 1
    is_final = log.final_since is not None
    return Page(
        events=events,
        is_final=is_final,
        is_orphaned=not is_final and not log.is_held,
        has_gap=oldest > max(after, 0) + 1,
        request=log.request,
    )


def drop_logs(found: QuerySet[EventLog]) -> int:
    """Delete logs with their events. Nobody appends to them meanwhile."""
    keys = list(found.select_for_update().values_list("pk", flat=True))
    drop(rows(LogEvent).filter(log__in=keys))
    return drop(rows(EventLog).filter(pk__in=keys))


def drop_sessions(keys: Sequence[str]) -> int:
    """Delete sessions with all that is theirs. Returns how many sessions, logs and questions."""
    gone = drop_logs(rows(EventLog).filter(session__in=keys))
    gone += drop(rows(OpenQuestion).filter(session__in=keys))
    drop(rows(Subscription).filter(session__in=keys))
    return gone + drop(rows(Session).filter(pk__in=keys))

"""A store in the site's database: right with any number of processes, and nothing to install."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from mcp_django.models import EventLog, Lease, LiveStream, LogEvent, OpenQuestion, Subscription
from mcp_django.models import Session as SessionRow
from mcp_django.signing import digest_of
from mcp_django.stores import bounds
from mcp_django.stores.bounds import Clock, Dice
from mcp_django.stores.interface import Event, Log, OpenStream, Page, Question, Session, StoreFull
from mcp_django.stores.transactions import drop, put, rows, written

# Event logs in the database.


def renew(owner: str, *, now: datetime) -> None:
    put(Lease(owner=owner, renewed=now), fields=["renewed"])


def holds(now: datetime, *, owner: str = "owner") -> Exists:
    """Whether the owner that a column of a row names holds its lease."""
    held = rows(Lease).filter(owner=OuterRef(owner), renewed__gt=now - bounds.LEASE)
    return Exists(held)


def live_sessions(now: datetime) -> QuerySet[SessionRow]:
    return rows(SessionRow).filter(seen__gt=now - bounds.idle_limit())


def lock_session(key: str, *, now: datetime) -> bool:
    """Whether it is there. Nobody else adds to it or ends it before this transaction does."""
    found = live_sessions(now).select_for_update().filter(key=key)
    return found.values_list("key").first() is not None


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
    # First of all: others who append wait here for this transaction, on any database.
    if not found.filter(final_since__isnull=True).update(**changes):
        return None
    log = found.get()
    numbered = enumerate(events, log.last - len(events) + 1)
    rows(LogEvent).bulk_create(
        [LogEvent(log=log, number=number, data=data, size=len(data)) for number, data in numbered]
    )
    if log.last - log.first >= bounds.MOST_EVENTS or log.size > bounds.MOST_BYTES:
        in_log = rows(LogEvent).filter(log=log).order_by("number")
        sizes = list(in_log.values_list("size", flat=True))
        gone = bounds.too_many(sizes)
        first, left = log.first + gone, sum(sizes[gone:])
        drop(in_log.filter(number__lt=first))
        rows(EventLog).filter(pk=log.pk).update(first=first, size=left)
    return log.last


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
    return gone + drop(rows(SessionRow).filter(pk__in=keys))


# Rows that nobody can ask for any more.

#: Rows that are taken in one transaction, each with what belongs to it.
CHUNK = 100


def in_chunks(stale: QuerySet[Any], forget: Callable[[Sequence[Any]], int]) -> int:
    deleted, later = 0, stale
    while keys := list(later.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        deleted += written(forget)(keys)
        # Onwards, not again from the start: what came back to life meanwhile would stay first.
        later = stale.filter(pk__gt=keys[-1])
    return deleted


#: Fields of a session and of a stream are columns of the same name.
STREAM_FIELDS = list(OpenStream.__dataclass_fields__)


class DatabaseStore:
    def __init__(self, *, clock: Clock = timezone.now, dice: Dice = random.random) -> None:
        self.clock = clock
        self.dice = dice

    # Sessions

    def add_session(self, session: Session) -> None:
        if self.dice() < bounds.PRUNE_SHARE:
            self.prune()
        self._insert(session)

    @written
    def _insert(self, session: Session) -> None:
        theirs = live_sessions(self.clock()).filter(principal=session.principal)
        newest = theirs.order_by("-seen", "key").values_list("key", flat=True)
        if surplus := list(newest[bounds.most_sessions(session.user) - 1 :]):
            drop_sessions(surplus)
        rows(SessionRow).bulk_create([SessionRow(**vars(session))])

    def session(self, key: str) -> Session | None:
        fields = (
            live_sessions(self.clock())
            .filter(key=key)
            .values(*Session.__dataclass_fields__)
            .first()
        )
        return None if fields is None else Session(**fields)

    def see(self, key: str) -> None:
        now = self.clock()
        due = live_sessions(now).filter(key=key, seen__lte=now - bounds.SEEN_EVERY)
        # Streams ask four times a minute, and to write takes a lock.
        if due.exists():
            written(due.update)(seen=now)

    @written
    def update_session(self, key: str, **fields: Any) -> None:
        live_sessions(self.clock()).filter(key=key).update(**fields)

    @written
    def end_session(self, key: str) -> bool:
        if not lock_session(key, now=self.clock()):
            return False
        drop_sessions([key])
        return True

    def sessions(self) -> list[Session]:
        live = live_sessions(self.clock()).order_by("-created")
        return [Session(**fields) for fields in live.values(*Session.__dataclass_fields__)]

    @written
    def hold_standalone(self, session: str, *, owner: str) -> bool:
        now = self.clock()
        # A statement of its own: one that has to wait sees leases as they were before.
        if not lock_session(session, now=now):
            return False
        free = Q(standalone__in=["", owner]) | ~holds(now, owner="standalone")
        if not rows(SessionRow).filter(free, key=session).update(standalone=owner):
            return False
        renew(owner, now=now)
        return True

    @written
    def free_standalone(self, session: str, *, owner: str) -> None:
        rows(SessionRow).filter(key=session, standalone=owner).update(standalone="")

    # Subscriptions of sessions

    @written
    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        if not lock_session(session, now=self.clock()):
            return False
        digest = digest_of(uri)
        counts = (
            rows(Subscription)
            .filter(session=session)
            .aggregate(all=Count("pk"), same=Count("pk", filter=Q(digest=digest)))
        )
        if counts["same"] or counts["all"] >= most:
            return bool(counts["same"])
        rows(Subscription).bulk_create([Subscription(session_id=session, digest=digest, uri=uri)])
        return True

    @written
    def unsubscribe(self, session: str, uri: str) -> None:
        drop(rows(Subscription).filter(session=session, digest=digest_of(uri)))

    def subscriptions(self, session: str) -> frozenset[str]:
        heard_of = self.clock() - bounds.idle_limit()
        found = rows(Subscription).filter(session=session, session__seen__gt=heard_of)
        return frozenset(found.values_list("uri", flat=True))

    # Event logs

    @written
    def open_log(self, log: Log) -> None:
        now = self.clock()
        renew(log.owner, now=now)
        if not lock_session(log.session, now=now):
            return
        logs = rows(EventLog).filter(session=log.session)
        if logs.count() >= bounds.MOST_LOGS:
            spare = logs.filter(Q(final_since__isnull=False) | ~holds(now)).order_by("pk").first()
            if spare is None:
                raise StoreFull("The session has too many streams that go on.")
            drop_logs(rows(EventLog).filter(pk=spare.pk))
        row = EventLog(key=log.key, session_id=log.session, owner=log.owner, request=log.request)
        rows(EventLog).bulk_create([row])

    @written
    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        found = rows(EventLog).filter(key=key)
        last = add(found, events, is_final=is_final, now=self.clock())
        if last is None:
            last = found.values_list("last", flat=True).first()
        return last or 0

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        now = self.clock()
        found = rows(EventLog).filter(
            Q(final_since__isnull=True) | Q(final_since__gt=now - bounds.KEPT),
            key=key,
            session=session,
            session__seen__gt=now - bounds.idle_limit(),
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

    @written
    def close_orphan(self, key: str, event: bytes) -> bool:
        now = self.clock()
        orphan = rows(EventLog).filter(~holds(now), key=key)
        return add(orphan, [event], is_final=True, now=now) is not None

    @written
    def renew(self, owner: str) -> None:
        renew(owner, now=self.clock())

    # Questions

    @written
    def ask(self, question: Question) -> None:
        now = self.clock()
        renew(question.owner, now=now)
        if not lock_session(question.session, now=now):
            return
        if self._open_questions(question.session).count() >= bounds.MOST_QUESTIONS:
            raise StoreFull("The session has too many open questions.")
        row = OpenQuestion(
            digest=digest_of(question.id),
            session_id=question.session,
            owner=question.owner,
            asked=now,
        )
        rows(OpenQuestion).bulk_create([row])

    def _open_questions(self, session: str) -> Any:
        now = self.clock()
        return rows(OpenQuestion).filter(
            holds(now), session=session, asked__gt=now - bounds.QUESTION_LIFE, answer__isnull=True
        )

    @written
    def answer(self, session: str, question: str, answer: bytes) -> bool:
        found = self._open_questions(session).filter(digest=digest_of(question))
        return bool(found.update(answer=answer))

    def take_answer(self, question: str) -> bytes | None:
        found = rows(OpenQuestion).filter(digest=digest_of(question), answer__isnull=False)
        answer = found.values_list("answer", flat=True).first()
        # Whoever deletes it has it, however many have read it.
        return None if answer is None or not self._drop_question(question) else bytes(answer)

    def withdraw(self, question: str) -> None:
        self._drop_question(question)

    @written
    def _drop_question(self, question: str) -> bool:
        return bool(drop(rows(OpenQuestion).filter(digest=digest_of(question))))

    # Open streams, for the admin

    @written
    def show_stream(self, stream: OpenStream) -> None:
        renew(stream.owner, now=self.clock())
        fields = [name for name in STREAM_FIELDS if name != "key"]
        put(LiveStream(**vars(stream)), fields=fields)

    @written
    def hide_stream(self, key: str) -> None:
        drop(rows(LiveStream).filter(key=key))

    def streams(self) -> list[OpenStream]:
        held = rows(LiveStream).filter(holds(self.clock())).order_by("-opened")
        return [
            OpenStream(**{**fields, "topics": tuple(fields["topics"])})
            for fields in held.values(*STREAM_FIELDS)
        ]

    # Upkeep

    def prune(self) -> int:
        # In small transactions.
        now = self.clock()
        idle = rows(SessionRow).filter(seen__lte=now - bounds.idle_limit())
        ended = rows(EventLog).filter(final_since__lte=now - bounds.KEPT)
        stale = rows(OpenQuestion).filter(Q(asked__lte=now - bounds.QUESTION_LIFE) | ~holds(now))
        left = rows(LiveStream).filter(~holds(now))
        deleted = (
            in_chunks(idle, drop_sessions)
            + in_chunks(ended, lambda keys: drop_logs(rows(EventLog).filter(pk__in=keys)))
            + in_chunks(stale, lambda keys: drop(stale.filter(pk__in=keys)))
            + in_chunks(left, lambda keys: drop(left.filter(pk__in=keys)))
        )
        in_chunks(
            rows(Lease).filter(renewed__lte=now - bounds.LEASE),
            lambda keys: drop(rows(Lease).filter(pk__in=keys, renewed__lte=now - bounds.LEASE)),
        )
        return deleted

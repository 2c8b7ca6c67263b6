"""A store in the site's database: right with any number of processes, and nothing to install."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone

from mcp_django.models import LiveStream, OpenQuestion, Subscription
from mcp_django.models import Session as SessionRow
from mcp_django.stores import database_logs as logs
from mcp_django.stores.bounds import (
    MOST_QUESTIONS,
    PRUNE_SHARE,
    QUESTION_LIFE,
    SEEN_EVERY,
    Clock,
    Dice,
    digest_of,
    idle_limit,
    most_sessions,
)
from mcp_django.stores.database_logs import holds, live_sessions, lock_session
from mcp_django.stores.database_upkeep import prune_all
from mcp_django.stores.interface import (
    Log,
    OpenStream,
    Page,
    Question,
    Session,
    StoreFull,
)
from mcp_django.stores.last_seen import LastSeen
from mcp_django.stores.transactions import drop, looked_up, put, rows, written

#: Fields of a session and of a stream are columns of the same name.
SESSION_FIELDS = list(Session.__dataclass_fields__)
STREAM_FIELDS = list(OpenStream.__dataclass_fields__)


class DatabaseStore:
    def __init__(self, *, clock: Clock = timezone.now, dice: Dice = random.random) -> None:
        self.clock = clock
        self.dice = dice
        self._last_seen = LastSeen()

    # Sessions

    def add_session(self, session: Session) -> None:
        if self.dice() < PRUNE_SHARE:
            self.prune()
        self._insert(session)
        self._last_seen.note(session.key, session.seen)

    @written
    def _insert(self, session: Session) -> None:
        theirs = live_sessions(self.clock()).filter(principal=session.principal)
        newest = theirs.order_by("-seen", "key").values_list("key", flat=True)
        if surplus := list(newest[most_sessions(session.user) - 1 :]):
            logs.drop_sessions(surplus)
        rows(SessionRow).bulk_create([SessionRow(**columns(session, SESSION_FIELDS))])

    @looked_up
    def session(self, key: str) -> Session | None:
        found = live_sessions(self.clock()).filter(key=key).values(*SESSION_FIELDS).first()
        if found is None:
            return None
        self._last_seen.note(key, found["seen"])
        return Session(**found)

    def see(self, key: str) -> None:
        now = self.clock()
        if not self._last_seen.is_within(SEEN_EVERY, key, now=now):
            self._last_seen.note(key, self._see(key, now=now))

    @written
    def _see(self, key: str, *, now: datetime) -> datetime | None:
        """When it was last heard of, which is now unless another process was faster."""
        found = live_sessions(now).filter(key=key)
        if found.filter(seen__lte=now - SEEN_EVERY).update(seen=now):
            return now
        return found.values_list("seen", flat=True).first()

    @written
    def agree(
        self,
        key: str,
        *,
        revision: str,
        client: Mapping[str, Any],
        capabilities: Mapping[str, Any],
    ) -> None:
        live_sessions(self.clock()).filter(key=key).update(
            revision=revision, client=client, capabilities=capabilities
        )

    @written
    def initialized(self, key: str) -> None:
        live_sessions(self.clock()).filter(key=key).update(is_initialized=True)

    @written
    def set_log_level(self, key: str, level: str) -> None:
        live_sessions(self.clock()).filter(key=key).update(log_level=level)

    @written
    def end_session(self, key: str) -> bool:
        if not lock_session(key, now=self.clock()):
            return False
        logs.drop_sessions([key])
        return True

    @looked_up
    def sessions(self) -> list[Session]:
        found = live_sessions(self.clock()).order_by("-created")
        return [Session(**one) for one in found.values(*SESSION_FIELDS)]

    @written
    def hold_standalone(self, session: str, *, owner: str) -> bool:
        now = self.clock()
        # A statement of its own: one that has to wait sees leases as they were before.
        if not lock_session(session, now=now):
            return False
        free = Q(standalone__in=["", owner]) | ~holds(now, owner="standalone")
        if not rows(SessionRow).filter(free, key=session).update(standalone=owner):
            return False
        logs.renew(owner, now=now)
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

    @looked_up
    def subscriptions(self, session: str) -> frozenset[str]:
        heard_of = self.clock() - idle_limit()
        found = rows(Subscription).filter(session=session, session__seen__gt=heard_of)
        return frozenset(found.values_list("uri", flat=True))

    # Event logs

    @written
    def open_log(self, log: Log) -> None:
        logs.open_log(log, now=self.clock())

    @written
    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        return logs.append(key, events, is_final=is_final, now=self.clock())

    @looked_up
    def read(self, key: str, *, session: str, after: int) -> Page | None:
        return logs.read(key, session=session, after=after, now=self.clock())

    @written
    def close_orphan(self, key: str, event: bytes) -> bool:
        return logs.close_orphan(key, event, now=self.clock())

    @written
    def renew(self, owner: str) -> None:
        logs.renew(owner, now=self.clock())

    # Questions

    @written
    def ask(self, question: Question) -> None:
        now = self.clock()
        logs.renew(question.owner, now=now)
        if not lock_session(question.session, now=now):
            return
        if self._open_questions(question.session).count() >= MOST_QUESTIONS:
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
            holds(now), session=session, asked__gt=now - QUESTION_LIFE, answer__isnull=True
        )

    @written
    def answer(self, session: str, question: str, answer: bytes) -> bool:
        found = self._open_questions(session).filter(digest=digest_of(question))
        return bool(found.update(answer=answer))

    @looked_up
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
        logs.renew(stream.owner, now=self.clock())
        fields = [name for name in STREAM_FIELDS if name != "key"]
        put(LiveStream(**columns(stream, STREAM_FIELDS)), fields=fields)

    @written
    def hide_stream(self, key: str) -> None:
        drop(rows(LiveStream).filter(key=key))

    @looked_up
    def streams(self) -> list[OpenStream]:
        found = rows(LiveStream).filter(holds(self.clock())).order_by("-opened")
        return [
            OpenStream(**{**one, "topics": tuple(one["topics"])})
            for one in found.values(*STREAM_FIELDS)
        ]

    # Upkeep

    @looked_up
    def prune(self) -> int:
        return prune_all(self.clock())


def columns(record: Session | OpenStream, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}

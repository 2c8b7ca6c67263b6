"""A store in the memory of one process: for stdio, tests, and sites that run a single process."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from mcp_django.stores import bounds
from mcp_django.stores.bounds import Clock, Dice
from mcp_django.stores.interface import Event, Log, OpenStream, Page, Question, Session, StoreFull

# What the store "memory" keeps.


@dataclass
class KeptSession:
    """A session with all that goes when it goes."""

    session: Session
    subscriptions: set[str] = field(default_factory=set)
    #: In the order in which they were opened.
    logs: dict[str, KeptLog] = field(default_factory=dict)
    questions: dict[str, KeptQuestion] = field(default_factory=dict)
    #: Who has the standalone stream.
    standalone: str = ""


@dataclass
class KeptLog:
    log: Log
    last: int = 0
    events: list[Event] = field(default_factory=list)
    final_since: datetime | None = None

    def add(self, events: Sequence[bytes], *, final_since: datetime | None) -> None:
        for data in events:
            self.last += 1
            self.events.append(Event(number=self.last, data=data))
        del self.events[: bounds.too_many([len(event.data) for event in self.events])]
        self.final_since = final_since


@dataclass
class KeptQuestion:
    question: Question
    asked: datetime
    answer: bytes | None = None


class MemoryStore:
    idle = staticmethod(bounds.idle_limit)

    def __init__(self, *, clock: Clock = timezone.now, dice: Dice = random.random) -> None:
        self.clock = clock
        self.dice = dice
        self._lock = threading.RLock()
        self._sessions: dict[str, KeptSession] = {}
        # Where the logs and questions are that are asked for without their session.
        self._of_log: dict[str, str] = {}
        self._of_question: dict[str, str] = {}
        self._streams: dict[str, OpenStream] = {}
        self._renewed: dict[str, datetime] = {}

    # Sessions

    def add_session(self, session: Session) -> None:
        if self.dice() < bounds.PRUNE_SHARE:
            self.prune()
        with self._lock:
            self._make_room(session)
            self._sessions[session.key] = KeptSession(session)

    def _make_room(self, session: Session) -> None:
        theirs = [other for other in self.sessions() if other.principal == session.principal]
        theirs.sort(key=lambda other: other.seen, reverse=True)
        for surplus in theirs[bounds.most_sessions(session.user) - 1 :]:
            self._forget_session(surplus.key)

    def session(self, key: str) -> Session | None:
        with self._lock:
            kept = self._live(key)
            return None if kept is None else kept.session

    def see(self, key: str) -> None:
        with self._lock:
            kept, now = self._live(key), self.clock()
            if kept is not None and now - kept.session.seen >= bounds.SEEN_EVERY:
                kept.session = replace(kept.session, seen=now)

    def update_session(self, key: str, **fields: Any) -> None:
        with self._lock:
            if (kept := self._live(key)) is not None:
                kept.session = replace(kept.session, **fields)

    def end_session(self, key: str) -> bool:
        with self._lock:
            is_there = self._live(key) is not None
            self._forget_session(key)
            return is_there

    def sessions(self) -> list[Session]:
        with self._lock:
            kept = [one.session for one in self._sessions.values() if self._is_live(one)]
        return sorted(kept, key=lambda one: one.created, reverse=True)

    def hold_standalone(self, session: str, *, owner: str) -> bool:
        with self._lock:
            kept = self._live(session)
            if kept is None or (
                kept.standalone not in ("", owner) and self._holds(kept.standalone)
            ):
                return False
            self.renew(owner)
            kept.standalone = owner
            return True

    def free_standalone(self, session: str, *, owner: str) -> None:
        with self._lock:
            kept = self._live(session)
            if kept is not None and kept.standalone == owner:
                kept.standalone = ""

    # Subscriptions of sessions

    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        with self._lock:
            kept = self._live(session)
            if kept is None or (uri not in kept.subscriptions and len(kept.subscriptions) >= most):
                return False
            kept.subscriptions.add(uri)
            return True

    def unsubscribe(self, session: str, uri: str) -> None:
        with self._lock:
            if (kept := self._live(session)) is not None:
                kept.subscriptions.discard(uri)

    def subscriptions(self, session: str) -> frozenset[str]:
        with self._lock:
            kept = self._live(session)
            return frozenset() if kept is None else frozenset(kept.subscriptions)

    # Event logs

    def open_log(self, log: Log) -> None:
        with self._lock:
            self.renew(log.owner)
            kept = self._live(log.session)
            if kept is None:
                return
            if len(kept.logs) >= bounds.MOST_LOGS:
                spare = next(filter(self._is_spare, kept.logs.values()), None)
                if spare is None:
                    raise StoreFull("The session has too many streams that go on.")
                self._forget_log(spare.log.key)
            kept.logs[log.key] = KeptLog(log)
            self._of_log[log.key] = log.session

    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        with self._lock:
            kept = self._log(key)
            if kept is None:
                return 0
            if kept.final_since is None:
                kept.add(events, final_since=self.clock() if is_final else None)
            return kept.last

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        with self._lock:
            kept = self._log(key)
            if kept is None or kept.log.session != session:
                return None
            events = [event for event in kept.events if event.number > after]
            is_final = kept.final_since is not None
            return Page(
                events=events,
                is_final=is_final,
                is_orphaned=not is_final and not self._holds(kept.log.owner),
                has_gap=max(after, 0) < kept.last - len(events),
                request=kept.log.request,
            )

    def close_orphan(self, key: str, event: bytes) -> bool:
        with self._lock:
            kept = self._log(key)
            if kept is None or kept.final_since is not None or self._holds(kept.log.owner):
                return False
            kept.add([event], final_since=self.clock())
            return True

    def renew(self, owner: str) -> None:
        with self._lock:
            self._renewed[owner] = self.clock()

    # Questions

    def ask(self, question: Question) -> None:
        with self._lock:
            self.renew(question.owner)
            kept = self._live(question.session)
            if kept is None:
                return
            if sum(map(self._is_open, kept.questions.values())) >= bounds.MOST_QUESTIONS:
                raise StoreFull("The session has too many open questions.")
            kept.questions[question.id] = KeptQuestion(question, self.clock())
            self._of_question[question.id] = question.session

    def answer(self, session: str, question: str, answer: bytes) -> bool:
        with self._lock:
            kept = self._live(session)
            asked = None if kept is None else kept.questions.get(question)
            if asked is None or not self._is_open(asked):
                return False
            asked.answer = answer
            return True

    def take_answer(self, question: str) -> bytes | None:
        with self._lock:
            kept = self._live(self._of_question.get(question, ""))
            if kept is None or (answer := kept.questions[question].answer) is None:
                return None
            self.withdraw(question)
            return answer

    def withdraw(self, question: str) -> None:
        with self._lock:
            session = self._of_question.pop(question, None)
            if session is not None:
                del self._sessions[session].questions[question]

    # Open streams, for the admin

    def show_stream(self, stream: OpenStream) -> None:
        with self._lock:
            self.renew(stream.owner)
            self._streams[stream.key] = stream

    def hide_stream(self, key: str) -> None:
        with self._lock:
            self._streams.pop(key, None)

    def streams(self) -> list[OpenStream]:
        with self._lock:
            held = [one for one in self._streams.values() if self._holds(one.owner)]
        return sorted(held, key=lambda one: one.opened, reverse=True)

    # Upkeep

    def prune(self) -> int:
        with self._lock:
            before = self._size()
            for key in [key for key, one in self._sessions.items() if not self._is_live(one)]:
                self._forget_session(key)
            for key in list(self._of_log):
                self._log(key)
            for session in self._sessions.values():
                for asked in list(session.questions.values()):
                    if not self._is_awaited(asked):
                        self.withdraw(asked.question.id)
            for stream in list(self._streams.values()):
                if not self._holds(stream.owner):
                    del self._streams[stream.key]
            self._renewed = {one: at for one, at in self._renewed.items() if self._holds(one)}
            return before - self._size()

    # What the methods above are made of. Each is called with the lock held.

    def _size(self) -> int:
        beside = len(self._of_log) + len(self._of_question) + len(self._streams)
        return len(self._sessions) + beside

    def _live(self, key: str) -> KeptSession | None:
        kept = self._sessions.get(key)
        return kept if kept is not None and self._is_live(kept) else None

    def _is_live(self, kept: KeptSession) -> bool:
        return self.clock() - kept.session.seen < self.idle()

    def _holds(self, owner: str) -> bool:
        renewed = self._renewed.get(owner)
        return renewed is not None and self.clock() - renewed < bounds.LEASE

    def _log(self, key: str) -> KeptLog | None:
        kept = self._live(self._of_log.get(key, ""))
        if kept is None:
            return None
        log = kept.logs[key]
        if log.final_since is not None and self.clock() - log.final_since >= bounds.KEPT:
            self._forget_log(key)
            return None
        return log

    def _is_spare(self, kept: KeptLog) -> bool:
        return kept.final_since is not None or not self._holds(kept.log.owner)

    def _is_awaited(self, asked: KeptQuestion) -> bool:
        is_young = self.clock() - asked.asked < bounds.QUESTION_LIFE
        return is_young and self._holds(asked.question.owner)

    def _is_open(self, asked: KeptQuestion) -> bool:
        return asked.answer is None and self._is_awaited(asked)

    def _forget_session(self, key: str) -> None:
        kept = self._sessions.get(key)
        if kept is None:
            return
        for log in list(kept.logs):
            self._forget_log(log)
        for question in list(kept.questions):
            self.withdraw(question)
        del self._sessions[key]

    def _forget_log(self, key: str) -> None:
        del self._sessions[self._of_log.pop(key)].logs[key]

"""The store: a few documents in a cache of the site, the same for every backend.

A cache may lose an entry at any time. A session that is lost has ended, a log that is lost was
never there, an owner whose lease is lost is gone until it renews it: nobody waits for more.

Names of documents, and what is in them. What a client may have sent is hashed.

session:KEY      the fields of the session, the owner of its standalone stream, its subscriptions,
                 its logs by key with the time when they were opened, digests of its questions
log:DIGEST       session, owner, request, number of the last event, events, when it ended
question:DIGEST  session, owner, when it was asked
answer:DIGEST    bytes
lease:OWNER      when it was renewed
sessions:NUMBER  of a share of all sessions, by key, whose they are and when they were seen
streams:OWNER    the open streams of one process
owners           those of whom there are streams
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from django.core.cache import BaseCache
from django.utils import timezone

from mcp_django.signing import digest_of
from mcp_django.stores import bounds
from mcp_django.stores.bounds import Clock
from mcp_django.stores.documents import Documents, make_cache
from mcp_django.stores.interface import Event, Log, OpenStream, Page, Question, Session, StoreFull

StoreDocument: TypeAlias = dict[str, Any]

#: Documents that list sessions: many, so that none is long and few wait for the same one.
LISTS_OF_SESSIONS = 64
#: Seconds that a lease stays. Longer than it holds: a cache may drop one that is renewed just when
#: it expires.
LEASE_LIFE = 4 * bounds.LEASE.total_seconds()
#: Seconds that a list of owners stays. Owners see to it that they are in it.
OWNERS_LIFE = 3600.0
QUESTION_SECONDS = bounds.QUESTION_LIFE.total_seconds()
#: With more changes than one in this time, other processes read of streams what the next sign of
#: life says: to write down thousands takes long.
SOON = timedelta(seconds=1)


def session_name(key: str) -> str:
    return f"session:{key}"


def log_name(key: str) -> str:
    return f"log:{digest_of(key)}"


def lease_name(owner: str) -> str:
    return f"lease:{owner}"


def streams_name(owner: str) -> str:
    return f"streams:{owner}"


def question_names(digest: str) -> tuple[str, str]:
    """Those of a question and of its answer."""
    return f"question:{digest}", f"answer:{digest}"


def whose(session: Session) -> str:
    """Return a digest: sessions with the same one count together. All anonymous callers are one
    principal, which is divided into sixteen.
    """
    part = "" if session.user else session.key[:1]
    return digest_of(f"{session.principal} {part}")


def list_name(digest: str) -> str:
    return f"sessions:{int(digest[:4], 16) % LISTS_OF_SESSIONS}"


class CacheStore:
    def __init__(
        self,
        make: Callable[[], BaseCache] = make_cache,
        *,
        clock: Clock = timezone.now,
        idle: Callable[[], timedelta] = bounds.idle_limit,
    ) -> None:
        self.clock = clock
        self.idle = idle
        self.documents = Documents(make)
        #: The open streams of this process, by owner and key.
        self._streams: dict[str, dict[str, OpenStream]] = {}
        #: When other processes were told of the streams of an owner.
        self._told: dict[str, datetime] = {}
        self._lock = threading.Lock()

    # Sessions

    def add_session(self, session: Session) -> None:
        document = {
            "fields": {**vars(session)},
            "subscriptions": [],
            "logs": {},
            "questions": [],
        }
        self.documents.put(session_name(session.key), document, self._life())
        self._list(session)

    def session(self, key: str) -> Session | None:
        document = self._live(key)
        return None if document is None else Session(**document["fields"])

    def see(self, key: str) -> None:
        session, now = self.session(key), self.clock()
        if session is None or now - session.seen < bounds.SEEN_EVERY:
            return
        with self._changing(key) as document:
            if document is None:
                return
            document["fields"]["seen"] = now
            self._keep_logs(document["logs"])
        self._list(Session(**document["fields"]))

    def update_session(self, key: str, **fields: Any) -> None:
        with self._changing(key) as document:
            if document is not None:
                document["fields"].update(fields)

    def end_session(self, key: str) -> bool:
        with self.documents.locked(session_name(key)):
            if (document := self._live(key)) is None:
                return False
            self.documents.drop(session_name(key))
        for log in document["logs"]:
            self.documents.drop(log_name(log))
        for digest in document["questions"]:
            self._drop_question(digest)
        name = list_name(whose(Session(**document["fields"])))
        with self.documents.locked(name) as put:
            listed = self.documents.get(name) or {}
            if listed.pop(key, None):
                put(name, listed, self._life())
        return True

    def sessions(self) -> list[Session]:
        lists = self.documents.get_many(f"sessions:{n}" for n in range(LISTS_OF_SESSIONS))
        names = [session_name(key) for listed in lists.values() for key in listed]
        documents = self.documents.get_many(names).values()
        live = [Session(**each["fields"]) for each in documents if self._is_live(each)]
        return sorted(live, key=lambda session: session.created, reverse=True)

    # Subscriptions of sessions

    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        with self._changing(session) as document:
            if document is None:
                return False
            uris = document["subscriptions"]
            if uri not in uris and len(uris) < most:
                uris.append(uri)
            return uri in uris

    def unsubscribe(self, session: str, uri: str) -> None:
        with self._changing(session) as document:
            if document is not None and uri in document["subscriptions"]:
                document["subscriptions"].remove(uri)

    def subscriptions(self, session: str) -> frozenset[str]:
        document = self._live(session)
        return frozenset(() if document is None else document["subscriptions"])

    # Event logs

    def open_log(self, log: Log) -> None:
        self._renew_lease(log.owner)
        with self._changing(log.session) as document:
            if document is None:
                return
            logs = document["logs"]
            if len(logs) >= bounds.MOST_LOGS:
                spare = next(filter(self._is_spare, logs), None)
                if spare is None:
                    raise StoreFull("The session has too many streams that go on.")
                self.documents.drop(log_name(spare))
                del logs[spare]
            logs[log.key] = self.clock()
            fields = {"session": log.session, "owner": log.owner, "request": log.request}
            empty: StoreDocument = {**fields, "last": 0, "events": [], "ended": None}
            self.documents.put(log_name(log.key), empty, self._log_life())

    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        return self._add(key, events, is_final=is_final)[1]

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        log = self._log(key)
        if log is None or log["session"] != session:
            return None
        first = log["last"] - len(log["events"]) + 1
        events = [
            Event(number=number, data=data)
            for number, data in enumerate(log["events"], first)
            if number > after
        ]
        is_final = log["ended"] is not None
        return Page(
            events=events,
            is_final=is_final,
            is_orphaned=not is_final and not self._holds(log["owner"]),
            has_gap=max(after, 0) < log["last"] - len(events),
            request=log["request"],
        )

    def close_orphan(self, key: str, event: bytes) -> bool:
        return self._add(key, [event], is_final=True, only_orphan=True)[0]

    def renew(self, owner: str) -> None:
        self._renew_lease(owner)
        with self._lock:
            if owner not in self._streams:
                return
            self._told[owner] = self.clock()
            fields = [{**vars(stream)} for stream in self._streams[owner].values()]
            if not fields:
                del self._streams[owner]
        # Also where nothing has changed: the cache may have lost them.
        self.documents.put(streams_name(owner), fields, LEASE_LIFE)
        if owner not in (self.documents.get("owners") or ()):
            with self.documents.locked("owners") as put:
                held = self._holders(self.documents.get("owners") or ())
                put("owners", sorted({*held, owner}), OWNERS_LIFE)

    # Questions

    def ask(self, question: Question) -> None:
        self._renew_lease(question.owner)
        digest = digest_of(question.id)
        with self._changing(question.session) as document:
            if document is None:
                return
            names = {other: question_names(other) for other in document["questions"]}
            there = self.documents.get_many(name for pair in names.values() for name in pair)
            awaited = [
                other for other in names if self._is_awaited(there.get(question_names(other)[0]))
            ]
            is_open = [question_names(other)[1] not in there for other in awaited]
            if sum(is_open) >= bounds.MOST_QUESTIONS:
                raise StoreFull("The session has too many open questions.")
            document["questions"] = [*awaited, digest]
            fields = {"session": question.session, "owner": question.owner}
            name, _ = question_names(digest)
            self.documents.put(name, {**fields, "asked": self.clock()}, QUESTION_SECONDS)

    def answer(self, session: str, question: str, answer: bytes) -> bool:
        name, answer_name = question_names(digest_of(question))
        asked = self.documents.get(name)
        return (
            self._is_awaited(asked)
            and asked["session"] == session
            and self._live(session) is not None
            and self.documents.add(answer_name, answer, QUESTION_SECONDS)
        )

    def take_answer(self, question: str) -> bytes | None:
        name, answer_name = question_names(digest_of(question))
        answer: bytes | None = self.documents.get(answer_name)
        # Whoever drops the question has the answer, however many have read it. That stays for a
        # moment: somebody who has just seen the question must not add another one.
        if answer is None or not self.documents.drop(name):
            return None
        self.documents.touch(answer_name, 60)
        return answer

    def withdraw(self, question: str) -> None:
        self._drop_question(digest_of(question))

    # Open streams, for the admin. This process knows its own; others read what it writes.

    def show_stream(self, stream: OpenStream) -> None:
        with self._lock:
            self._streams.setdefault(stream.owner, {})[stream.key] = stream
        self._tell(stream.owner)

    def hide_stream(self, key: str) -> None:
        with self._lock:
            owners = [owner for owner, theirs in self._streams.items() if theirs.pop(key, None)]
        for owner in owners:
            self._tell(owner)

    def streams(self) -> list[OpenStream]:
        with self._lock:
            streams = {owner: [*theirs.values()] for owner, theirs in self._streams.items()}
        owners = self._holders({*streams, *(self.documents.get("owners") or ())})
        others = [owner for owner in owners if owner not in streams]
        fields = self.documents.get_many(map(streams_name, others))
        for owner in others:
            theirs = fields.get(streams_name(owner), ())
            streams[owner] = [OpenStream(**each) for each in theirs]
        held = [stream for owner in owners for stream in streams[owner]]
        return sorted(held, key=lambda stream: stream.opened, reverse=True)

    # What the methods above are made of

    @contextmanager
    def _changing(self, key: str) -> Iterator[StoreDocument | None]:
        """Give the document of a session, and write it where it was changed."""
        with self.documents.locked(session_name(key)) as put:
            document = self._live(key)
            before = deepcopy(document)
            yield document
            if document != before:
                put(session_name(key), document, self._life())

    def _live(self, key: str) -> StoreDocument | None:
        document = self.documents.get(session_name(key))
        return document if document is not None and self._is_live(document) else None

    def _is_live(self, document: StoreDocument) -> bool:
        is_live: bool = self.clock() - document["fields"]["seen"] < self.idle()
        return is_live

    def _life(self) -> float | None:
        """Seconds after which what nobody touches goes. None: never."""
        idle = self.idle()
        return None if idle == timedelta.max else idle.total_seconds()

    def _log_life(self) -> float | None:
        # A call may wait for a person for longer than a session may be idle.
        life = self._life()
        return None if life is None else max(life, QUESTION_SECONDS)

    def _list(self, session: Session) -> None:
        """List the session as it is, and end those that its principal has too many then."""
        digest, now, idle = whose(session), self.clock(), self.idle()
        name = list_name(digest)
        with self.documents.locked(name) as put:
            listed = {
                key: (other, seen)
                for key, (other, seen) in (self.documents.get(name) or {}).items()
                if now - seen < idle and key != session.key
            }
            theirs = [key for key, (other, _) in listed.items() if other == digest]
            theirs.sort(key=lambda key: listed[key][1], reverse=True)
            put(name, {**listed, session.key: (digest, session.seen)}, self._life())
        for surplus in theirs[bounds.MOST_SESSIONS - 1 :]:
            self.end_session(surplus)

    def _renew_lease(self, owner: str) -> None:
        self.documents.put(lease_name(owner), self.clock(), LEASE_LIFE)

    def _holders(self, owners: Iterable[str]) -> list[str]:
        """Return those that hold their lease."""
        names, now = {lease_name(owner): owner for owner in owners}, self.clock()
        leases = self.documents.get_many(names)
        return [names[name] for name, at in leases.items() if now - at < bounds.LEASE]

    def _holds(self, owner: str) -> bool:
        return bool(self._holders([owner]))

    def _log(self, key: str) -> StoreDocument | None:
        """Return a log that its session still has."""
        log: StoreDocument | None = self.documents.get(log_name(key))
        if log is None or self._live(log["session"]) is None:
            return None
        ended = log["ended"]
        return log if ended is None or self.clock() - ended < bounds.KEPT else None

    def _add(
        self, key: str, events: Sequence[bytes], *, is_final: bool, only_orphan: bool = False
    ) -> tuple[bool, int]:
        """Return whether the events were added, and the number of the last one."""
        name = log_name(key)
        with self.documents.locked(name) as put:
            if (log := self._log(key)) is None:
                return False, 0
            if log["ended"] is not None or (only_orphan and self._holds(log["owner"])):
                return False, log["last"]
            log["events"] += events
            log["last"] += len(events)
            del log["events"][: bounds.too_many([len(event) for event in log["events"]])]
            if is_final:
                log["ended"] = self.clock()
            put(name, log, bounds.KEPT.total_seconds() if is_final else self._log_life())
            return True, log["last"]

    def _is_spare(self, key: str) -> bool:
        log = self._log(key)
        return log is None or log["ended"] is not None or not self._holds(log["owner"])

    def _keep_logs(self, logs: dict[str, datetime]) -> None:
        """Keep those that go on for long, and nothing of them that ended."""
        now = self.clock()
        for key in [key for key, at in logs.items() if 2 * (now - at) > bounds.QUESTION_LIFE]:
            log = self._log(key)
            if log is None:
                del logs[key]
            elif log["ended"] is None:
                self.documents.touch(log_name(key), self._log_life())

    def _is_awaited(self, asked: StoreDocument | None) -> bool:
        return (
            asked is not None
            and self.clock() - asked["asked"] < bounds.QUESTION_LIFE
            and self._holds(asked["owner"])
        )

    def _drop_question(self, digest: str) -> None:
        for name in question_names(digest):
            self.documents.drop(name)

    def _tell(self, owner: str) -> None:
        told = self._told.get(owner)
        if told is None or self.clock() - told >= SOON:
            self.renew(owner)

"""What a server remembers of the legacy era: sessions, what was sent on their streams, questions.

All of it is in a cache of the site, which may lose an entry at any time. A session that is lost
has ended, a log that is lost was never there, and an owner whose lease is lost is gone until it
renews it: nobody waits for more. Of the modern era only open streams are listed, for the admin.

Names of documents, and what is in them. What a client may have sent is hashed.

session:KEY      the fields of the session, its subscriptions, the names of its logs with the time
                 when they were opened, and those of its questions with their owners
log:DIGEST       session, owner, request, number of the last event, events, when it ended
question:DIGEST  there until it is answered
answer:NAME      bytes, by the name of the question
lease:OWNER      when it was renewed
sessions:NUMBER  of a share of all sessions, by key, whose they are and when they were seen
streams:OWNER    the open streams of one process
owners           those of whom there are streams
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import filterfalse
from typing import Any

from django.core.cache import BaseCache
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.signing import digest_of
from mcp_django.stores.documents import Documents, make_cache

#: A process that has not renewed its lease for so long is gone.
LEASE = timedelta(seconds=15)
#: Seconds that a lease stays. Longer than it holds: a cache may drop one that is renewed just when
#: it expires.
LEASE_LIFE = 60.0
#: How far behind `Session.seen` may be.
SEEN_EVERY = timedelta(minutes=1)
#: Sessions of one principal, or of a sixteenth of all anonymous callers.
MOST_SESSIONS = 256
#: Documents that list sessions: many, so that none is long and few wait for the same one.
LISTS_OF_SESSIONS = 64
#: Logs of one session. As many as a principal may have streams.
MOST_LOGS = 64
#: What one log keeps, in events and in bytes.
MOST_EVENTS, MOST_BYTES = 256, 1024 * 1024
#: A client that lost its stream comes back within this time of the stream's end.
KEPT = timedelta(minutes=5)
#: Questions that one session may have open.
MOST_QUESTIONS = 100
#: Seconds that questions stay, and logs that go on at least: a call may wait for a person for
#: longer than a session may be idle.
HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """One legacy client between its handshake and its end."""

    #: The hash of its id.
    key: str
    server: str
    #: `Principal.key`: nobody else finds the session.
    principal: str
    #: The user's primary key as text, empty for the anonymous user. For the admin's switches.
    user: str = ""
    #: streamable_http, http_sse or stdio.
    transport: str
    #: The revision that was agreed on.
    revision: str
    client: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    is_initialized: bool = False
    #: The least level of log messages that the client wants. None: it never said.
    log_level: str | None = None
    #: The process that serves its standalone stream. Empty: none has yet.
    standalone: str = ""
    created: datetime
    #: When it was last used, at most a minute behind.
    seen: datetime


@dataclass(frozen=True, kw_only=True)
class Event:
    #: Counts from 1 within its log.
    number: int
    #: One message as JSON.
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Page:
    """Part of a log."""

    events: Sequence[Event]
    #: Nothing will follow these.
    is_final: bool
    #: The process that made the events has not renewed its lease in time.
    is_orphaned: bool
    #: Events after the one asked for were dropped already, to keep the log within its bounds.
    has_gap: bool
    #: The id of the request that is answered there, as JSON.
    request: str


@dataclass(frozen=True, kw_only=True)
class OpenStream:
    """One open stream of any era, for the admin to see and to end."""

    key: str
    owner: str
    #: As in `Session`.
    server: str
    principal: str
    user: str = ""
    #: Name and version as the client says.
    client: str = ""
    #: listen, standalone, call, http_sse or stdio.
    kind: str
    revision: str
    #: The session's key, empty in the modern era.
    session: str = ""
    #: The URIs and lists that it is notified of.
    topics: Sequence[str] = ()
    opened: datetime


class StoreFull(Exception):
    """The session has as many logs that go on, or open questions, as one may have."""


class Store:
    """Any thread of any process may call any method. Those that write raise RuntimeError within a
    transaction of the cache's database. All raise what the cache raises when it is out of reach.

    Nothing is kept for a session that does not exist, and no method complains. None looks at
    rights: whoever calls it has compared principals. Owners have up to 100 characters.
    """

    def __init__(
        self,
        make: Callable[[], BaseCache] = make_cache,
        *,
        clock: Callable[[], datetime] = timezone.now,
        idle: Callable[[], float] = lambda: get_config().session_idle,
    ) -> None:
        self.clock = clock
        #: Seconds without use after which a session is over.
        self.idle = idle
        self.documents = Documents(make)
        #: The open streams of this process by key.
        self._streams: dict[str, OpenStream] = {}

    # Sessions

    def add_session(self, session: Session) -> None:
        """Keep it. A principal with too many loses the one that was unused for longest."""
        fields = {**vars(session)}
        document = {"fields": fields, "subscriptions": [], "logs": {}, "questions": {}}
        self.documents.put(f"session:{session.key}", document, self.idle())
        self._list(session)

    def session(self, key: str) -> Session | None:
        """Return None for one that never was, was ended, or has been idle for too long."""
        document = self._live(key)
        return None if document is None else Session(**document["fields"])

    def see(self, key: str) -> None:
        """Note that the session was used. Costs a write at most once a minute."""
        session, now = self.session(key), self.clock()
        if session is None or now - session.seen < SEEN_EVERY:
            return
        with self._changing(key) as document:
            if document is None:
                return
            document["fields"]["seen"], logs = now, document["logs"]
            for log in [log for log, at in logs.items() if (now - at).total_seconds() > HOUR / 2]:
                if self._goes_on(log):
                    self.documents.touch(log, max(self.idle(), HOUR))
                else:
                    del logs[log]
        self._list(Session(**document["fields"]))

    def update_session(self, key: str, **fields: Any) -> None:
        """Change these fields of `Session`."""
        with self._changing(key) as document:
            if document is not None:
                document["fields"].update(fields)

    def end_session(self, key: str) -> bool:
        """Forget it with all that belongs to it. Return False where there was none."""
        with self.documents.locked(f"session:{key}"):
            if (document := self._live(key)) is None:
                return False
            self.documents.drop(f"session:{key}")
        answers = [f"answer:{name}" for name in document["questions"]]
        self.documents.drop_many([*document["logs"], *document["questions"], *answers])
        with self._listed(Session(**document["fields"])):
            return True

    def sessions(self) -> list[Session]:
        """Return those that are not idle for too long, newest first."""
        lists = self.documents.get_many(f"sessions:{n}" for n in range(LISTS_OF_SESSIONS))
        names = [f"session:{key}" for listed in lists.values() for key in listed]
        fields = [document["fields"] for document in self.documents.get_many(names).values()]
        live = [Session(**each) for each in fields if self._is_recent(each["seen"])]
        return sorted(live, key=lambda session: session.created, reverse=True)

    # Subscriptions of sessions

    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        """Return whether the session has the subscription now: not if it has `most` others."""
        with self._changing(session) as document:
            uris = [] if document is None else document["subscriptions"]
            if document is not None and uri not in uris and len(uris) < most:
                uris.append(uri)
            return uri in uris

    def unsubscribe(self, session: str, uri: str) -> None:
        with self._changing(session) as document:
            if document is not None and uri in document["subscriptions"]:
                document["subscriptions"].remove(uri)

    def subscriptions(self, session: str) -> frozenset[str]:
        document = self._live(session)
        return frozenset(() if document is None else document["subscriptions"])

    # Logs: what was sent on one stream of a session, for a client that comes back. The owner of a
    # log is the hub whose process makes the events: without it nothing will ever be added.

    def open_log(self, key: str, *, session: str, owner: str, request: str = "null") -> None:
        """Begin an empty log, for the answer to a request with this id: short JSON. Its owner
        holds the lease, as if it had renewed it now.

        A session with many logs loses the oldest that nobody adds to. Raises StoreFull where all
        of them go on.
        """
        self._renew_lease(owner)
        with self._changing(session) as document:
            if document is None:
                return
            logs, name = document["logs"], f"log:{digest_of(key)}"
            if len(logs) >= MOST_LOGS:
                if (spare := next(filterfalse(self._goes_on, logs), None)) is None:
                    raise StoreFull("The session has too many streams that go on.")
                self.documents.drop(spare)
                del logs[spare]
            logs[name] = self.clock()
            log: dict[str, Any] = {"session": session, "owner": owner, "request": request}
            log |= {"last": 0, "events": [], "ended": None}
            self.documents.put(name, log, max(self.idle(), HOUR))

    def append(
        self, key: str, events: Sequence[bytes], *, is_final: bool = False, if_orphan: bool = False
    ) -> int:
        """Add events in order, and return the number of the last one (0: there was never one).

        A log that is final takes nothing more, nor, with `if_orphan`, does one whose owner holds
        its lease: its number stays. One that is gone has none: 0. The oldest events go when there
        are more than the bounds allow; the last one never does.
        """
        name = f"log:{digest_of(key)}"
        with self.documents.locked(name) as put:
            if (log := self._log(key)) is None:
                return 0
            if log["ended"] is None and not (if_orphan and self._holders([log["owner"]])):
                log["last"] += len(events)
                log["events"] = [*log["events"], *events][-MOST_EVENTS:]
                while len(log["events"]) > 1 and sum(map(len, log["events"])) > MOST_BYTES:
                    del log["events"][0]
                log["ended"] = self.clock() if is_final else None
                put(name, log, KEPT.total_seconds() if is_final else max(self.idle(), HOUR))
            return int(log["last"])

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        """Return events later than number `after`. None where the session has no such log, or the
        log was final for too long.
        """
        log = self._log(key)
        if log is None or log["session"] != session:
            return None
        dropped, is_final = log["last"] - len(log["events"]), log["ended"] is not None
        events = [Event(number=n, data=data) for n, data in enumerate(log["events"], dropped + 1)]
        return Page(
            events=[event for event in events if event.number > after],
            is_final=is_final,
            is_orphaned=not is_final and not self._holders([log["owner"]]),
            has_gap=max(after, 0) < dropped,
            request=log["request"],
        )

    # Questions: requests of ours to the client of a session. Their ids are unguessable.

    def ask(self, session: str, question: str, *, owner: str) -> None:
        """Open it, for as long as its owner holds the lease, and an hour at most. The owner holds
        the lease, as if it had renewed it now. Raises StoreFull where too many are open.
        """
        self._renew_lease(owner)
        with self._changing(session) as document:
            if document is None:
                return
            owners, name = document["questions"], f"question:{digest_of(question)}"
            there, holders = self.documents.get_many(owners), self._holders({*owners.values()})
            still_open = {other: owners[other] for other in there if owners[other] in holders}
            if len(still_open) >= MOST_QUESTIONS:
                raise StoreFull("The session has too many open questions.")
            document["questions"] = {**still_open, name: owner}
            self.documents.put(name, 1, HOUR)

    def answer(self, session: str, question: str, answer: bytes) -> bool:
        """Keep the answer. Return False where no such question of the session is open:
        unknown, foreign, answered before, withdrawn and too old are all alike.
        """
        name, document = f"question:{digest_of(question)}", self._live(session)
        owner = None if document is None else document["questions"].get(name)
        return (
            owner is not None
            and bool(self._holders([owner]))
            # Of many who answer, this lets one through.
            and self.documents.drop(name)
            and self.documents.add(f"answer:{name}", answer, HOUR)
        )

    def take_answer(self, question: str) -> bytes | None:
        """Return the answer, and forget it. None while there is none."""
        name = f"answer:question:{digest_of(question)}"
        answer: bytes | None = self.documents.get(name)
        return answer if answer is not None and self.documents.drop(name) else None

    def withdraw(self, question: str) -> None:
        """Nobody waits for the answer any more."""
        name = f"question:{digest_of(question)}"
        self.documents.drop_many([name, f"answer:{name}"])

    # Owners, and their open streams for the admin. A process knows its own, and reads of others.

    def renew(self, owner: str) -> None:
        """Note that the process of `owner` lives: its logs, questions and streams hold for another
        lease. Other processes read from now on which streams it has.
        """
        self._renew_lease(owner)
        streams = self._streams.copy().values()
        fields = [{**vars(stream)} for stream in streams if stream.owner == owner]
        if not fields:
            return
        # Also where nothing has changed: the cache may have lost them.
        self.documents.put(f"streams:{owner}", fields, LEASE_LIFE)
        if owner not in (self.documents.get("owners") or ()):
            with self.documents.locked("owners") as put:
                holders = self._holders(self.documents.get("owners") or ())
                put("owners", sorted({*holders, owner}), HOUR)

    def show_stream(self, stream: OpenStream) -> None:
        """List it, or replace what is listed of it. Costs no access to the cache."""
        self._streams[stream.key] = stream

    def hide_stream(self, key: str) -> None:
        stream = self._streams.pop(key, None)
        if stream is not None and not self._streams:
            self.documents.drop(f"streams:{stream.owner}")

    def streams(self) -> list[OpenStream]:
        """Return those of this process, and of owners that hold their lease, newest first."""
        own = self._streams.copy().values()
        owners = {*(self.documents.get("owners") or ())} - {stream.owner for stream in own}
        lists = self.documents.get_many(f"streams:{owner}" for owner in self._holders(owners))
        others = [OpenStream(**fields) for listed in lists.values() for fields in listed]
        return sorted([*own, *others], key=lambda stream: stream.opened, reverse=True)

    # What the methods above are made of

    @contextmanager
    def _changing(self, key: str) -> Iterator[dict[str, Any] | None]:
        """Give the document of a session, and write it where it was changed."""
        with self.documents.locked(f"session:{key}") as put:
            document = self._live(key)
            before = deepcopy(document)
            yield document
            if document != before:
                put(f"session:{key}", document, self.idle())

    def _live(self, key: str) -> dict[str, Any] | None:
        """Return the document of a session that is not over."""
        document: dict[str, Any] | None = self.documents.get(f"session:{key}")
        return document if document and self._is_recent(document["fields"]["seen"]) else None

    def _is_recent(self, seen: datetime) -> bool:
        return (self.clock() - seen).total_seconds() < self.idle()

    @contextmanager
    def _listed(self, session: Session) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the digest that a session counts under, and its list, in the order of their use,
        without itself and those that are over. Write the list.
        """
        # All anonymous callers are one principal, which is divided into sixteen.
        part = "" if session.user else session.key[:1]
        digest = digest_of(f"{session.principal} {part}")
        name = f"sessions:{int(digest[:4], 16) % LISTS_OF_SESSIONS}"
        with self.documents.locked(name) as put:
            listed = self.documents.get(name) or {}
            listed.pop(session.key, None)
            listed = {key: row for key, row in listed.items() if self._is_recent(row[1])}
            yield digest, listed
            put(name, listed, self.idle())

    def _list(self, session: Session) -> None:
        """List the session as it is, and end those that its principal has too many then."""
        with self._listed(session) as (digest, listed):
            listed[session.key] = digest, session.seen
        theirs = [key for key, (other, _) in listed.items() if other == digest]
        for surplus in theirs[:-MOST_SESSIONS]:
            self.end_session(surplus)

    def _renew_lease(self, owner: str) -> None:
        self.documents.put(f"lease:{owner}", self.clock(), LEASE_LIFE)

    def _holders(self, owners: Iterable[str]) -> list[str]:
        """Return those that hold their lease."""
        names, now = {f"lease:{owner}": owner for owner in owners}, self.clock()
        leases = self.documents.get_many(names)
        return [names[name] for name, at in leases.items() if now - at < LEASE]

    def _log(self, key: str) -> dict[str, Any] | None:
        """Return a log that its session still has."""
        log: dict[str, Any] | None = self.documents.get(f"log:{digest_of(key)}")
        if log is None or self._live(log["session"]) is None:
            return None
        ended = log["ended"]
        return log if ended is None or self.clock() - ended < KEPT else None

    def _goes_on(self, name: str) -> bool:
        """Return whether somebody may still add to a log."""
        log = self.documents.get(name)
        return log is not None and log["ended"] is None and bool(self._holders([log["owner"]]))


#: By process: neither connections nor locks survive a fork.
_stores: dict[int, Store] = {}


def get_store() -> Store:
    # Of many threads that come first, one has its store stay.
    return _stores.get(os.getpid()) or _stores.setdefault(os.getpid(), Store())


@contextmanager
def using_store(store: Store) -> Iterator[None]:
    """Have `get_store` return this one meanwhile, whatever the settings name."""
    _stores[os.getpid()] = store
    try:
        yield
    finally:
        _stores.clear()


@receiver(setting_changed)
def forget_store(*, setting: str = "CACHES", **kwargs: Any) -> None:
    if setting in ("MCP_DJANGO", "CACHES"):
        _stores.clear()

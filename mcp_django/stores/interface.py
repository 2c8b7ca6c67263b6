"""What the legacy era makes a server remember: sessions, event logs, questions that are open.

A store is sync and is asked in a thread that may use the database. It never looks at rights:
whoever asks has compared principals already. Ids that were given to clients arrive here hashed,
as keys. The modern era remembers nothing; only its open streams are shown here, for the admin.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.core.signals import setting_changed
from django.dispatch import receiver


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
class Log:
    """What was sent on one stream of a session, for a client that comes back."""

    key: str
    session: str
    #: The hub whose process makes the events. Without it nothing will ever be added.
    owner: str
    #: The id of the request that is answered there, as JSON: short texts and numbers.
    request: str = "null"


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
    #: `Log.request`.
    request: str = "null"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request of ours to the client of a session, not answered yet."""

    session: str
    #: The id of our request. Unguessable, and so unique in the store.
    id: str
    owner: str


@dataclass(frozen=True, kw_only=True)
class OpenStream:
    """One open stream of any era, for the admin to see and to end."""

    key: str
    owner: str
    server: str
    #: `Principal.key`.
    principal: str
    #: The user's primary key as text, empty for the anonymous user.
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


class Store(Protocol):
    """All methods may be called from any thread and process at once. Those that write are called
    outside of transactions; those that read may see what was true when theirs began.

    They raise what their backend raises when that is gone: the call that needed them fails, and
    calls that need no store go on. Keys have up to 64 characters, owners up to 100. For a session
    that is not there nothing is kept, and no method complains.
    """

    # Sessions

    def add_session(self, session: Session) -> None:
        """Keep it. A principal with too many loses the one that was unused for longest."""
        ...

    def session(self, key: str) -> Session | None:
        """None for one that never was, was ended, or has been idle for too long: all alike."""
        ...

    def see(self, key: str) -> None:
        """The session was used. Costs a write at most once a minute."""
        ...

    def update_session(self, key: str, **fields: Any) -> None:
        """Change these fields of `Session`: what its handshake agreed on, that it was initialized,
        or its log level.
        """
        ...

    def end_session(self, key: str) -> bool:
        """Forget it with all that belongs to it. False where there was none."""
        ...

    def sessions(self) -> list[Session]:
        """Those that are not idle for too long, newest first."""
        ...

    # Subscriptions of sessions

    def subscribe(self, session: str, uri: str, *, most: int) -> bool:
        """Whether the session has the subscription now: False where it has `most` others."""
        ...

    def unsubscribe(self, session: str, uri: str) -> None: ...

    def subscriptions(self, session: str) -> frozenset[str]: ...

    # Event logs

    def open_log(self, log: Log) -> None:
        """Begin an empty log. Its owner holds the lease, as if it had renewed it now.

        A session with many logs loses the oldest that nobody adds to. Raises StoreFull where all
        of them go on.
        """
        ...

    def append(self, key: str, events: Sequence[bytes], *, is_final: bool = False) -> int:
        """Add events in order, and return the number of the last one (0: there was never one).

        A log that is final takes nothing more: its number stays. One that is gone has none: 0.
        The oldest events go when there are more than the bounds allow; the last one never does.
        """
        ...

    def read(self, key: str, *, session: str, after: int) -> Page | None:
        """Events later than number `after`. None where the session has no such log, or it was
        final for too long.
        """
        ...

    def close_orphan(self, key: str, event: bytes) -> bool:
        """End a log whose owner is gone, with one last event. True for exactly one caller."""
        ...

    def renew(self, owner: str) -> None:
        """The process of `owner` lives: its logs, questions and streams hold for another lease."""
        ...

    # Questions

    def ask(self, question: Question) -> None:
        """Open it, for as long as its owner holds the lease, and an hour at most. The owner holds
        the lease, as if it had renewed it now. Raises StoreFull where too many are open.
        """
        ...

    def answer(self, session: str, question: str, answer: bytes) -> bool:
        """Keep the answer. False where no such question of the session is open:
        unknown, foreign, answered before, withdrawn and too old are all alike.
        """
        ...

    def take_answer(self, question: str) -> bytes | None:
        """The answer, which is forgotten with its question. None while there is none."""
        ...

    def withdraw(self, question: str) -> None:
        """Nobody waits for the answer any more."""
        ...

    # Open streams, for the admin

    def show_stream(self, stream: OpenStream) -> None:
        """Add it, or replace what was said of it before. Its owner holds the lease, as if it had
        renewed it now.
        """
        ...

    def hide_stream(self, key: str) -> None: ...

    def streams(self) -> list[OpenStream]:
        """Those whose owner holds its lease, newest first."""
        ...


# The store of this process, over the cache that the settings name.


def make_store() -> Store:
    """Return a new store. Raises ImproperlyConfigured where its cache cannot be had."""
    # It implements what is above.
    from mcp_django.stores.cache import CacheStore
    from mcp_django.stores.documents import make_cache

    make_cache()
    return CacheStore()


class ChosenStore:
    """What `get_store` answers with. Made at first need, once."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start again. Neither connections nor locks survive a fork."""
        self._store: Store | None = None
        self._lock = threading.Lock()

    def get(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = make_store()
            return self._store

    @contextmanager
    def using(self, store: Store) -> Iterator[None]:
        """Have this one meanwhile, whatever the settings name."""
        with self._lock:
            kept, self._store = self._store, store
        try:
            yield
        finally:
            with self._lock:
                self._store = kept


chosen = ChosenStore()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=chosen.forget)


def get_store() -> Store:
    """The store of this process. Raises ImproperlyConfigured where its cache cannot be had."""
    return chosen.get()


@receiver(setting_changed)
def forget_store(*, setting: str, **kwargs: Any) -> None:
    if setting in ("MCP_DJANGO", "CACHES"):
        chosen.forget()

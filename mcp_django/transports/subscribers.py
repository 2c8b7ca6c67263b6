"""Streams that hear of changes: what each wants, what it was not told yet, and who reads them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, Protocol

from django.http import HttpRequest

from mcp_django.principal import Principal
from mcp_django.subscriptions.events import CLOSE, Topic, control_topic
from mcp_django.subscriptions.topics import Uris


class Reader(Protocol):
    """Whoever opened a stream, with the credential that they opened it with. In threads."""

    def request(self) -> HttpRequest:
        """A new request of theirs, without a user."""
        ...

    def recognise(self, request: HttpRequest) -> Principal:
        """Who that is now. Raises as `authenticate` does."""
        ...


class Writer(Protocol):
    """Whoever writes a stream."""

    def wake(self) -> None: ...
    def end(self) -> None: ...


class Audience:
    """Streams whose readers have the same rights: what is found out for one holds for all."""

    __slots__ = ("principal", "reader", "streams", "user")

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self.user = "" if principal.user.pk is None else str(principal.user.pk)
        self.streams: dict[Subscriber, None] = {}
        #: For deliveries: who the reader was found to be a moment ago.
        self.reader: Any = None


class Subscriber:
    """Changes make entries dirty; whoever writes the stream takes them. A change more of the same
    entry costs nothing, so a reader that does not read costs no more than what it asked for.
    """

    __slots__ = (
        "_dirty",
        "_is_due",
        "_uris",
        "_writer",
        "audience",
        "is_stale",
        "key",
        "lists",
        "source",
    )

    def __init__(
        self,
        *,
        principal: Principal,
        source: Reader,
        lists: frozenset[Topic],
        uris: Uris,
        writer: Writer,
    ) -> None:
        self.key = secrets.token_urlsafe(16)
        #: Who reads the stream.
        self.source = source
        self.lists = lists
        #: Changes could not be looked into: tell of everything as soon as that is possible.
        self.is_stale = False
        #: Of its own, until a hub puts it with others.
        self.audience = Audience(principal)
        self._writer = writer
        self._uris = uris
        self._dirty: dict[str, None] = {}
        self._is_due = False

    @property
    def kind(self) -> tuple[object, ...]:
        """What decides on the rights of its reader."""
        principal = self.audience.principal
        # A credential that nobody can name may end without the next one's.
        credential = principal.credential_id or self.key
        return (principal.key, credential, principal.scopes, principal.restriction)

    @property
    def topics(self) -> frozenset[Topic]:
        return self.lists.union(self._uris)

    @property
    def uris(self) -> tuple[str, ...]:
        return tuple(uri for uris in self._uris.values() for uri in uris)

    def set_uris(self, uris: Uris) -> None:
        self._uris = uris

    def uris_of(self, topic: Topic) -> tuple[str, ...]:
        return self._uris.get(topic, ())

    def uris_without(self, gone: set[str]) -> Uris:
        left = {
            topic: tuple(uri for uri in uris if uri not in gone)
            for topic, uris in self._uris.items()
        }
        return {topic: uris for topic, uris in left.items() if uris}

    def is_closed_by(self, topic: Topic) -> bool:
        """Whether a control topic says that this stream is to be closed."""
        server, user = self.audience.principal.server, self.audience.user
        return topic in (
            control_topic(CLOSE, self.key),
            control_topic(CLOSE, "server", server),
            control_topic(CLOSE, "user", server, user),
        )

    def mark(self, names: list[str]) -> None:
        """These lists and URIs are to be read anew."""
        for name in names:
            self._dirty[name] = None
        self._writer.wake()

    def drop(self, names: Iterable[str]) -> None:
        """Nobody wants to be told of these any more."""
        for name in names:
            self._dirty.pop(name, None)

    def keep_alive(self) -> None:
        self._is_due = True
        self._writer.wake()

    def end(self) -> None:
        self._writer.end()

    # For whoever writes the stream

    def take(self) -> tuple[str, ...]:
        """The lists and URIs that the client was not told of yet."""
        if not self._dirty:
            return ()
        dirty = tuple(self._dirty)
        self._dirty.clear()
        return dirty

    def take_sign_of_life(self) -> bool:
        """Whether one is due."""
        is_due, self._is_due = self._is_due, False
        return is_due

"""One stream that hears of changes: what it wants, what it was not told yet, and who reads it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from django.http import HttpRequest

from mcp_django.principal import Principal
from mcp_django.protocol.notifications import Notification, list_changed, resource_updated
from mcp_django.protocol.results import Wishes
from mcp_django.subscriptions.events import LISTS, Topic
from mcp_django.subscriptions.topics import topic_of

#: Who reads the stream now, from the same credential, in a thread. Raises as `authenticate`.
Renew: TypeAlias = Callable[[], tuple[HttpRequest, Principal]]


class Subscriber:
    """Changes make entries dirty; whoever writes the stream takes them. A change more of the same
    entry costs nothing, so a reader that does not read costs no more than what it asked for.
    """

    def __init__(
        self,
        *,
        principal: Principal,
        renew: Renew,
        wishes: Wishes,
        wake: Callable[[], None],
        end: Callable[[], None],
        session: str = "",
    ) -> None:
        self.key = secrets.token_urlsafe(16)
        self.principal = principal
        self.user = "" if principal.user.pk is None else str(principal.user.pk)
        self.renew = renew
        self.session = session
        #: What decides on the rights of its reader.
        self.kind = (
            principal.key,
            principal.credential_id,
            principal.scopes,
            principal.restriction,
        )
        #: For deliveries: who the reader was found to be a moment ago.
        self.reader: Any = None
        self.lists = wishes.lists
        self.end = end
        #: Changes could not be looked into: tell of everything as soon as that is possible.
        self.is_stale = False
        self._wake = wake
        self._uris: dict[Topic, tuple[str, ...]] = {}
        self._dirty: dict[str, None] = {}
        self._is_due = False
        self.set_uris(wishes.uris)

    @property
    def topics(self) -> frozenset[Topic]:
        return self.lists.union(self._uris)

    @property
    def uris(self) -> tuple[str, ...]:
        return tuple(uri for uris in self._uris.values() for uri in uris)

    def set_uris(self, uris: Iterable[str]) -> None:
        found: dict[Topic, tuple[str, ...]] = {}
        for uri in dict.fromkeys(uris):
            topic = topic_of(uri)
            found[topic] = (*found.get(topic, ()), uri)
        self._uris = found

    def uris_of(self, topic: Topic) -> tuple[str, ...]:
        return self._uris.get(topic, ())

    def mark(self, *names: str) -> None:
        """These lists and URIs are to be read anew."""
        self._dirty.update(dict.fromkeys(names))
        self._wake()

    def keep_alive(self) -> None:
        self._is_due = True
        self._wake()

    # For whoever writes the stream

    def take(self) -> list[Notification]:
        """What the client was not told yet."""
        dirty, self._dirty = self._dirty, {}
        return [list_changed(one) if one in LISTS else resource_updated(one) for one in dirty]

    def take_sign_of_life(self) -> bool:
        """Whether one is due."""
        is_due, self._is_due = self._is_due, False
        return is_due

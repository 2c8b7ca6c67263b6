"""Streams that stay open to tell of changes: subscriptions/listen, and a legacy session's GET."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from django.utils import timezone

from mcp_django.protocol import sse
from mcp_django.protocol.jsonrpc import encoder
from mcp_django.protocol.notifications import list_changed, resource_updated, with_subscription
from mcp_django.protocol.render import notification
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.interface import OpenStream, Session, Store
from mcp_django.subscriptions.events import LISTS, SESSION, Topic, control_topic
from mcp_django.subscriptions.topics import Uris
from mcp_django.transports import farewell
from mcp_django.transports.exchanges import Opening
from mcp_django.transports.hub import Hub, get_hub
from mcp_django.transports.openings import LISTEN, STANDALONE, standalone_name, subscribed_by
from mcp_django.transports.store_calls import in_store, try_store
from mcp_django.transports.streams import Receive, until_disconnected
from mcp_django.transports.subscribers import Reader, Subscriber

logger = logging.getLogger("mcp_django.streams")


class AlreadyOpen(Exception):
    """A session has one standalone stream, so that each message goes out once."""


class Outlet(Protocol):
    """Where a stream is written to: an HTTP response, or lines that all streams share."""

    has_started: bool
    has_ended: bool

    async def open(self) -> None: ...

    async def frames(self, frames: bytes) -> None: ...

    async def keep_alive(self) -> None: ...


class EventStream:
    """One open stream. While nothing happens it is one waiting coroutine and no more."""

    # Thousands of them wait: none has a dictionary, nor what only its beginning needs.
    __slots__ = (
        "_is_ended",
        "_is_greeted",
        "_is_over",
        "_is_waiting",
        "_number",
        "_open",
        "_opened",
        "_reloading",
        "_sending",
        "_subscription",
        "_writer",
        "hub",
        "opening",
        "response",
        "subscriber",
    )

    def __init__(self, opening: Opening, response: Outlet, *, source: Reader) -> None:
        self.opening = opening
        self.response = response
        self.hub: Hub = get_hub()
        self.subscriber = Subscriber(
            principal=opening.principal,
            source=source,
            lists=opening.lists,
            uris=opening.uris,
            writer=self,
        )
        self._subscription = b""
        if opening.request_id is not None:
            self._subscription = encoder.encode(opening.request_id)
        self._opened = timezone.now()
        self._number = opening.after
        self._sending = asyncio.Lock()
        # What was read first must not be taken for the news.
        self._reloading = asyncio.Lock() if opening.session else None
        self._writer: asyncio.Task[None] | None = None
        self._is_greeted = False
        #: Waits for its turn to be written.
        self._is_waiting = False
        #: The server wants it to end, and it has ended.
        self._is_ended = False
        self._is_over = False
        self._open: asyncio.Timeout | None = None

    async def run(self, receive: Receive) -> None:
        """Until the client leaves or the server ends it.

        Raises TooManyStreams and AlreadyOpen before it began.
        """
        await self.hub.linked()
        if not self.opening.session:
            await self._run(receive)
            return
        session, owner = self.opening.session, self.hub.key
        topic = control_topic(STANDALONE, session)
        if self.opening.after:
            # The client lost the one before, whether that is known here already or not.
            self.hub.take_over(topic, self.end)
        elif not self.hub.claim(topic, self.end):
            raise AlreadyOpen
        try:
            if not await in_store(lambda store: store.hold_standalone(session, owner=owner)):
                raise AlreadyOpen
            await self._run(receive)
        finally:
            self._give_back(topic)

    def _give_back(self, topic: Topic) -> None:
        """The session may have its standalone stream anew, unless it has already."""
        if self.hub.release(topic, self.end):
            session, owner = self.opening.session, self.hub.key
            self.hub.keep(try_store(lambda store: store.free_standalone(session, owner=owner)))

    async def _run(self, receive: Receive) -> None:
        self.hub.add(self.subscriber)
        farewell.prepare()
        watched = self._watched()
        for topic, callback in watched.items():
            self.hub.when(topic, callback)
        try:
            await try_store(lambda store: store.show_stream(self._shown()))
            if self.opening.kind == STANDALONE:
                # The session may have changed, or have ended, before anybody here was told.
                await self._reload(since=self.opening.at)
            await self._greet()
            self._is_greeted = True
            if self.opening.after:
                self.hub.dirty(self.subscriber)
            self._forget_beginning()
            # What changed meanwhile has waited: the acknowledgment comes first.
            self.wake()
            await self._wait(receive)
            await self._send(list(self.opening.last))
        finally:
            for topic, callback in watched.items():
                self.hub.forget(topic, callback)
            self.hub.remove(self.subscriber)
            self._is_over = True
            if self._writer is not None:
                self._writer.cancel()
            self.hub.keep(try_store(lambda store: store.hide_stream(self.subscriber.key)))

    async def _greet(self) -> None:
        await self.response.open()
        await self._send(list(self.opening.first))

    def _forget_beginning(self) -> None:
        # Those who have the same rights have one principal, too.
        principal = self.subscriber.audience.principal
        self.opening = replace(self.opening, principal=principal, uris={}, first=())

    async def _wait(self, receive: Receive) -> None:
        """Until the server ends the stream or the client has left: then nothing more is sent."""
        try:
            async with asyncio.timeout(None) as self._open:
                if self._is_ended:
                    return
                await until_disconnected(receive)
        except TimeoutError:
            return
        finally:
            self._open = None
        self.response.has_ended = True

    def end(self) -> None:
        """In good order: the client is told that it is over, if its revision can say that."""
        self._is_ended = True
        # Once: what has begun to expire cannot be rescheduled.
        waiting, self._open = self._open, None
        if waiting is not None:
            waiting.reschedule(self.hub.loop.time())

    # Writing. One task at a time does, so that what is made meanwhile waits and collapses.

    def wake(self) -> None:
        if not self._is_waiting and self._writer is None and self._is_greeted:
            self._is_waiting = True
            self.hub.writers.add(self)

    async def write(self) -> None:
        """For the writers of the hub."""
        self._is_waiting = False
        if self._is_over:
            return
        self._writer = asyncio.current_task()
        try:
            await self._write()
        except Exception:
            logger.exception("A stream broke.")
            self.end()
        finally:
            self._writer = None

    async def _write(self) -> None:
        while True:
            # What the session does not subscribe to any more must not be told meanwhile.
            async with self._reloading or nullcontext():
                names = self.subscriber.take()
            is_due = self.subscriber.take_sign_of_life()
            if names:
                await self._send([self._encode(name) for name in names])
            elif is_due:
                await self._keep_alive()
            else:
                return

    def _encode(self, name: str) -> bytes:
        if not self._subscription:
            return changed(name, self.opening.revision)
        before, after = changed_around(name, self.opening.revision)
        return before + self._subscription + after

    async def _send(self, messages: Sequence[bytes]) -> None:
        if messages:
            async with self._sending:
                await self.response.frames(b"".join(self._frame(one) for one in messages))

    async def _keep_alive(self) -> None:
        async with self._sending:
            await self.response.keep_alive()
        if self.opening.session:
            # A session lives as long as its stream, and not longer than it was ended elsewhere.
            await try_store(lambda store: store.see(self.opening.session))
            await self._reload()

    def _frame(self, message: bytes) -> bytes:
        if self.opening.kind == LISTEN:
            # 2026-07-28: no event ids, nothing resumes.
            return sse.encode_event(message)
        self._number += 1
        name = standalone_name(self.opening.session)
        return sse.encode_event(message, event_id=sse.event_id(name, self._number))

    # What happens to it from elsewhere

    def _watched(self) -> dict[Topic, Callable[[], None]]:
        if not self.opening.session:
            return {}
        return {control_topic(SESSION, self.opening.session): self._session_changed}

    def _session_changed(self) -> None:
        self.hub.keep(self._reload(since=self.hub.loop.time()))

    async def _reload(self, *, since: float = float("-inf")) -> None:
        """The session is over, or subscribes to something else since some time of the loop."""
        assert self._reloading is not None  # noqa: S101  only sessions change
        async with self._reloading:
            session, uris = await in_store(self._look)
            if session is None:
                self.end()
                return
            before = set(self.subscriber.uris)
            self.hub.retune(self.subscriber, uris, since=since)
            self.subscriber.drop(before.difference(self.subscriber.uris))
            await self._follow(session)

    def _look(self, store: Store) -> tuple[Session | None, Uris]:
        """In the thread."""
        key = self.opening.session
        return store.session(key), subscribed_by(key, store=store)

    async def _follow(self, session: Session) -> None:
        """Whatever else may be new about it."""

    def _shown(self) -> OpenStream:
        opening = self.opening
        return OpenStream(
            key=self.subscriber.key,
            owner=self.hub.key,
            server=opening.principal.server,
            principal=opening.principal.key,
            user=self.subscriber.audience.user,
            client=opening.client,
            kind=opening.kind,
            revision=opening.revision.value,
            session=opening.session,
            topics=(*sorted(opening.lists), *self.subscriber.uris),
            opened=self._opened,
        )


# What is said is the same on every stream, but for the subscription that it names.

#: Nothing that anybody could write.
SOMEWHERE = secrets.token_hex()


@lru_cache(maxsize=256)
def changed(name: str, revision: Revision, *, subscription: str = "") -> bytes:
    """The message that a list, or the resource of a URI, is to be read anew."""
    one = list_changed(name) if name in LISTS else resource_updated(name)
    if subscription:
        one = with_subscription(one, subscription)
    return notification(one, revision)


@lru_cache(maxsize=256)
def changed_around(name: str, revision: Revision) -> tuple[bytes, bytes]:
    """The same, before and after the id of the subscription."""
    message = changed(name, revision, subscription=SOMEWHERE)
    before, _, after = message.partition(encoder.encode(SOMEWHERE))
    return before, after

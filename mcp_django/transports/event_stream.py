"""Streams that stay open to tell of changes: subscriptions/listen, and a legacy session's GET."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial

from django.utils import timezone

from mcp_django.connections import entered
from mcp_django.protocol import sse
from mcp_django.protocol.jsonrpc import RequestId
from mcp_django.protocol.render import (
    list_changed,
    notification,
    resource_updated,
    with_subscription,
)
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.sessions import OpenStream, Page, Session, Store, get_store
from mcp_django.subscriptions.topics import LISTS, control_topic
from mcp_django.transports import shutdown
from mcp_django.transports.call_log import log_topic, may_read, read_log
from mcp_django.transports.exchanges import StreamSpec
from mcp_django.transports.hub import Hub, get_hub
from mcp_django.transports.notifier import BELIEVED, REFUSALS, Reader, Subscriber, current
from mcp_django.transports.responses import Receive, ResponseStream, until_disconnected
from mcp_django.transports.serving import LISTEN, STANDALONE, standalone_name, subscribed_by
from mcp_django.transports.sessions import in_store, session_topic, take_standalone, try_store

logger = logging.getLogger("mcp_django.streams")


class EventStream(Subscriber):
    """One open stream. While nothing happens it is one waiting coroutine and no more."""

    # Thousands of them wait: none has a dictionary, nor what only its beginning needs.
    __slots__ = (
        "_is_ended",
        "_is_nudged",
        "_is_waiting",
        "_number",
        "_open",
        "_opened",
        "_reloading",
        "_sending",
        "_writer",
        "hub",
        "response",
        "spec",
    )

    def __init__(self, spec: StreamSpec, response: ResponseStream, *, source: Reader) -> None:
        super().__init__(principal=spec.principal, source=source, lists=spec.lists, uris=spec.uris)
        self.spec = spec
        self.response = response
        self.hub: Hub = get_hub()
        self._opened = timezone.now()
        self._number = spec.after
        self._sending = asyncio.Lock()
        # What was read first must not replace what was read later.
        self._reloading = asyncio.Lock() if spec.session else None
        self._writer: asyncio.Task[None] | None = None
        #: Waits for its turn to be written, and before that for its first message.
        self._is_waiting = True
        #: The server wants it to end.
        self._is_ended = False
        #: Other processes may have something for it.
        self._is_nudged = False
        self._open: asyncio.Timeout | None = None

    async def run(self, receive: Receive) -> None:
        """Until the client leaves or the server ends it. Raises TooManyStreams before it began.

        A session has one standalone stream, so that each message goes out once: the newest, since
        a proxy may hide that a client has lost the one before.
        """
        await self.hub.linked()
        if not self.spec.session:
            await self._run(receive)
            return
        topic = control_topic(STANDALONE, self.spec.session)
        self.hub.take_over(topic, self.end)
        try:
            await in_store(partial(take_standalone, self.spec.session, owner=self.hub.key))
            await self._run(receive)
        finally:
            self.hub.release(topic, self.end)

    async def _run(self, receive: Receive) -> None:
        self.hub.add(self)
        shutdown.prepare()
        topics = [session_topic(self.spec.session)] if self.spec.session else []
        try:
            with self.hub.when(self._session_changed, *topics):
                self._show()
                if self.spec.kind == STANDALONE:
                    # The session may have changed or ended before this process was notified.
                    await self._reload(since=self.spec.at)
                await self._greet()
                self._is_waiting = False
                if self.spec.after:
                    self.hub.mark_stale(self)
                # Those who have the same rights have one principal, too.
                principal = self.stream_group.principal
                self.spec = replace(self.spec, principal=principal, uris={}, first=())
                # What changed meanwhile has waited: the acknowledgment comes first.
                self.wake()
                await self._wait(receive)
                await self._send(self.spec.last)
        finally:
            self.hub.remove(self)
            if self._writer is not None:
                self._writer.cancel()
            self.hub.keep(try_store(lambda store: store.hide_stream(self.key)))

    async def _greet(self) -> None:
        await self.response.open()
        await self._send(self.spec.first)

    async def _wait(self, receive: Receive) -> None:
        """Until the server ends the stream or the client has left: then nothing more is sent."""
        try:
            async with asyncio.timeout(None) as self._open:
                if not self._is_ended:
                    await until_disconnected(receive)
                    self.response.has_ended = True
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            # A server that stops cancels what runs. The stream ends as if by `end`.
            stream = asyncio.current_task()
            assert stream is not None  # noqa: S101  it was cancelled
            stream.uncancel()
        finally:
            self._open = None

    def end(self) -> None:
        """In good order: with the last message of the stream, if its revision has one."""
        self._is_ended = True
        # Once: what has begun to expire cannot be rescheduled.
        waiting, self._open = self._open, None
        if waiting is not None:
            waiting.reschedule(self.hub.loop.time())

    # Writing. One task at a time does, so that what is made meanwhile waits and collapses.

    def wake(self) -> None:
        if not self._is_waiting and self._writer is None:
            self._is_waiting = True
            self.hub.writers.add(self.write)

    async def write(self) -> None:
        """For the writers of the hub."""
        self._is_waiting = False
        if self.hub.find(self.key) is not self:
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
            if self._is_nudged:
                self._is_nudged = False
                await self._look()
            # The session may have unsubscribed from some of them.
            async with self._reloading or nullcontext():
                names = self.take()
            is_due = self.take_sign_of_life()
            if names:
                revision, request_id = self.spec.revision, self.spec.request_id
                await self._send([changed(name, revision, request_id) for name in names])
            elif is_due:
                await self._keep_alive()
            elif not self._is_nudged:
                return

    async def _send(self, messages: Sequence[bytes]) -> None:
        if messages:
            async with self._sending:
                await self.response.frames(b"".join(self._frame(message) for message in messages))

    async def _keep_alive(self) -> None:
        async with self._sending:
            await self.response.keep_alive()
        if self.spec.session:
            # A session lives as long as its stream, and not longer than it was ended elsewhere.
            await try_store(lambda store: store.see(self.spec.session))
            await self._reload()

    def _frame(self, message: bytes) -> bytes:
        if self.spec.kind == LISTEN:
            # 2026-07-28: no event ids, nothing resumes.
            return sse.encode_event(message)
        self._number += 1
        name = self.spec.log or standalone_name(self.spec.session)
        return sse.encode_event(message, event_id=sse.event_id(name, self._number))

    # What happens to it from elsewhere

    def nudge(self) -> None:
        """Have it look for what other processes have for it."""
        self._is_nudged = True
        self.wake()

    async def _look(self) -> None:
        """Send that."""

    def _session_changed(self) -> None:
        self.hub.keep(self._reload(since=self.hub.loop.time()))

    async def _reload(self, *, since: float = float("-inf")) -> None:
        """The session is over, or subscribes to something else since some time of the loop."""
        assert self._reloading is not None  # noqa: S101  only sessions change
        key = self.spec.session
        async with self._reloading:
            session, uris = await in_store(
                lambda store: (store.session(key), subscribed_by(key, store=store))
            )
            if session is None or session.standalone not in ("", self.hub.key):
                self.end()
                return
            before = set(self.uris)
            self.hub.set_topics(self, uris, since=since)
            for uri in before.difference(self.uris):
                self._stale_names.pop(uri, None)
            await self._follow(session)

    async def _follow(self, session: Session) -> None:
        """Whatever else may be new about it."""

    def _show(self) -> None:
        """List it in the admin."""
        spec = self.spec
        stream = OpenStream(
            key=self.key,
            owner=self.hub.key,
            server=spec.principal.server,
            principal=spec.principal.key,
            user=self.stream_group.user,
            client=spec.client,
            kind=spec.kind,
            revision=spec.revision.value,
            session=spec.session,
            topics=(*sorted(spec.lists), *self.uris),
            opened=self._opened,
        )
        get_store().show_stream(stream)


# Notifications are the same on every stream, except for the id of the request that they belong to.
# Clients count their requests, so most ids are those of others as well.


@lru_cache(maxsize=1024, typed=True)
def changed(name: str, revision: Revision, request_id: RequestId | None) -> bytes:
    """The notification that a list, or the resource of a URI, has changed."""
    message = list_changed(name) if name in LISTS else resource_updated(name)
    if request_id is not None:
        message = with_subscription(message, request_id)
    return notification(message, revision)


# The stream of a call, resumed from its log in any process.

#: Seconds between two looks into a log without a notification.
LOOK = 5.0


class ResumedStream(EventStream):
    """It ends with the answer of the call, or when its reader is not who it was."""

    _next_look: asyncio.TimerHandle | None = None

    async def run(self, receive: Receive) -> None:
        """Until the call is answered, or the client has left again. Raises TooManyStreams."""
        self._is_nudged = True
        with self.hub.when(self.nudge, log_topic(self.spec.log)):
            await self._run(receive)

    def _session_changed(self) -> None:
        self.nudge()

    async def _keep_alive(self) -> None:
        async with self._sending:
            await self.response.keep_alive()

    async def _look(self) -> None:
        page = await in_store(entered(self.spec.schemas)(self._read))
        if page is not None and page.events:
            # Those before them may be gone.
            self._number = page.events[0].number - 1
            await self._send([event.data for event in page.events])
        if page is None or page.is_final:
            self.end()
            return
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = self.hub.loop.call_later(LOOK, self.nudge)

    # In the thread

    def _read(self, store: Store) -> Page | None:
        spec = self.spec
        try:
            _, principal = current(self, believed=BELIEVED)
        except REFUSALS:
            return None
        # The reader is still who it was. Whether with the same rights, the log knows.
        if store.session(spec.session) is None or not may_read(spec.log, principal):
            return None
        return read_log(
            store,
            spec.log,
            session=spec.session,
            after=self._number,
            id_optional=spec.revision.features.error_id_optional,
        )

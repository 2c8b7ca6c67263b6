"""Calls that are posted: the POST is answered at once, the call on the stream of its session."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from typing import Protocol

from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import encoder
from mcp_django.stores.chosen import get_store
from mcp_django.stores.interface import Log, Session, StoreFull
from mcp_django.subscriptions.events import Change
from mcp_django.subscriptions.outbox import publish
from mcp_django.transports.call_logs import log_topic
from mcp_django.transports.calls import Prepare, RunningCall
from mcp_django.transports.exchanges import Exchange, Reply
from mcp_django.transports.session_streams import SessionStream, index_of, stream_here
from mcp_django.transports.sessions import end_session, not_found, work_topic
from mcp_django.transports.store_calls import in_store
from mcp_django.transports.streams import ResponseStream

logger = logging.getLogger("mcp_django.streams")

#: Calls of one session whose answers are not sent yet.
MOST_CALLS = 60
#: Seconds after which a store that failed is asked once more: a client waits for the answer.
PAUSES = (0.5, 2.0, 8.0)
#: Later than any event.
LAST = 2**62


class Route(Protocol):
    """From a call to the stream of its session."""

    async def say(self, messages: Sequence[bytes]) -> None: ...

    async def end(self, messages: Sequence[bytes]) -> None:
        """The last ones, or none where the client took the call back."""
        ...


class PostedCall(RunningCall):
    def __init__(self, exchange: Exchange, *, prepare: Prepare) -> None:
        super().__init__(exchange, prepare=prepare)
        self._route: Route | None = None
        self._first: asyncio.Future[Reply] = self._loop.create_future()

    def accept(self) -> None:
        """In the thread: from here on the answer belongs on the stream.

        Raises ProtocolError where there is none, or where too many answers are on their way.
        """
        # A call that runs again, with answers, was accepted before.
        if self._route is None:
            self._route = self._find_route(self.required_session)
            self._wake_soon()

    @property
    def required_session(self) -> Session:
        assert self.session is not None  # noqa: S101  it was told before
        return self.session

    def _find_route(self, session: Session) -> Route:
        here = stream_here(self.hub, session.key)
        if here is not None:
            if len(here.calls) >= MOST_CALLS:
                raise too_many()
            return StreamRoute(here)
        relay = Relay(session, owner=self.hub.key, request=self.exchange.requests[0].request.id)
        relay.open()
        return relay

    async def post(self, stream: ResponseStream) -> None:
        """Say whether the call was accepted. It goes on whether the client waits or not."""
        self.hub.keep(self._run())
        await stream.reply(await self._first)

    async def _run(self) -> None:
        try:
            while self._route is None and not self.is_over:
                await self.wait()
            if not self._first.done():
                self._first.set_result(self._outcome() if self._route is None else ACCEPTED)
            if self._route is not None:
                await self._carry(self._route)
        finally:
            self.forget()

    async def _carry(self, route: Route) -> None:
        topic = work_topic(self.required_session.key)
        self.hub.when(topic, self.cancel)
        try:
            await self.pass_on(route.say)
            await route.end(self._outcome().parts)
        finally:
            self.hub.forget(topic, self.cancel)

    def _outcome(self) -> Reply:
        return ACCEPTED if self.is_cancelled else self.result()


ACCEPTED = Reply(status=202)


def too_many() -> ProtocolError:
    return ProtocolError(
        INTERNAL_ERROR, "Too many calls of this session wait for their answers.", status=503
    )


class StreamRoute:
    """The stream is in this process."""

    def __init__(self, stream: SessionStream) -> None:
        self.stream = stream
        stream.calls.add(self)

    async def say(self, messages: Sequence[bytes]) -> None:
        await self.stream.say(messages)

    async def end(self, messages: Sequence[bytes]) -> None:
        try:
            await self.stream.say(messages)
        finally:
            self.stream.calls.discard(self)


class Relay:
    """The stream is in another process, which reads what is written here. See `Inbox`.

    Each call has a log of its own. It stays open until that process has read the answer, so that
    no store drops one, and ends with an error where this process does not live to write one.
    """

    def __init__(self, session: Session, *, owner: str, request: str | int) -> None:
        self.index = index_of(session.key)
        self.log = Log(
            key=secrets.token_urlsafe(18),
            session=session.key,
            owner=owner,
            request=encoder.encode(request).decode(),
        )

    def open(self) -> None:
        """In the thread. Raises ProtocolError."""
        store, session = get_store(), self.log.session
        page = store.read(self.index, session=session, after=LAST)
        if page is None or page.is_orphaned:
            # The process that had the stream is gone, and the stream with it.
            end_session(session)
            raise not_found()
        try:
            store.open_log(self.log)
        except StoreFull:
            raise too_many() from None
        store.append(self.index, [self.log.key.encode()])

    async def say(self, messages: Sequence[bytes]) -> None:
        if messages:
            await self._append(messages, is_final=False)

    async def end(self, messages: Sequence[bytes]) -> None:
        await self._append(messages, is_final=not messages)

    async def _append(self, messages: Sequence[bytes], *, is_final: bool) -> None:
        key = self.log.key
        for pause in (*PAUSES, None):
            try:
                await in_store(lambda store: store.append(key, messages, is_final=is_final))
                break
            except Exception:
                logger.exception("A message does not reach the stream of its session.")
                if pause is not None:
                    await asyncio.sleep(pause)
        publish({Change(topic=log_topic(self.index))})

"""A call's stream that goes on where its client left off, from the log, in whatever process."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from mcp_django.protocol import sse
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import decoder, encode_error
from mcp_django.stores.interface import Page, Store
from mcp_django.transports.call_logs import log_topic
from mcp_django.transports.deliveries import BELIEVED, REFUSALS, current
from mcp_django.transports.exchanges import Opening
from mcp_django.transports.hub import get_hub
from mcp_django.transports.log_keys import may_read
from mcp_django.transports.sessions import session_topic
from mcp_django.transports.store_calls import in_store
from mcp_django.transports.streams import Receive, ResponseStream, until_disconnected
from mcp_django.transports.subscribers import Reader, Subscriber

#: Seconds between two looks into a log that nobody told of.
LOOK = 5.0
LOST = "The server process that ran this call is gone. Whether it was done is not known."


class ResumedStream:
    """It counts as any stream, and ends as any stream when its reader is not who it was."""

    def __init__(self, opening: Opening, response: ResponseStream, *, source: Reader) -> None:
        self.opening = opening
        self.response = response
        self.hub = get_hub()
        self.subscriber = Subscriber(
            principal=opening.principal, source=source, lists=frozenset(), uris={}, writer=self
        )
        self._number = opening.after
        self._changed = asyncio.Event()
        self._is_ended = False

    async def run(self, receive: Receive) -> None:
        """Until the call is answered, or the client has left again. Raises TooManyStreams."""
        self.hub.add(self.subscriber)
        topics = (log_topic(self.opening.log), session_topic(self.opening.session))
        for topic in topics:
            self.hub.when(topic, self._changed.set)
        gone = asyncio.ensure_future(until_disconnected(receive))
        gone.add_done_callback(lambda task: self._changed.set())
        try:
            await self.response.open()
            while not (gone.done() or self.response.has_ended):
                page = await in_store(self._read)
                if page is None or self._is_ended or await self._send(page):
                    return
                await self._wait()
        finally:
            gone.cancel()
            for topic in topics:
                self.hub.forget(topic, self._changed.set)
            self.hub.remove(self.subscriber)

    # For the hub

    def wake(self) -> None:
        self._changed.set()

    def end(self) -> None:
        self._is_ended = True
        self._changed.set()

    async def _send(self, page: Page) -> bool:
        """Whether that was all."""
        frames = [
            sse.encode_event(event.data, event_id=sse.event_id(self.opening.log, event.number))
            for event in page.events
        ]
        if frames:
            self._number = page.events[-1].number
            await self.response.frames(b"".join(frames))
        if page.is_orphaned and not page.is_final:
            await in_store(lambda store: self._close(store, page))
            self._changed.set()
        return page.is_final

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._changed.wait()
        self._changed.clear()
        if self.subscriber.take_sign_of_life():
            await self.response.keep_alive()

    # In the thread

    def _read(self, store: Store) -> Page | None:
        opening = self.opening
        if store.session(opening.session) is None or not self._may_read():
            return None
        return store.read(opening.log, session=opening.session, after=self._number)

    def _may_read(self) -> bool:
        """Whether the reader is still who it was, with the same rights."""
        try:
            _, principal = current(self.subscriber, believed=BELIEVED)
        except REFUSALS:
            return False
        return may_read(self.opening.log, principal)

    def _close(self, store: Store, page: Page) -> None:
        error = ProtocolError(INTERNAL_ERROR, LOST, request_id=decoder.decode(page.request))
        id_optional = self.opening.revision.features.error_id_optional
        store.close_orphan(self.opening.log, encode_error(error, id_optional=id_optional))

"""The stream of an HTTP+SSE session, which begins and ends with it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from mcp_django.protocol import sse
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import decoder, encode_error
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.interface import Page, Session, Store
from mcp_django.subscriptions.events import Change, Topic
from mcp_django.subscriptions.outbox import publish
from mcp_django.transports.call_logs import log_topic
from mcp_django.transports.event_streams import EventStream
from mcp_django.transports.exchanges import Opening
from mcp_django.transports.hub import Hub
from mcp_django.transports.resumed_streams import LOST
from mcp_django.transports.sessions import end_session, work_topic
from mcp_django.transports.store_calls import in_store, try_store
from mcp_django.transports.streams import Receive, ResponseStream
from mcp_django.transports.subscribers import Reader

#: By session, the streams of each hub of this process.
_streams: weakref.WeakKeyDictionary[Hub, dict[str, SessionStream]] = weakref.WeakKeyDictionary()


def stream_here(hub: Hub, session: str) -> SessionStream | None:
    """From any thread: the stream of a session, if it is in this process."""
    return _streams.get(hub, {}).get(session)


def index_of(session: str) -> str:
    """The log in which other processes name the logs of their calls."""
    return f"i-{session[:32]}"


class SessionStream(EventStream):
    def __init__(self, opening: Opening, response: ResponseStream, *, source: Reader) -> None:
        super().__init__(opening, response, source=source)
        self.inbox = Inbox(opening.session)
        #: What is answered here and was not yet.
        self.calls: set[object] = set()
        self._is_nudged = False
        self._is_reading = False

    async def run(self, receive: Receive) -> None:
        """Until the client leaves or the server ends it, and the session with it.

        Raises TooManyStreams before it began.
        """
        streams = _streams.setdefault(self.hub, {})
        streams[self.opening.session] = self
        try:
            await self._run(receive)
        finally:
            del streams[self.opening.session]
            publish({Change(topic=work_topic(self.opening.session))})
            self.hub.keep(try_store(lambda store: end_session(self.opening.session)))

    async def say(self, messages: Sequence[bytes]) -> None:
        """Send messages, each whole, as soon as the client reads. After the end: nothing."""
        await self._send(messages)

    async def _greet(self) -> None:
        # Not a comment first, as elsewhere: old clients take the first lines for the endpoint.
        frame = sse.encode_event(self.opening.endpoint.encode(), event="endpoint")
        await self.response.frames(frame)

    def _frame(self, message: bytes) -> bytes:
        return sse.encode_event(message)

    async def _keep_alive(self) -> None:
        await super()._keep_alive()
        self._nudged()

    def _watched(self) -> dict[Topic, Callable[[], None]]:
        return {**super()._watched(), log_topic(self.inbox.index): self._nudged}

    async def _follow(self, session: Session) -> None:
        if session.revision != self.opening.revision.value or not self.opening.client:
            self.opening = replace(
                self.opening,
                revision=Revision(session.revision),
                client=str(session.client.get("name", ""))[:200],
            )
            await try_store(lambda store: store.show_stream(self._shown()))
            if stream_here(self.hub, session.key) is not self:
                # It ended meanwhile, and may have been hidden too soon.
                await try_store(lambda store: store.hide_stream(self.subscriber.key))

    # What other processes have for it

    def _nudged(self) -> None:
        self._is_nudged = True
        if not self._is_reading:
            self._is_reading = True
            self.hub.keep(self._read())

    async def _read(self) -> None:
        """Where this fails, the next sign of life is the next look."""
        try:
            while self._is_nudged:
                self._is_nudged = False
                messages = await in_store(self.inbox.collect)
                if messages is None:
                    self.end()
                    return
                await self.say(messages)
        finally:
            self._is_reading = False


class Said(msgspec.Struct):
    """What tells a response from whatever else was said."""

    method: str | None = None


class Inbox:
    """The answers of calls that other processes run, each in a log of its own. See `Relay`."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.index = index_of(session)
        self._indexed = 0
        #: The last event that was read of each log.
        self._logs: dict[str, int] = {}

    def collect(self, store: Store) -> list[bytes] | None:
        """In the thread: what was not read yet. None: the session is over, or cannot go on."""
        page = store.read(self.index, session=self.session, after=self._indexed)
        if page is None or page.has_gap:
            return None
        for event in page.events:
            self._indexed = event.number
            self._logs[event.data.decode()] = 0
        return [message for key in list(self._logs) for message in self._read(store, key)]

    def _read(self, store: Store, key: str) -> list[bytes]:
        page = store.read(key, session=self.session, after=self._logs[key])
        if page is None:
            del self._logs[key]
            return []
        messages = [event.data for event in page.events]
        if page.events:
            self._logs[key] = page.events[-1].number
        if not page.is_final and not any(map(is_response, messages)):
            if not page.is_orphaned:
                return messages
            messages.append(lost(page))
        # From here on the store may forget it.
        store.append(key, (), is_final=True)
        del self._logs[key]
        return messages


def is_response(message: bytes) -> bool:
    return msgspec.json.decode(message, type=Said).method is None


def lost(page: Page) -> bytes:
    error = ProtocolError(INTERNAL_ERROR, LOST, request_id=decoder.decode(page.request))
    return encode_error(error, id_optional=False)

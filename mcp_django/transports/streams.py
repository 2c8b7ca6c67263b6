"""One HTTP response on an ASGI connection: JSON at once, or a stream of events. Always ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from mcp_django.protocol import sse
from mcp_django.transports.exchanges import EVENT_STREAM, JSON, HeaderList, Reply

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]

STREAM_HEADERS: HeaderList = (
    ("Content-Type", EVENT_STREAM),
    ("Cache-Control", "no-cache, no-store, no-transform"),
    # nginx holds back a response that it buffers.
    ("X-Accel-Buffering", "no"),
)


def without(headers: HeaderList, others: HeaderList) -> HeaderList:
    """Those of the first that the others do not set."""
    names = {name.lower() for name, _ in others}
    return tuple((name, value) for name, value in headers if name.lower() not in names)


class ResponseStream:
    """Sends one response. After its end, or the client's, nothing more is sent, whatever is
    called.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        #: Those that middleware gave the response, for a stream as well.
        self.headers: HeaderList = ()
        self.has_started = False
        self.is_streaming = False
        self.has_ended = False

    async def reply(self, reply: Reply) -> None:
        """The whole response, or the last events of a stream that has begun."""
        if self.is_streaming:
            await self.events(reply.parts)
            await self.end()
        elif not self.has_started:
            body = reply.body
            headers = (*reply.headers, ("Content-Length", str(len(body))))
            if body:
                headers = (("Content-Type", JSON), *headers)
            await self._start(reply.status, headers)
            await self._body(body, is_last=True)

    async def events(self, messages: Iterable[bytes]) -> None:
        """Send messages as events. The first call commits the response to be a stream."""
        await self._stream(b"".join(sse.encode_event(message) for message in messages))

    async def open(self) -> None:
        """Commit the response to be a stream, before there is anything to say."""
        await self._stream(sse.OPEN)

    async def frames(self, frames: bytes) -> None:
        """Send events that are frames already."""
        await self._stream(frames)

    async def keep_alive(self) -> None:
        await self._stream(sse.KEEP_ALIVE)

    async def end(self) -> None:
        """End the body. A server may leave the connection of an unended response open for ever."""
        if self.has_started:
            await self._body(b"", is_last=True)

    async def _stream(self, frames: bytes) -> None:
        if not self.has_started:
            await self._start(200, (*STREAM_HEADERS, *without(self.headers, STREAM_HEADERS)))
            self.is_streaming = True
        await self._body(frames, is_last=False)

    async def _start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        self.has_started = True
        await self._emit({"type": "http.response.start", "status": status, "headers": encoded})

    async def _body(self, body: bytes, *, is_last: bool) -> None:
        await self._emit({"type": "http.response.body", "body": body, "more_body": not is_last})
        self.has_ended = self.has_ended or is_last

    async def _emit(self, event: dict[str, Any]) -> None:
        if self.has_ended:
            return
        try:
            await self._send(event)
        except Exception as error:
            self.has_ended = True
            # ASGI, HTTP connection scope: an OSError says that the client has left.
            if not isinstance(error, OSError):
                raise


async def until_disconnected(receive: Receive) -> None:
    # A server that fails here has lost the connection in its own way.
    with suppress(Exception):
        while (await receive())["type"] != "http.disconnect":
            continue

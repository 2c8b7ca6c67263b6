"""One HTTP response on an ASGI connection: JSON at once, or a stream of events. Always ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias

from mcp_django.protocol import sse
from mcp_django.transports.endpoint import with_cors
from mcp_django.transports.exchanges import EVENT_STREAM, HeaderList, Reply

# Few tasks write to streams, however many streams there are.

#: Streams that are written in one go. Calls get their turn in between.
GULP = 500


class Writers:
    """One task writes to one stream after the other, for as long as they take it at once. Where
    one does not, that task waits for its reader, and another goes on with the rest.
    """

    def __init__(self) -> None:
        self._ready: deque[Callable[[], Awaitable[None]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_called = False

    def add(self, write: Callable[[], Awaitable[None]]) -> None:
        """On the loop: have it called soon. It raises nothing but CancelledError."""
        self._ready.append(write)
        if not self._is_called:
            self._call()

    def _call(self) -> None:
        self._is_called = True
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # After the first step of the task: what is left by then waits behind a slow reader.
        loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_called = False
        if self._ready:
            self._call()

    async def _write(self) -> None:
        for _ in range(GULP):
            if not self._ready:
                return
            await self._ready.popleft()()


# Back-pressure under Daphne, whose `send` returns before anything is sent.
#
# What a client does not read would pile up in the memory of the server. Daphne's `send` gives
# access to the request of Twisted, which calls back when a connection is full.


class Brake:
    """A push producer, in the words of Twisted."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self._has_room = asyncio.Event()
        self._has_room.set()
        request.registerProducer(self, True)  # noqa: FBT003  Twisted's signature

    async def until_room(self) -> None:
        """Until the client has read enough of what it was sent, or is gone."""
        await self._has_room.wait()

    def release(self) -> None:
        """Before the end of the response: Twisted wants that, and nobody waits any more."""
        self._has_room.set()
        # Of a connection that is lost there is nothing left to tell.
        if self._request.channel is not None:
            self._request.unregisterProducer()

    # For Twisted, on the event loop

    def pauseProducing(self) -> None:
        self._has_room.clear()

    def resumeProducing(self) -> None:
        self._has_room.set()

    def stopProducing(self) -> None:
        self._has_room.set()


def brake_of(send: Any) -> Brake | None:
    """None for servers that wait in `send`, where somebody wraps that of Daphne, and where the
    client has left already.
    """
    request: Any = next(iter(getattr(send, "args", ())), None)
    if not hasattr(request, "registerProducer") or request.channel is None:
        return None
    return Brake(request)


Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]

STREAM_HEADERS: HeaderList = (
    ("Content-Type", EVENT_STREAM),
    ("Cache-Control", "no-cache, no-store, no-transform"),
    # nginx holds back a response that it buffers.
    ("X-Accel-Buffering", "no"),
)


class ResponseStream:
    """Sends one response. After its end, or the client's, nothing more is sent, whatever is
    called.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        #: Those that middleware gave the response, for a stream as well.
        self.headers: HeaderList = ()
        #: The client may still be sending its request: nothing else follows on the connection, and
        #: the response has its end when `end` is called.
        self.closes = False
        #: Those that let a page of another origin read it.
        self.cors: HeaderList = ()
        #: The client reads nothing but a stream.
        self.is_to_stream = False
        self._brake: Brake | None = None
        self.has_started = False
        self.is_streaming = False
        self.has_ended = False

    async def reply(self, reply: Reply) -> None:
        """The whole response, or the last events of a stream that has begun."""
        if self.is_streaming or (self.is_to_stream and reply.status == 200 and reply.parts):
            await self.events(reply.parts)
            await self.end()
        elif not self.has_started:
            body = reply.body
            headers = (*reply.headers, ("Content-Length", str(len(body))))
            if body:
                headers = (("Content-Type", reply.content_type), *headers)
            await self._start(reply.status, headers)
            await self._body(body, is_last=not self.closes)

    async def events(self, messages: Iterable[bytes]) -> None:
        """Send messages as events. The first call commits the response to be a stream."""
        await self.frames(b"".join(sse.encode_event(message) for message in messages))

    async def open(self) -> None:
        """Commit the response to be a stream, before there is anything to say."""
        await self.frames(sse.OPEN)

    async def keep_alive(self) -> None:
        await self.frames(sse.KEEP_ALIVE)

    async def end(self) -> None:
        """End the body. A server may leave the connection of an unended response open for ever."""
        if self._brake is not None:
            self._brake.release()
            self._brake = None
        if self.has_started and not self.has_ended:
            await self._body(b"", is_last=True)

    async def frames(self, frames: bytes) -> None:
        """Send events that are frames already."""
        if not self.has_started:
            ours = {name.lower() for name, _ in STREAM_HEADERS}
            theirs = [pair for pair in self.headers if pair[0].lower() not in ours]
            await self._start(200, (*STREAM_HEADERS, *theirs))
            self.is_streaming = True
            self._brake = brake_of(self._send)
        if self._brake is not None:
            await self._brake.until_room()
        await self._body(frames, is_last=False)

    async def _start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        headers = with_cors(tuple(headers), self.cors)
        encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
        if self.closes:
            encoded.append((b"connection", b"close"))
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

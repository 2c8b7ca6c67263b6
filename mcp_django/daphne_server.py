"""Daphne for production: it ends what runs before it stops, waits for slow readers, and refuses
requests that are too long or too slow. Importing this chooses the event loop of Twisted.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from types import FrameType
from typing import Any
from weakref import WeakSet

from daphne.http_protocol import WebRequest
from daphne.server import HTTPFactory, Server, reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel

from mcp_django.transports import shutdown
from mcp_django.transports.call import calls_of_loop
from mcp_django.transports.responses import Brake

logger = logging.getLogger("mcp_django.serve")

#: Seconds for a request, from its first byte to its last.
LONGEST_REQUEST = 60
#: Seconds for a client that was refused to read why.
FAREWELL = 5
#: Seconds for applications that are cancelled.
PATIENCE = 1.0

CONTENT_TOO_LARGE = b"413 Content Too Large"
REQUEST_TIMEOUT = b"408 Request Timeout"


class DaphneRequest(WebRequest):  # type: ignore[misc]  # Daphne has no types
    """One request, whose response waits for its reader."""

    _received = 0

    def handleContentChunk(self, data: bytes) -> None:
        # A body in chunks does not say how long it is.
        self._received += len(data)
        if self._received > self.server.max_body:
            self.channel.refuse(CONTENT_TOO_LARGE)
        else:
            super().handleContentChunk(data)

    def handle_exception(self, exception: Exception) -> None:
        # A page about the error has no place in a response that has begun. Without an end, the
        # client sees that something is missing.
        if self._response_started:
            self.channel.close_soon()
        else:
            super().handle_exception(exception)

    def finish(self) -> None:
        if self.producer is not None:
            self.producer.release()
        super().finish()


class DaphneChannel(HTTPChannel):
    """One connection. It reads requests within limits of size and time."""

    transport: Any
    is_reading = False
    is_refused = False

    @property
    def is_answering(self) -> bool:
        return bool(self.requests) and not self.is_reading

    def connectionMade(self) -> None:
        self.factory.server.channels.add(self)
        super().connectionMade()

    def connectionLost(self, reason: Any = connectionDone) -> None:
        self.factory.server.channels.discard(self)
        super().connectionLost(reason)

    def resetTimeout(self) -> None:
        # Called for all that arrives: each byte would put the end off.
        if not self.is_reading and not self.requests:
            self.is_reading = True
            super().resetTimeout()

    def allHeadersReceived(self) -> None:
        # Daphne would believe it, and anybody can send it.
        self.requests[-1].requestHeaders.removeHeader(b"daphne-root-path")
        if self.length is not None and self.length > self.factory.server.max_body:
            # Before "100 Continue", which asks for the body.
            self.refuse(CONTENT_TOO_LARGE)
        else:
            super().allHeadersReceived()

    def rawDataReceived(self, data: bytes) -> None:
        if not self.is_refused:
            super().rawDataReceived(data)

    def allContentReceived(self) -> None:
        if not self.is_refused:
            self.is_reading = False
            super().allContentReceived()

    def timeoutConnection(self) -> None:
        if self.is_reading and self.requests and not self.is_refused:
            self.refuse(REQUEST_TIMEOUT)
        else:
            super().timeoutConnection()

    def refuse(self, status: bytes) -> None:
        """Answer before the request has come whole, and drop what follows."""
        if self.is_refused:
            return
        self.is_refused = True
        self.setRawMode()
        head = b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self.transport.write(head % status)
        # A client that is still writing loses the answer if the connection closes with unread
        # bytes (RFC 9112, 9.6). So this is the end of our half only.
        self.transport.loseWriteConnection()
        self.setTimeout(FAREWELL)

    def close_soon(self) -> None:
        """Close the connection, also if the client does not read what was sent."""
        super().timeoutConnection()

    def close_when_answered(self) -> None:
        """Close the connection, after the response to a request that has come whole."""
        if self.is_answering:
            self.persistent = False
            self.requests[0].responseHeaders.setRawHeaders(b"Connection", [b"close"])
        else:
            self.close_soon()


class DaphneFactory(HTTPFactory):  # type: ignore[misc]  # Daphne has no types
    # Without TLS there is nothing to negotiate, for which Twisted has a protocol around this one.
    protocol = DaphneChannel

    def buildProtocol(self, address: Any) -> DaphneChannel:
        channel: DaphneChannel = super().buildProtocol(address)
        channel.requestFactory = DaphneRequest
        channel.timeOut = LONGEST_REQUEST
        return channel


class DaphneServer(Server):  # type: ignore[misc]  # Daphne has no types
    """Serves on a socket that listens already."""

    def __init__(
        self,
        application: Any,
        *,
        listener: socket.socket,
        grace: float,
        max_body: float,
        parent: int | None = None,
        **options: Any,
    ) -> None:
        """`grace` is in seconds. `parent` is the process that started this one as a worker, and
        decides when the grace is over. A worker does not outlive it.
        """
        # Daphne takes names of endpoints only, and has none for a Unix socket that listens.
        super().__init__(application, endpoints=["ours"], signal_handlers=False, **options)
        self.endpoints: list[str] = []
        self.listener = listener
        self.grace = grace
        self.max_body = max_body
        self.parent = parent
        # One that has become a WebSocket is not told when it closes.
        self.channels: WeakSet[DaphneChannel] = WeakSet()
        self.is_stopping = False
        self.is_hurried = False

    def run(self) -> None:
        self._port = reactor.adoptStreamPort(
            self.listener.fileno(), self.listener.family, DaphneFactory(self)
        )
        for number in shutdown.SIGNALS:
            signal.signal(number, self.stop_on_signal)
        # As soon as the loop runs.
        reactor.callLater(0, shutdown.prepare)
        super().run()

    def stop_on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            reactor.callFromThread(reactor.stop)
        elif self.parent is None:
            self.is_hurried = True

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        await super().handle_reply(protocol, message)
        # Twisted takes the channel away from a request that is answered.
        is_http = isinstance(protocol, DaphneRequest) and getattr(protocol, "channel", None)
        if is_http and message.get("more_body"):
            # Streams of events have a brake already.
            await (protocol.producer or Brake(protocol)).until_room()

    def application_checker(self) -> None:
        if self.parent not in (None, os.getppid()):
            signal.raise_signal(signal.SIGTERM)
        try:
            super().application_checker()
        except Exception:
            logger.exception("Daphne's look at its connections failed. It looks again.")
            reactor.callLater(1, self.application_checker)

    def kill_all_applications(self) -> Deferred[None]:
        return Deferred.fromFuture(asyncio.ensure_future(self.drain()))

    async def drain(self) -> None:
        """Accept nothing more, let what runs end for `grace` seconds, and cancel the rest."""
        self._port.stopListening()
        self.listener.close()
        for channel in tuple(self.channels):
            channel.close_when_answered()
        await shutdown.until_ended(lambda: self.is_busy, seconds=self.grace)
        tasks = [details.get("application_instance") for details in self.connections.values()]
        left = [task for task in tasks if task is not None and not task.done()]
        if left:
            logger.warning("%d connections were cut off when the server stopped.", len(left))
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=PATIENCE)

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet, or a client still has to read the answer."""
        # What has become a WebSocket has another protocol. WebSockets end without a grace.
        is_open = (channel.transport.protocol is channel for channel in self.channels)
        return not self.is_hurried and (bool(calls_of_loop()) or any(is_open))

"""What a client sends behind the headers of a request: read within limits, or dropped."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp_django.protocol.headers import Headers
from mcp_django.transports.responses import Receive

#: Seconds without a byte, and seconds for the whole body.
LONGEST_PAUSE = 10.0
LONGEST_READING = 60.0


class Disconnected(Exception):
    """The client left before its request was complete."""


class TooSlow(Exception):
    """The body does not arrive in time."""


class Body:
    """What a client sends behind its headers. Read it, or drop it."""

    def __init__(self, receive: Receive, headers: Headers, *, limit: int) -> None:
        self._receive = receive
        self.limit = limit
        declared = headers.get("content-length") or "0"
        self._is_too_long = declared.isdecimal() and int(declared[:20]) > limit
        is_declared = declared != "0" or headers.count("transfer-encoding") > 0
        #: Whether more of it may be on its way. What is not declared is not (RFC 9112, 6.3).
        self.is_expected = is_declared or headers.are_too_long

    async def receive(self) -> dict[str, Any]:
        """The next event of the server."""
        event = await self._receive()
        if event["type"] == "http.disconnect" or not event.get("more_body", False):
            self.is_expected = False
        return event

    async def read(self) -> bytes | None:
        """The body, or None where it is longer than the limit: the rest is not kept.

        Raises Disconnected and TooSlow.
        """
        if self._is_too_long:
            return None
        chunks: list[bytes] = []
        size, more = 0, True
        clock = asyncio.get_running_loop().time
        latest = clock() + LONGEST_READING
        while more:
            try:
                async with asyncio.timeout_at(min(clock() + LONGEST_PAUSE, latest)):
                    event = await self.receive()
            except TimeoutError:
                # Nobody waits for the rest of it.
                self.is_expected = False
                raise TooSlow from None
            if event["type"] == "http.disconnect":
                raise Disconnected
            chunk, more = event.get("body", b""), event.get("more_body", False)
            size += len(chunk)
            if size > self.limit:
                return None
            chunks.append(chunk)
        return b"".join(chunks)

    async def drop(self) -> None:
        """Let the client finish sending, up to the limit of a body.

        A client that is still writing loses the answer if the connection closes with unread bytes
        (RFC 9112, 9.6).
        """
        size = 0
        try:
            async with asyncio.timeout(LONGEST_PAUSE):
                while self.is_expected and size <= self.limit:
                    size += len((await self.receive()).get("body", b""))
        except TimeoutError:
            return

"""Thousands of clients that listen, as raw sockets, since the client has half of the machine."""

from __future__ import annotations

import asyncio
import json
import random
import time

from benchmarks.calls import Kind, message
from benchmarks.servers import Server

HELLO = b'"notifications/subscriptions/acknowledged"'
NEWS = b'"notifications/resources/updated"'
#: Connections that are opened at a time: Daphne keeps fifty waiting, and the next one waits a
#: second.
GULP = 40
PATIENCE = 60


def asking(server: Server, token: str, uri: str) -> bytes:
    listen = Kind(
        method="subscriptions/listen",
        params=lambda chance: {"notifications": {"resourceSubscriptions": [uri]}},
        proof=HELLO,
    )
    headers, body = message(listen, random.Random(), token)
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return f"POST /mcp HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + body


class Listener(asyncio.Protocol):
    """One open stream."""

    def __init__(self, crowd: Crowd, request: bytes) -> None:
        self.crowd = crowd
        self.request = request
        self.rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        # An event ends with an empty line, wherever the network cut it.
        *events, self.rest = (self.rest + data).split(b"\n\n")
        for event in events:
            if HELLO in event or NEWS in event:
                self.crowd.hear(self, event)

    def connection_lost(self, error: Exception | None) -> None:
        self.crowd.lose(self)


class Crowd:
    """All of them, and when the last has heard."""

    def __init__(self, server: Server, uri: str) -> None:
        self.server = server
        self.uri = uri
        self.listeners: set[Listener] = set()
        self._deaf: set[Listener] = set()
        self._is_told = asyncio.Event()
        self._is_closing = False
        self.lost = 0

    def hear(self, listener: Listener, event: bytes) -> None:
        if HELLO in event and json.dumps(self.uri).encode() not in event:
            raise SystemExit(f"Not honoured: {event.decode()}")
        self._deaf.discard(listener)
        if not self._deaf:
            self._is_told.set()

    def lose(self, listener: Listener) -> None:
        self.lost += not self._is_closing

    async def open(self, tokens: list[str]) -> None:
        """Return when every one of them has been acknowledged."""
        loop = asyncio.get_running_loop()
        for start in range(0, len(tokens), GULP):
            some = [
                Listener(self, asking(self.server, token, self.uri))
                for token in tokens[start : start + GULP]
            ]
            self._expect(some)
            for one in some:
                await loop.create_connection(lambda: one, "127.0.0.1", self.server.port)  # noqa: B023
            await self._heard()
            self.listeners.update(some)

    async def close(self) -> None:
        self._is_closing = True
        for one in self.listeners:
            one.transport.close()
        self.listeners.clear()
        await asyncio.sleep(2)
        self._is_closing = False

    def _expect(self, some: list[Listener] | set[Listener]) -> None:
        self._deaf = set(some)
        self._is_told.clear()

    async def _heard(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._is_told.wait()

    async def update(self) -> tuple[float, float]:
        """Seconds from a save until the last has heard of it, and the server's CPU for it."""
        self._expect(self.listeners)
        cpu, start = self.server.cpu(), time.perf_counter()
        _, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(b"POST /save HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
        await self._heard()
        seconds, cpu = time.perf_counter() - start, self.server.cpu() - cpu
        writer.close()
        return seconds, cpu

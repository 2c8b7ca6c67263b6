"""A client at the other end of two pipes, line by line, with the server in the same process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from mcp_django.transports.stdio import Pipes, serve
from tests.oracle import assert_valid_message
from tests.transports.wire import hello
from tests.waiting import PATIENCE


class Peer:
    """Told of messages by `await peer.message()`, each checked against the official models."""

    def __init__(self, *, revision: Revision = Revision.V2026_07_28) -> None:
        self.revision = revision
        self.capabilities: dict[str, Any] = {}
        self.methods: dict[Any, str] = {}
        self.theirs, self.input = os.pipe()
        self.output, self.their_output = os.pipe()
        self.lines = asyncio.StreamReader(limit=16 * 1024 * 1024)
        self.count = 0

    def start(self, caller: Any) -> None:
        pipes = Pipes(input=self.theirs, output=self.their_output)
        self.task = asyncio.create_task(serve(caller, pipes))
        self.task.add_done_callback(lambda task: self._hang_up())

    def _hang_up(self) -> None:
        os.close(self.theirs)
        os.close(self.their_output)

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(self.output, "rb", buffering=0)
        self.reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.lines), pipe
        )

    # Saying

    def write(self, data: bytes) -> None:
        os.write(self.input, data)

    def send(self, message: Any) -> None:
        self.write(msgspec.json.encode(message) + b"\n")

    def ask(self, method: str, revision: Revision | None = None, **params: Any) -> int:
        """The id of a new request."""
        self.count += 1
        self.send(self.request(self.count, method, revision or self.revision, **params))
        return self.count

    def request(self, key: Any, method: str, revision: Revision, **params: Any) -> dict[str, Any]:
        self.methods[key] = method
        client = Client(revision=revision, capabilities=self.capabilities)
        return {**client.message(method, params), "id": key}

    def call(self, tool: str, revision: Revision | None = None, **arguments: Any) -> int:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        return self.ask("tools/call", revision, **params)

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def take_back(self, key: Any) -> None:
        self.notify("notifications/cancelled", requestId=key)

    def handshake(self, revision: Revision) -> int:
        self.revision = revision
        return self.ask("initialize", revision, **hello(revision, **self.capabilities))

    async def initialize(self, revision: Revision, *, is_complete: bool = True) -> Any:
        self.handshake(revision)
        answer = await self.message()
        if is_complete:
            self.notify("notifications/initialized")
        return answer

    def end(self) -> None:
        """No more input."""
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    # Hearing

    async def line(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.lines.readline()

    async def message(self) -> Any:
        line = await self.line()
        assert line.endswith(b"\n"), line
        message = msgspec.json.decode(line)
        if isinstance(message, dict) and message.get("id", 0) is not None:
            method = message.get("method") or self.methods.get(message.get("id"), "ping")
            assert_valid_message(self.revision, method, message)
        return message

    async def answer(self, key: Any) -> Any:
        """The answer to this request, which is the next message."""
        message = await self.message()
        assert message.get("id") == key, message
        return message

    async def rest(self) -> list[Any]:
        """The messages until the server has ended."""
        self.end()
        await self.ended()
        messages = []
        while line := await self.line():
            messages.append(msgspec.json.decode(line))
        return messages

    async def ended(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.task


@asynccontextmanager
async def talking(caller: Any, **options: Any) -> AsyncIterator[Peer]:
    peer = Peer(**options)
    peer.start(caller)
    await peer.listen()
    try:
        yield peer
    finally:
        peer.end()
        await peer.ended()
        peer.reading.close()

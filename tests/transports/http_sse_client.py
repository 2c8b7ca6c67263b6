"""A client of HTTP+SSE: a stream that stays open, and a connection for each message."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import msgspec

from mcp_django.protocol.revisions import Revision
from mcp_django.subscriptions.outbox import flush
from mcp_django.testing import Client
from mcp_django.transports.http_sse import HTTPSSEApplication
from mcp_django.transports.hub import get_hub
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection, hello
from tests.waiting import PATIENCE

NEWEST = "2025-11-25"


class HTTPSSEClient:
    """Messages that came and were not asked for are in `told`, in order."""

    def __init__(self, client: Client, *, application: Any = None, path: str = "/mcp") -> None:
        self.client = Client(
            token=client.token,
            application=application or HTTPSSEApplication.as_asgi(),
            path=f"{path}/sse",
        )
        self.posts = self.client.application
        self.revision = Revision.V2024_11_05
        self.told: list[Any] = []
        self._ids = count(1)

    async def open(self, root_path: str = "", **headers: str) -> HTTPSSEClient:
        self.stream = EventStream.get(self.client, **headers)
        self.stream.scope["root_path"] = root_path
        await self.stream.opened()
        if self.stream.status == 200:
            first = await self.stream.frame()
            assert first.type == "endpoint"
            self.endpoint = first.data
        return self

    async def begin(self, revision: str = NEWEST, **capabilities: Any) -> HTTPSSEClient:
        """With a handshake."""
        await self.open()
        params = hello(Revision(revision), "old", **capabilities)
        self.hello = (await self.ask("initialize", params))["result"]
        self.revision = Revision(self.hello["protocolVersion"])
        await self.tell("notifications/initialized")
        return self

    @property
    def id(self) -> str:
        return self.endpoint.partition("session_id=")[2]

    def posting(
        self, message: Any, *, verb: str = "POST", endpoint: str = "", **headers: str
    ) -> Connection:
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        call = Connection(self.client, body, verb=verb, headers=headers)
        call.application = self.posts
        path, _, query = (endpoint or self.endpoint).partition("?")
        call.scope |= {"path": path, "query_string": query.encode()}
        return call

    async def post(self, message: Any, **options: Any) -> Connection:
        return await self.posting(message, **options).whole()

    async def send(self, method: str, params: Any = None, **options: Any) -> int:
        """Post a request that is accepted, and return its id."""
        number = next(self._ids)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        posted = await self.post(message, **options)
        assert (posted.status, posted.body) == (202, b""), posted.body
        return number

    async def tell(self, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        posted = await self.post(message)
        assert (posted.status, posted.body) == (202, b"")

    async def answer_to(self, number: int) -> Any:
        while True:
            message = await self.message()
            if message.get("id") == number and "method" not in message:
                return message
            self.told.append(message)

    async def response(self) -> Any:
        """The next answer, whatever it answers."""
        while "method" in (message := await self.message()):
            self.told.append(message)
        return message

    async def message(self, method: str | None = None) -> Any:
        """The next one, or the next notification or request of this name."""
        while True:
            event = await self.stream.event()
            assert (event.type, event.id) == ("message", None)
            if method in (None, event.message.get("method")):
                return event.message

    def heard(self, method: str | None) -> list[Any]:
        """What was told of this name so far: None for answers that nobody waited for."""
        return [message for message in self.told if message.get("method") == method]

    async def ask(self, method: str, params: Any = None, **options: Any) -> Any:
        return await self.answer_to(await self.send(method, params, **options))

    async def call(self, tool: str, **arguments: Any) -> str:
        params = {"name": tool, "arguments": arguments}
        return (await self.ask("tools/call", params))["result"]["content"][0]["text"]

    async def leave(self) -> None:
        await self.stream.left()
        await settled()


async def settled() -> None:
    """Until what the end of a stream set going is done: sessions ended, calls taken back."""
    hub = get_hub()
    for _ in range(2):
        while waiting := set(hub._tasks):
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait(waiting)
        await asyncio.to_thread(flush)

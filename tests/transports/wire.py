"""One HTTP connection to an ASGI application, event by event, and tools that wait to be let go."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import msgspec

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from mcp_django.transports.threads import Lane, lanes
from tests.clients import CheckedClient
from tests.oracle import assert_valid_message
from tests.waiting import PATIENCE

PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
#: The same as a message.
PINGING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
#: A call of the tool of the fixture `patient`.
PATIENT = {"name": "patient", "arguments": {}}


class Connection:
    """What a server would do for one request: hand over the body, take events, hang up."""

    def __init__(self, client: Client, *chunks: bytes, verb: str = "POST", headers: Any = None):
        self.revision: Revision | None = None
        self.method = ""
        self.application = client.application
        self.chunks = chunks
        self.scope = client.scope(verb, headers=headers)
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for index, chunk in enumerate(chunks):
            is_last = index == len(chunks) - 1
            self.inbox.put_nowait(
                {"type": "http.request", "body": chunk, "more_body": not is_last}
            )
        self.outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []

    @classmethod
    def asking(cls, client: Client, method: str, params: Any = None, **headers: str) -> Connection:
        message = client.message(method, params)
        call = cls(
            client,
            msgspec.json.encode(message),
            headers={**client.routing_headers(message), **headers},
        )
        call.revision, call.method = client.revision, method
        return call

    @classmethod
    def calling(cls, client: Client, tool: str, token: Any = None, **arguments: Any) -> Connection:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return cls.asking(client, "tools/call", params)

    async def send(self, event: dict[str, Any]) -> None:
        self.sent.append(event)
        self.outbox.put_nowait(event)

    def start(self) -> asyncio.Task[None]:
        self.task = asyncio.create_task(self.application(self.scope, self.inbox.get, self.send))
        return self.task

    def hang_up(self) -> None:
        self.inbox.put_nowait({"type": "http.disconnect"})

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            return await self.outbox.get()

    async def end(self) -> None:
        """The application returns, raising nothing. What it sent are messages of the revision."""
        async with asyncio.timeout(PATIENCE):
            await self.task
        if self.revision is not None and self.sent:
            for message in self.messages:
                method = message.get("method", self.method)
                assert_valid_message(self.revision, method, message)

    async def whole(self) -> Connection:
        """Start, and wait for the end of the response."""
        self.start()
        await self.end()
        return self

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(event.get("body", b"") for event in self.sent[1:])

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def messages(self) -> list[Any]:
        if not self.headers["content-type"].startswith("text/event-stream"):
            return [self.json]
        lines = [frame.split(b"\n")[-1] for frame in self.body.split(b"\n\n")]
        data = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
        return [msgspec.json.decode(text) for text in data if text.strip()]

    def is_whole(self) -> bool:
        """One start, then bodies, of which the last and no other ends the response."""
        start, *bodies = self.sent
        return (
            start["type"] == "http.response.start"
            and bool(bodies)
            and [body.get("more_body", False) for body in bodies]
            == [True] * (len(bodies) - 1) + [False]
        )


class Gate:
    """Where a tool waits until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = Event()
        self.opened = Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE)

    def open(self) -> None:
        self.opened.set()

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE)

    async def held(self, call: Connection) -> Connection:
        """Start a call, and return it when its tool waits here."""
        call.start()
        await self.until_reached()
        return call


def hello(revision: Revision, name: str = "x", **capabilities: Any) -> dict[str, Any]:
    """The params of a handshake."""
    return {
        "protocolVersion": revision.value,
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": "1"},
    }


def counting(token: Any, number: int = 3) -> dict[str, Any]:
    """The params of a call that reports progress, if there is a token for it."""
    meta = {} if token is None else {"progressToken": token}
    return {"name": "count_to", "arguments": {"number": number}, "_meta": meta}


def speaking(client: Client, revision: Revision) -> CheckedClient:
    return CheckedClient(token=client.token, revision=revision)


async def finished(lane: Lane) -> None:
    """Until every job that a lane has now is done: one more per thread, all at once."""
    threads = lanes[lane].size
    together = asyncio.Barrier(threads + 1)
    loop = asyncio.get_running_loop()

    def meet():
        asyncio.run_coroutine_threadsafe(together.wait(), loop).result(PATIENCE)

    jobs = [lanes[lane].start(meet, seconds=PATIENCE, cancelled=Event()) for _ in range(threads)]
    async with asyncio.timeout(PATIENCE):
        await together.wait()
        await asyncio.gather(*jobs)

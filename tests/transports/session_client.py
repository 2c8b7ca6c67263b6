"""A legacy client with a session, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection


class SessionClient:
    """One session of a client. `await SessionClient.begin(client)` makes it."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.client = client
        self.headers = {"Mcp-Session-Id": session_id}

    @classmethod
    async def begin(cls, client: Client, **capabilities: Any) -> SessionClient:
        params = {
            "protocolVersion": client.revision.value,
            "capabilities": capabilities,
            "clientInfo": {"name": "x", "version": "1"},
        }
        call = await Connection.asking(client, "initialize", params).whole()
        return cls(client, call.headers["mcp-session-id"])

    @property
    def revision(self) -> Revision:
        return self.client.revision

    async def request(self, method: str, params: Any = None) -> Connection:
        return await Connection.asking(self.client, method, params, **self.headers).whole()

    def calling(self, tool: str, **arguments: Any) -> EventStream:
        """A call that reports progress, not yet started."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        return EventStream.asking(self.client, "tools/call", params, **self.headers)

    async def post(self, message: Any) -> Connection:
        headers = {"MCP-Protocol-Version": self.revision.value, **self.headers}
        body = msgspec.json.encode(message)
        return await Connection(self.client, body, headers=headers).whole()

    async def notify(self, method: str, **params: Any) -> Connection:
        return await self.post({"jsonrpc": "2.0", "method": method, "params": params})

    async def answer(self, request_id: Any, **said: Any) -> Connection:
        return await self.post({"jsonrpc": "2.0", "id": request_id, **said})

    async def get(self, last_event_id: str | None = None) -> EventStream:
        resumed = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        return await EventStream.get(self.client, **self.headers, **resumed).opened()

    async def end(self) -> Connection:
        return await Connection(self.client, b"", verb="DELETE", headers=self.headers).whole()

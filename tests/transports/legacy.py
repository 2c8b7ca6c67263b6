"""A client of the legacy era in its session: it calls, is asked, answers, takes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection, speaking

#: Everything that a client may declare.
ANYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


@dataclass
class Party:
    client: Client
    session: dict[str, str]

    @classmethod
    async def begin(
        cls,
        client: Client,
        revision: Revision,
        capabilities: dict[str, Any] | None = None,
        *,
        is_ready: bool = True,
    ) -> Party:
        client = speaking(client, revision)
        params = {
            "protocolVersion": revision.value,
            "capabilities": ANYTHING if capabilities is None else capabilities,
            "clientInfo": {"name": "x", "version": "1"},
        }
        call = await Connection.asking(client, "initialize", params).whole()
        party = cls(client, {"Mcp-Session-Id": call.headers["mcp-session-id"]})
        if is_ready:
            await party.notify("notifications/initialized")
        return party

    def ask(self, method: str, **params: Any) -> EventStream:
        """A request that is not sent yet. What comes back is checked by the oracle at its end."""
        call = EventStream.asking(self.client, method, params, **self.session)
        assert isinstance(call, EventStream)
        return call

    def call(self, tool: str, *, token: Any = None, **arguments: Any) -> EventStream:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.ask("tools/call", name=tool, arguments=arguments, **meta)

    async def called(self, tool: str, **arguments: Any) -> EventStream:
        """One whose response has begun."""
        return await self.call(tool, **arguments).opened()

    async def post(self, **message: Any) -> Connection:
        headers = {"MCP-Protocol-Version": self.client.revision.value, **self.session}
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        return await Connection(self.client, body, headers=headers).whole()

    async def notify(self, method: str, **params: Any) -> Connection:
        return await self.post(method=method, params=params)

    async def accept(self, question: dict[str, Any], **content: Any) -> Connection:
        return await self.say(question, action="accept", content=content)

    async def say(self, question: dict[str, Any], **result: Any) -> Connection:
        return await self.post(id=question["id"], result=result)

    async def resume(self, event_id: str) -> EventStream:
        headers = {**self.session, "Last-Event-ID": event_id}
        return await EventStream.get(self.client, **headers).opened()


def id_of(call: Connection) -> Any:
    """The id of the request that was sent."""
    return msgspec.json.decode(call.chunks[0])["id"]


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])

"""A client of Streamable HTTP in its session: it calls, is asked, answers, takes back, resumes."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from mcp_django.transports.sessions import key_of
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection, hello, speaking

#: Everything that a client may declare.
ANYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


class NumberForm(forms.Form):
    """What tools of these tests ask for."""

    number = forms.CharField(max_length=5, label="Order number")
    urgent = forms.BooleanField(required=False)


class SessionClient:
    """One session. `await SessionClient.begin(client)` makes it."""

    def __init__(self, client: Client, session_id: str = "") -> None:
        self.client = client
        self.id = session_id
        self.headers = {"Mcp-Session-Id": session_id} if session_id else {}

    @classmethod
    async def begin(
        cls,
        client: Client,
        revision: Revision | None = None,
        capabilities: dict[str, Any] | None = None,
        *,
        is_ready: bool = True,
    ) -> SessionClient:
        """In the revision of the client, unless another is named."""
        client = client if revision is None else speaking(client, revision)
        params = hello(client.revision, **(ANYTHING if capabilities is None else capabilities))
        call = await Connection.asking(client, "initialize", params).whole()
        session = cls(client, call.headers["mcp-session-id"])
        if is_ready:
            await session.notify("notifications/initialized")
        return session

    @property
    def key(self) -> str:
        """What stores know it by."""
        return key_of(self.id)

    def ask(self, method: str, **params: Any) -> EventStream:
        """A request that is not sent yet. What comes back is checked by the oracle at its end."""
        call = EventStream.asking(self.client, method, params, **self.headers)
        assert isinstance(call, EventStream)
        return call

    async def answer_to(self, method: str, **params: Any) -> Any:
        return (await self.ask(method, **params).whole()).json

    def call(self, tool: str, *, token: Any = None, **arguments: Any) -> EventStream:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.ask("tools/call", name=tool, arguments=arguments, **meta)

    async def called(self, tool: str, **arguments: Any) -> EventStream:
        """One whose response has begun."""
        return await self.call(tool, **arguments).opened()

    async def post(self, **message: Any) -> Connection:
        headers = {"MCP-Protocol-Version": self.client.revision.value, **self.headers}
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        return await Connection(self.client, body, headers=headers).whole()

    async def notify(self, method: str, **params: Any) -> Connection:
        return await self.post(method=method, params=params)

    async def accept(self, question: dict[str, Any], **content: Any) -> Connection:
        return await self.say(question, action="accept", content=content)

    async def say(self, question: dict[str, Any], **result: Any) -> Connection:
        return await self.post(id=question["id"], result=result)

    async def get(self, last_event_id: str | None = None) -> EventStream:
        """Its standalone stream, or the rest of the one with that event."""
        resumed = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        return await EventStream.get(self.client, **self.headers, **resumed).opened()

    async def end(self) -> Connection:
        return await Connection(self.client, b"", verb="DELETE", headers=self.headers).whole()


def id_of(call: Connection) -> Any:
    """The id of the request that was sent."""
    return msgspec.json.decode(call.chunks[0])["id"]


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])

"""Clients that ask each thing in a request of its own: Streamable HTTP and the WSGI view."""

from __future__ import annotations

from typing import Any

import msgspec
from asgiref.sync import sync_to_async

from tests.clients import WSGIClient
from tests.docs.drivers import CAPABILITIES, Driver, Refused, batched
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection


class StreamableHTTP(Driver):
    async def begin(self) -> None:
        self.session: dict[str, str] = {}
        self.open: list[EventStream] = []
        if not self.is_legacy:
            self.hello = await self.request("server/discover")
            return
        call = await Connection.asking(self.client, "initialize", self.greeting).whole()
        self.hello = call.json["result"]
        self.session = {"Mcp-Session-Id": call.headers["mcp-session-id"]}
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def leave(self) -> None:
        for stream in self.open:
            await stream.left()

    @property
    def headers(self) -> dict[str, str]:
        return {"MCP-Protocol-Version": self.revision.value, **self.session}

    async def post(self, message: Any) -> Connection:
        body = msgspec.json.encode(message)
        return await Connection(self.client, body, headers=self.headers).whole()

    async def asking(self, method: str, params: dict[str, Any]) -> EventStream:
        call = EventStream.asking(self.client, method, params, **self.session)
        assert isinstance(call, EventStream)
        return await call.opened()

    async def round(self, method: str, params: dict[str, Any]) -> list[Any]:
        call = await self.asking(method, params)
        if call.headers["content-type"].startswith("text/event-stream"):
            told = await self.until_answered(self.post, call.message)
            await call.end()
            return told
        await call.end()
        return call.messages

    async def batch(self, *methods: str) -> list[Any]:
        messages = [self.client.message(method) for method in methods]
        return batched((await self.post(messages)).json)

    async def get(self, **headers: str) -> EventStream:
        stream = await EventStream.get(self.client, **self.headers, **headers).opened()
        if stream.status != 200:
            raise Refused(stream.status)
        return stream

    async def subscribe(self, uri: str) -> None:
        if self.is_legacy:
            await self.request("resources/subscribe", uri=uri)
            self.open.append(await self.get())
            return
        params = {"notifications": {"resourceSubscriptions": [uri]}}
        self.open.append(await self.asking("subscriptions/listen", params))
        await self.event()

    async def event(self) -> Any:
        return await self.open[-1].message()

    async def lose(self, method: str, **params: Any) -> None:
        call = await self.asking(method, params)
        event = await call.event()
        while not event.data:
            event = await call.event()
        self.last_event_id = event.id or "none"
        await call.left()

    async def come_back(self) -> list[Any]:
        return await (await self.get(**{"Last-Event-ID": self.last_event_id})).rest()


class WSGI(Driver):
    """Through Django's own test client, as a WSGI server would hand requests over."""

    async def begin(self) -> None:
        self.web = WSGIClient(
            token=self.client.token, revision=self.revision, capabilities=CAPABILITIES
        )
        if self.is_legacy:
            self.hello = await self.request("initialize", **self.greeting)
        else:
            self.hello = await self.request("server/discover")

    async def round(self, method: str, params: dict[str, Any]) -> list[Any]:
        message = self.web.message(method, params)
        return (await self.post(message, headers=self.web.routing_headers(message))).messages

    async def post(self, message: Any, *, headers: Any) -> Any:
        return await sync_to_async(self.web.post)(message, headers=headers)

    async def batch(self, *methods: str) -> list[Any]:
        messages = [self.web.message(method) for method in methods]
        headers = {"MCP-Protocol-Version": self.revision.value}
        return batched(msgspec.json.decode((await self.post(messages, headers=headers)).body))

    async def get(self, **headers: str) -> list[Any]:
        answer = await sync_to_async(self.web.http)("GET", headers=headers)
        if answer.status != 200:
            raise Refused(answer.status)
        return answer.messages

    async def subscribe(self, uri: str) -> None:
        if not self.is_legacy:
            wishes = {"resourceSubscriptions": [uri]}
            await self.request("subscriptions/listen", notifications=wishes)
        await self.get()

    async def lose(self, method: str, **params: Any) -> None:
        """Nothing is said before the answer, so there is no moment to lose it in."""

    async def come_back(self) -> list[Any]:
        return await self.get(**{"Last-Event-ID": "none"})

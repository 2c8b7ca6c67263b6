"""One client for each transport, all with the same methods, to try the README's table with."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import msgspec
from asgiref.sync import sync_to_async

from mcp_django.auth.stdio import NamedUser
from mcp_django.protocol.revisions import Era
from mcp_django.testing import Client
from mcp_django.transports.stdio_callers import Caller
from tests.clients import WSGIClient
from tests.transports.event_stream import EventStream
from tests.transports.pipes import talking
from tests.transports.session import Session, settled
from tests.transports.wire import Connection

#: What a person says to every question.
ACCEPTED = {"action": "accept", "content": {}}
CAPABILITIES: dict[str, Any] = {"elicitation": {}}
UPDATED = "notifications/resources/updated"


class Refused(Exception):
    """The server does not do this here."""


class Driver:
    """Connected inside of `async with`, after the greeting of its era, which is in `hello`.

    `client` has the token and the revision. Questions are answered, and are in `asked`.
    """

    hello: dict[str, Any]

    def __init__(self, client: Client) -> None:
        self.client = client
        self.revision = client.revision
        self.is_legacy = client.revision.era is Era.LEGACY
        self.client.capabilities = CAPABILITIES
        self.asked: list[Any] = []

    async def __aenter__(self) -> Driver:
        await self.begin()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.leave()

    @property
    def greeting(self) -> dict[str, Any]:
        hello = {"name": "driver", "version": "1"}
        revision = self.revision.value
        return {
            "protocolVersion": revision,
            "capabilities": CAPABILITIES,
            "clientInfo": hello,
        }

    async def request(self, method: str, **params: Any) -> Any:
        """The result. Raises Refused."""
        return (await self.exchange(method, **params))[-1]["result"]

    async def exchange(self, method: str, **params: Any) -> list[Any]:
        """All that is said to a request, its answer last. Raises Refused."""
        told: list[Any] = []
        while True:
            *before, answer = await self.round(method, params)
            told += before
            if "error" in answer:
                raise Refused(answer["error"]["message"])
            if answer["result"].get("resultType") != "input_required":
                return [*told, answer]
            questions = answer["result"]["inputRequests"]
            self.asked += questions.values()
            params["inputResponses"] = dict.fromkeys(questions, ACCEPTED)
            params["requestState"] = answer["result"]["requestState"]

    async def until_answered(self, answers: Any, message: Any) -> list[Any]:
        """Messages of a stream until one that has no method: an answer."""
        told = []
        while True:
            told.append(await message())
            if "method" not in told[-1]:
                return told
            if "id" in told[-1]:
                self.asked.append(told.pop())
                await answers({"jsonrpc": "2.0", "id": self.asked[-1]["id"], "result": ACCEPTED})

    # What the transports do each in their own way.

    async def begin(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        """Hang up."""

    async def round(self, method: str, params: dict[str, Any]) -> list[Any]:
        """What is said to a request as it is, errors and questions of the modern era included."""
        raise NotImplementedError

    async def batch(self, *methods: str) -> list[Any]:
        """The answers to requests that are sent as one message. Raises Refused."""
        raise NotImplementedError

    async def subscribe(self, uri: str) -> None:
        """From now on a change of it is told by `event`. Raises Refused."""
        raise NotImplementedError

    async def event(self) -> Any:
        raise NotImplementedError

    async def lose(self, method: str, **params: Any) -> None:
        """Lose the connection after the first message that is said to a request."""
        raise NotImplementedError

    async def come_back(self) -> list[Any]:
        """What is said to a client that connects again for the rest. Raises Refused."""
        raise NotImplementedError


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


class HTTPSSE(Driver):
    async def begin(self) -> None:
        self.session = await Session(self.client).begin(self.revision.value, **CAPABILITIES)
        self.hello = self.session.hello

    async def leave(self) -> None:
        await self.session.leave()
        await settled()

    async def round(self, method: str, params: dict[str, Any]) -> list[Any]:
        await self.session.send(method, params)
        return await self.until_answered(self.session.post, self.session.message)

    async def batch(self, *methods: str) -> list[Any]:
        posted = await self.session.post([self.client.message(method) for method in methods])
        if posted.status != 202:
            raise Refused(posted.json["error"]["message"])
        return batched(await self.session.stream.message())

    async def subscribe(self, uri: str) -> None:
        await self.request("resources/subscribe", uri=uri)
        await settled()

    async def event(self) -> Any:
        return await self.session.message(UPDATED)

    async def lose(self, method: str, **params: Any) -> None:
        await self.session.send(method, params)
        await self.session.message()
        await self.leave()

    async def come_back(self) -> list[Any]:
        session = self.session = Session(self.client)
        await session.open(**{"Last-Event-ID": "1"})
        await session.ask("ping")
        return session.told


class Stdio(Driver):
    async def begin(self) -> None:
        self.stack = AsyncExitStack()
        caller = Caller(recognise=NamedUser("staff").authenticate)
        self.peer = await self.stack.enter_async_context(
            talking(caller, revision=self.revision)
        )
        self.peer.capabilities = CAPABILITIES
        if self.is_legacy:
            self.hello = (await self.peer.initialize(self.revision))["result"]
        else:
            self.hello = await self.request("server/discover")

    async def leave(self) -> None:
        await self.stack.aclose()

    async def round(self, method: str, params: dict[str, Any]) -> list[Any]:
        self.peer.ask(method, **params)
        return await self.until_answered(self.say, self.peer.message)

    async def say(self, message: Any) -> None:
        self.peer.send(message)

    async def batch(self, *methods: str) -> list[Any]:
        requests = [
            self.peer.request(f"b{key}", method, self.revision)
            for key, method in enumerate(methods)
        ]
        self.peer.send(requests)
        return batched(await self.peer.message())

    async def subscribe(self, uri: str) -> None:
        if self.is_legacy:
            await self.request("resources/subscribe", uri=uri)
            await settled()
            return
        self.peer.ask("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
        await self.event()

    async def event(self) -> Any:
        return await self.peer.message()

    async def lose(self, method: str, **params: Any) -> None:
        self.peer.ask(method, **params)
        await self.event()
        await self.leave()

    async def come_back(self) -> list[Any]:
        await self.begin()
        return await self.round("tools/list", {})


def batched(answer: Any) -> list[Any]:
    """Raises Refused for anything but a list of answers."""
    if not isinstance(answer, list):
        raise Refused(answer["error"]["message"])
    return answer

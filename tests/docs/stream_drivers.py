"""Clients that hear everything on one stream: HTTP+SSE and stdio."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from mcp_django.auth.authenticate import NamedUser
from mcp_django.transports.stdio.conversation import Caller
from tests.docs.drivers import CAPABILITIES, Driver, Refused, batched
from tests.transports.http_sse_client import HTTPSSEClient, settled
from tests.transports.pipes import talking

UPDATED = "notifications/resources/updated"


class HTTPSSE(Driver):
    async def begin(self) -> None:
        self.session = await HTTPSSEClient(self.client).begin(self.revision.value, **CAPABILITIES)
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
        session = self.session = HTTPSSEClient(self.client)
        await session.open(**{"Last-Event-ID": "1"})
        await session.ask("ping")
        return session.told


class Stdio(Driver):
    async def begin(self) -> None:
        self.stack = AsyncExitStack()
        caller = Caller(recognize=NamedUser("staff").authenticate)
        self.peer = await self.stack.enter_async_context(talking(caller, revision=self.revision))
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

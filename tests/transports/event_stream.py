"""A stream that stays open, read event by event, as a client would."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from asgiref.sync import sync_to_async

from mcp_django.subscriptions.outbox import flush, publish
from mcp_django.subscriptions.topics import Change
from mcp_django.testing import Client
from mcp_django.transports.hub import KEEP_ALIVE, get_hub
from tests.transports.wire import Connection
from tests.waiting import PATIENCE


class Event:
    """One frame. `data` is None for a comment, and "" for an event without a message."""

    def __init__(self, frame: str) -> None:
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if ": " in line)
        self.id = fields.get("id")
        self.type = fields.get("event", "message")
        self.retry = fields.get("retry")
        self.is_comment = frame.startswith(":")
        self.data = None if self.is_comment else fields.get("data", "")

    @property
    def message(self) -> Any:
        return msgspec.json.decode(self.data or "null")


class EventStream(Connection):
    """Told of events by `await stream.event()`, comments left out."""

    acknowledgment: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._text = ""

    @classmethod
    def get(cls, client: Client, **headers: str) -> EventStream:
        sent = {"Accept": "text/event-stream", **headers}
        return cls(client, b"", verb="GET", headers=sent)

    async def opened(self) -> EventStream:
        """Start, and return when the response has begun: `status` and `headers` are known."""
        self.start()
        await self.next()
        return self

    async def frame(self) -> Event:
        while "\n\n" not in self._text:
            event = await self.next()
            self._text += event.get("body", b"").decode()
            if not event.get("more_body", False):
                raise EOFError(self._text)
        frame, self._text = self._text.split("\n\n", 1)
        return Event(frame)

    async def event(self) -> Event:
        while True:
            event = await self.frame()
            if not event.is_comment:
                return event

    async def telling(self) -> Event:
        """The next event that has a message."""
        while not (event := await self.event()).data:
            continue
        return event

    async def message(self) -> Any:
        return (await self.telling()).message

    async def rest(self) -> list[Any]:
        """The messages until the server ends the stream."""
        messages = []
        try:
            while True:
                messages.append(await self.message())
        except EOFError:
            return messages

    async def left(self) -> None:
        """Hang up, and wait until the application knows."""
        self.hang_up()
        async with asyncio.timeout(PATIENCE):
            await self.task


class SlowStream(EventStream):
    """Of a client whose connection takes the head of the response and then waits."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.begins, self.goes_on = asyncio.Event(), asyncio.Event()

    async def send(self, event: dict[str, Any]) -> None:
        if event["type"] == "http.response.body" and not self.begins.is_set():
            self.begins.set()
            await self.goes_on.wait()
        await super().send(event)


def asking_to_listen(
    client: Client,
    *uris: str,
    kind: type[EventStream] = EventStream,
    headers: dict[str, str] | None = None,
    **wishes: bool,
) -> EventStream:
    """A subscription to these resources and to the lists that are wished for."""
    notifications = {**wishes, "resourceSubscriptions": list(uris)} if uris else wishes
    params = {"notifications": notifications}
    stream = kind.asking(client, "subscriptions/listen", params, **(headers or {}))
    assert isinstance(stream, EventStream)
    return stream


async def listening(client: Client, *uris: str, **wishes: Any) -> EventStream:
    """A subscription behind its acknowledgment. What changed before is news to nobody."""
    assert await sync_to_async(flush)()
    stream = await asking_to_listen(client, *uris, **wishes).opened()
    stream.acknowledgment = await stream.message()
    return stream


def changed(*topics: str) -> None:
    publish({Change(topic=topic) for topic in topics})


async def looked() -> None:
    """Until the hub has looked at all that was published."""
    assert await sync_to_async(flush)()
    async with asyncio.timeout(PATIENCE):
        while get_hub()._tasks:
            await asyncio.gather(*get_hub()._tasks)


def turn_the_wheel(seconds: int = KEEP_ALIVE) -> None:
    """As if so many seconds went by. A quiet stream waits that long for a sign of life."""
    for _ in range(seconds):
        get_hub()._turn()

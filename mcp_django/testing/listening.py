"""Changes, as a client hears of them on a stream that stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Self, TypeVar

import msgspec

from mcp_django.protocol.revisions import Era
from mcp_django.subscriptions.outbox import flush
from mcp_django.transports.threads import InlineLane

T = TypeVar("T")

#: Seconds that a test waits for what must come.
PATIENCE = 60


def events_of(body: bytes) -> list[Any]:
    """The messages in a stream of events. An event may have none: a place to come back to."""
    lines = body.decode().split("\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [msgspec.json.decode(one) for one in data if one]


class ChangeStream:
    """Iterates over what changed: the URI of a resource, or the name of a list, as "tools"."""

    def __init__(self, client: Any, uris: Sequence[str], lists: Iterable[str]) -> None:
        self._client, self._uris = client, uris
        self._lists = {f"notifications/{name}/list_changed": name for name in lists}
        self._requests: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._text = b""

    def subscribe(self) -> None:
        """What changed before is no news. In a session each URI has a request of its own."""
        flush()
        if self._client.revision.era is Era.LEGACY:
            if self._client.session is None:
                self._client.initialize()
            for uri in self._uris:
                self._client.request("resources/subscribe", {"uri": uri})

    async def open(self) -> None:
        """Return when changes are heard from now on. Raises AssertionError with a refusal."""
        client, wishes = (
            self._client,
            {f"{name}ListChanged": True for name in self._lists.values()},
        )
        params = {"notifications": {**wishes, "resourceSubscriptions": self._uris}}
        message = client.message("subscriptions/listen", params)
        is_modern = client.revision.era is Era.MODERN
        body = msgspec.json.encode(message) if is_modern else b""
        self._requests.put_nowait({"type": "http.request", "body": body})
        verb, headers = "POST" if is_modern else "GET", client.routing_headers(message)
        scope = client.scope(verb, headers=headers)
        application = client.application(scope, self._requests.get, self._events.put)
        self._task = asyncio.create_task(application)
        start = await self._events.get()
        answer = await self._message() if is_modern or start["status"] != 200 else {}
        heard = answer.get("params", {}).get("notifications", {}).get("resourceSubscriptions", ())
        if start["status"] != 200 or (is_modern and not {*self._uris} <= {*heard}):
            await self.close()
            raise AssertionError(f"HTTP {start['status']}: {answer}")

    async def close(self) -> None:
        self._requests.put_nowait({"type": "http.disconnect"})
        await self._task

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while message := await self._message():
            if message.get("method") == "notifications/resources/updated":
                return str(message["params"]["uri"])
            if message.get("method") in self._lists:
                return self._lists[message["method"]]
        raise StopAsyncIteration

    async def _message(self) -> Any:
        """The next message of the stream, or the only one. None: it has ended."""
        is_open = True
        while is_open:
            frame, blank, rest = self._text.partition(b"\n\n")
            if blank:
                self._text = rest
                if messages := events_of(frame):
                    return messages[0]
                continue
            try:
                event = await asyncio.wait_for(self._events.get(), PATIENCE)
            except TimeoutError:
                raise AssertionError(f"Nothing came within {PATIENCE} seconds.") from None
            self._text += event["body"]
            is_open = event.get("more_body", False)
        return msgspec.json.decode(self._text) if self._text else None


class PausedLoop(InlineLane):
    """A loop that only runs while something is waited for. Jobs run in the thread of the test,
    while the loop stands still: so they see the transaction of the test."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._jobs: list[Callable[[], None]] = []
        self._work = asyncio.Event()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = self._runner.get_loop().create_task(coroutine)
        task.add_done_callback(lambda _: self._work.set())
        while not task.done():
            self._runner.run(self._until_work())
            while self._jobs:
                self._jobs.pop(0)()
        return task.result()

    async def _until_work(self) -> None:
        await self._work.wait()
        self._work.clear()

    def start(self, job: Callable[[], T], **options: Any) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.append(partial(copy_context().run, settle, future, job))
        self._work.set()
        return future

    def close(self) -> None:
        self._runner.close()


def settle(future: asyncio.Future[T], job: Callable[[], T]) -> None:
    try:
        future.set_result(job())
    except Exception as error:
        future.set_exception(error)

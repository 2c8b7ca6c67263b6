"""One HTTP request to an ASGI application, from a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from mcp_django.testing.responses import HTTPAnswer, events_of

Scope: TypeAlias = dict[str, Any]


@contextmanager
def kept_connections() -> Iterator[None]:
    """As Django's own test client: the test's transaction is not closed with a request."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


async def ask(
    application: Any,
    scope: Scope,
    body: bytes,
    *,
    asked: Callable[[Mapping[str, Any]], tuple[Scope, bytes]],
) -> HTTPAnswer:
    """The whole response. What the server asks meanwhile is posted what `asked` makes of it."""
    events = iter([{"type": "http.request", "body": body, "more_body": False}])
    sent: list[dict[str, Any]] = []
    answers: list[asyncio.Task[HTTPAnswer]] = []

    async def receive() -> dict[str, Any]:
        event = next(events, None)
        if event is None:
            await asyncio.get_running_loop().create_future()  # the client stays connected
        return event or {}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)
        for message in events_of(event.get("body", b"")):
            if "method" in message and "id" in message:
                answer = ask(application, *asked(message), asked=asked)
                answers.append(asyncio.ensure_future(answer))

    await application(scope, receive, send)
    await asyncio.gather(*answers)
    start, *rest = sent
    headers: dict[str, str] = {}
    for name, value in start["headers"]:
        known = headers.get(name.decode())
        headers[name.decode()] = f"{known}, {value.decode()}" if known else value.decode()
    content = b"".join(event.get("body", b"") for event in rest)
    return HTTPAnswer(status=start["status"], headers=headers, body=content)

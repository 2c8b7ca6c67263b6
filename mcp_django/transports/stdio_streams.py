"""Calls and subscriptions whose messages are lines of one output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mcp_django.protocol.notifications import cancelled
from mcp_django.protocol.render import notification
from mcp_django.transports.calls import RunningCall
from mcp_django.transports.event_streams import EventStream
from mcp_django.transports.exchanges import Opening, Reply
from mcp_django.transports.lines import LineWriter, lines_of
from mcp_django.transports.subscribers import Reader


class LineCall(RunningCall):
    """A call that nobody resumes: there is no stream that could be lost alone."""

    async def tell(self, writer: LineWriter) -> Reply | None:
        """Write what comes before the answer, and return that. None: the client took it back."""

        async def say(messages: Sequence[bytes]) -> None:
            await writer.write(lines_of(messages))

        try:
            await self.pass_on(say)
            if not self.is_cancelled:
                return self.result()
            # A person may still look at what the call asked, and that is over, too.
            await asyncio.wait({self._work})
            await self.pass_on(say)
            return None
        finally:
            self.leave()

    def cancel(self) -> None:
        super().cancel()
        # What it has said until now is not wanted any more.
        self.output.take(self.revision)


class LineOutlet:
    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer
        self.has_started = False
        self.has_ended = False

    async def open(self) -> None:
        self.has_started = True

    async def frames(self, frames: bytes) -> None:
        if not self.has_ended:
            await self._writer.write(frames)

    async def keep_alive(self) -> None:
        """A pipe needs none."""


class LineStream(EventStream):
    """A subscription, or what a legacy session hears of."""

    def __init__(
        self, opening: Opening, writer: LineWriter, *, source: Reader, opened: Callable[[], object]
    ) -> None:
        """`opened` is called when it hears of every change from then on."""
        super().__init__(with_farewell(opening), LineOutlet(writer), source=source)
        self._opened_to = opened
        self._left = asyncio.Event()

    async def serve(self) -> None:
        """Until the client takes it back or the server ends it. Raises TooManyStreams."""
        await self.run(self._receive)

    async def _greet(self) -> None:
        await super()._greet()
        self._opened_to()

    async def reload(self) -> None:
        """Return when it hears of what its session subscribes to now."""
        await self._reload(since=self.hub.loop.time())

    def leave(self) -> None:
        """The client takes it back: from here on nothing is written."""
        self.response.has_ended = True
        self._left.set()

    async def _receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    def _frame(self, message: bytes) -> bytes:
        return lines_of([message])


def with_farewell(opening: Opening) -> Opening:
    """2026-07-28 wants the answer of a subscription that the server ends in one chapter, and
    notifications/cancelled in another. Clients ignore the second of the two.
    """
    if opening.request_id is None:
        return opening
    farewell = cancelled(opening.request_id, reason="The server ended the subscription.")
    return replace(opening, last=(*opening.last, notification(farewell, opening.revision)))

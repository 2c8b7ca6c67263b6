"""Replies that wait for an async tool: on the loop, or in a thread where no loop can take it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeAlias

from asgiref.sync import async_to_sync

from mcp_django.exceptions import Cancelled
from mcp_django.transports.exchanges import Reply

#: Seconds between two looks whether an async tool inside middleware is still wanted.
LOOK = 0.1


@dataclass(frozen=True, kw_only=True)
class PendingReply:
    """An async tool: the loop awaits it, and `settle` makes the reply in a second hop."""

    awaitable: Awaitable[Any]
    settle: Callable[[Callable[[], Any]], Reply]
    give_up: Callable[[], None]

    def close(self) -> None:
        """Nobody will await it, or settle it."""
        self.release()
        self.give_up()

    def release(self) -> None:
        """A coroutine that never ran complains, unless it is closed."""
        getattr(self.awaitable, "close", bool)()


Outcome: TypeAlias = Reply | PendingReply


def run_async(awaitable: Awaitable[Any], cancelled: Event) -> Any:
    """What an async tool returns. Raises Cancelled when nobody waits for it any more."""

    async def run() -> Any:
        task = asyncio.ensure_future(awaitable)
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK)
            if cancelled.is_set():
                task.cancel()
        if task.cancelled() and cancelled.is_set():
            raise Cancelled
        return task.result()

    return async_to_sync(run)()

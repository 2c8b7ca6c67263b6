"""Async tools: awaited on the server's loop, with threads of their own for the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Event
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy
from mcp_django.transports.serving import Outcome, PendingReply
from mcp_django.transports.threads import OutOfTime, as_exception

#: Async tools that run, with or without a client. asyncio itself keeps no reference to them.
async_calls: set[asyncio.Task[Any]] = set()


def spawn(coroutine: Coroutine[Any, Any, Outcome]) -> asyncio.Task[Outcome]:
    task = asyncio.create_task(coroutine)
    async_calls.add(task)
    task.add_done_callback(async_calls.discard)
    return task


async def run_async_tool(
    pending: PendingReply, *, seconds: float, cancelled: Event
) -> Callable[[], Any]:
    """Await the tool where its own database work gets a thread and a connection of its own.

    Returns a function that returns what the tool did, or raises it where errors are told apart.
    """
    if len(async_calls) > get_config().max_waiting:
        raise Busy
    async with ThreadSensitiveContext():
        try:
            async with asyncio.timeout(seconds) as limit:
                return partial(identity, await pending.awaitable)
        except BaseException as raised:
            if limit.expired():
                cancelled.set()
                raise OutOfTime from None
            if is_cancelling():
                raise
            return partial(throw, as_exception(raised))
        finally:
            # The thread of this context ends with it, and would leave its connections open.
            await sync_to_async(close_connections)()


def is_cancelling() -> bool:
    """Whether somebody else cancels this task. A tool may raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def identity(value: Any) -> Any:
    return value


def throw(error: Exception) -> Any:
    raise error


def close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # Under a test's `async_to_sync` this is the test's own thread and transaction.
        if not connection.in_atomic_block:
            connection.close()

"""Async tools: awaited on the server's loop, with threads of their own for the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from threading import Event
from typing import Any, TypeAlias

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy
from mcp_django.transports.pending_replies import PendingReply
from mcp_django.transports.threads import OutOfTime, as_exception

Tool: TypeAlias = "asyncio.Future[Callable[[], Any]]"

#: Async tools that run, wanted or not. asyncio itself keeps no reference to them.
async_calls: set[Tool] = set()


def begin(pending: PendingReply) -> Tool:
    """Start an async tool. The future fails with Busy when too many run already."""
    if len(async_calls) >= get_config().max_waiting:
        pending.close()
        refused: Tool = asyncio.get_running_loop().create_future()
        refused.set_exception(Busy())
        return refused
    tool = asyncio.create_task(with_own_thread(pending.awaitable))
    async_calls.add(tool)
    tool.add_done_callback(async_calls.discard)
    # One that is cancelled before its first step never gets to the coroutine.
    tool.add_done_callback(lambda tool: pending.release())
    return tool


async def with_own_thread(awaitable: Awaitable[Any]) -> Callable[[], Any]:
    """Await the tool where its own database work gets a thread and a connection of its own.

    Returns a function that returns what the tool did, or raises it where errors are told apart.
    """
    async with ThreadSensitiveContext():
        try:
            return partial(identity, await awaitable)
        except asyncio.CancelledError:
            raise
        except BaseException as raised:  # SystemExit would end the server
            return partial(throw, as_exception(raised))
        finally:
            # The thread of this context ends with it, and would leave its connections open.
            await sync_to_async(close_connections)()


async def outcome_of(tool: Tool, *, seconds: float, cancelled: Event) -> Callable[[], Any]:
    """What the tool did, as `with_own_thread` says. Raises OutOfTime, and waits no longer then:
    a tool that is inside a thread ends when that lets it go.
    """
    done, _ = await asyncio.wait({tool}, timeout=seconds)
    if not done:
        cancelled.set()
        raise OutOfTime
    if tool.cancelled():
        # By itself: whoever else cancels a tool does not wait here.
        return partial(throw, as_exception(asyncio.CancelledError()))
    return tool.result()


def identity(value: Any) -> Any:
    return value


def throw(error: Exception) -> Any:
    raise error


def close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        # Under a test's `async_to_sync` this is the test's own thread and transaction.
        if not connection.in_atomic_block:
            connection.close()

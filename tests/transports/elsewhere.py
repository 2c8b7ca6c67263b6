"""A second process of a site, as far as hubs go: an event loop of its own in another thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_django.transports.hub import Hub, get_hub
from tests.waiting import PATIENCE


class Elsewhere:
    """An application whose requests run there."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        home = asyncio.get_running_loop()

        def at_home(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def call(*args: Any) -> Any:
                there = asyncio.run_coroutine_threadsafe(function(*args), home)
                return await asyncio.wrap_future(there)

            return call

        await self.run(self.application(scope, at_home(receive), at_home(send)))

    async def run(self, coroutine: Any) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.loop))

    @property
    def hub(self) -> Hub:
        return get_hub(self.loop)

    async def settled(self) -> None:
        """Until no call runs there."""

        async def wait() -> None:
            while waiting := set(self.hub._tasks):
                async with asyncio.timeout(PATIENCE):
                    await asyncio.wait(waiting)

        await self.run(wait())

    def die(self) -> None:
        """At once, with all that runs there."""
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join()

    def close(self) -> None:
        self.die()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            self.loop.run_until_complete(asyncio.wait({task}))
        self.loop.close()

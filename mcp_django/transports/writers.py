"""Who writes to streams that have something to say: few tasks, however many streams there are."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

#: Streams that are written in one go. Calls get their turn in between.
GULP = 500


class Writable(Protocol):
    async def write(self) -> None:
        """Write what there is to say. Raises nothing but CancelledError."""
        ...


class Writers:
    """One task writes to one stream after the other, for as long as they take it at once. Where
    one does not, that task waits for its reader, and another goes on with the rest.
    """

    def __init__(self) -> None:
        self._ready: deque[Writable] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_called = False

    def add(self, stream: Writable) -> None:
        """On the loop: have it written soon."""
        self._ready.append(stream)
        if not self._is_called:
            self._call()

    def _call(self) -> None:
        self._is_called = True
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._write())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # After the first step of the task: what is left by then waits behind a slow reader.
        loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_called = False
        if self._ready:
            self._call()

    async def _write(self) -> None:
        for _ in range(GULP):
            if not self._ready:
                return
            await self._ready.popleft().write()

"""stdio: one client, and one process that it has started. A line is a message."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from mcp_django.conf import get_config
from mcp_django.stores.chosen import chosen
from mcp_django.stores.memory import MemoryStore
from mcp_django.transports.conversations import Conversation
from mcp_django.transports.lines import LineReader, LineWriter
from mcp_django.transports.standard_streams import Pipes
from mcp_django.transports.stdio_callers import Caller

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def never() -> timedelta:
    return timedelta.max


class ProcessStore(MemoryStore):
    """The session lasts as long as the process, however long nothing happens."""

    idle = staticmethod(never)


async def serve(caller: Caller, pipes: Pipes) -> None:
    """Until the input ends, nobody reads the output, or the process is told to stop."""
    is_over = asyncio.Event()
    reader = LineReader(pipes.input, limit=get_config().max_body, ended=is_over.set)
    writer = LineWriter(pipes.output, closed=is_over.set)
    conversation = Conversation(caller, writer)
    with chosen.using(ProcessStore()), stopping(is_over.set):
        reading = asyncio.create_task(conversation.read(reader))
        reading.add_done_callback(lambda task: is_over.set())
        await is_over.wait()
        await conversation.close(reading, is_hurried=not reader.has_ended)
        reader.close()
        writer.close()
    with suppress(asyncio.CancelledError):
        await reading


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for signals, where those can be had: on POSIX, in the main thread."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError, ValueError):
        for one in SIGNALS:
            loop.add_signal_handler(one, stop)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for one in SIGNALS:
                loop.remove_signal_handler(one)

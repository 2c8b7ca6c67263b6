"""The end of a server: streams are ended in good order before it closes their connections.

Servers wait for open responses forever, or cut them, and none announces that it stops. So handlers
here get the signal before the server does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from mcp_django.audit.records import records
from mcp_django.subscriptions.outbox import flush
from mcp_django.transports import hub
from mcp_django.transports.threads import lanes

#: Seconds for a thread that still runs a tool. It cannot be stopped, and Python waits for it.
PATIENCE = 0.5

logger = logging.getLogger("mcp_django")


def end_process() -> None:
    """Hand over what waits and end the threads. Where a tool runs on, the process ends at once."""
    closing = threading.Thread(target=lanes.close, name="mcp-end", daemon=True)
    closing.start()
    closing.join(PATIENCE)
    flush()
    records.close()
    if closing.is_alive():
        logger.warning("A tool still ran when the process ended.")
        logging.shutdown()
        os._exit(0)


#: Seconds for the last messages of all streams, before the server gets the signal itself.
FAREWELL = 0.3
#: Seconds between two looks whether calls have ended.
LOOK = 0.05
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Stands before the server's own handler of a signal."""

    def __init__(self, number: signal.Signals, otherwise: Callable[..., Any]) -> None:
        self.number = number
        self.otherwise = otherwise

    def __call__(self, number: int, frame: FrameType | None) -> None:
        hubs = [own for own in hub.all_hubs() if not own.loop.is_closed()]
        for own in hubs:
            own.loop.call_soon_threadsafe(own.close)
        with_streams = [own for own in hubs if own.streams]
        if with_streams:
            later = with_streams[0].loop
            later.call_soon_threadsafe(later.call_later, FAREWELL, self.otherwise, number, frame)
        else:
            self.otherwise(number, frame)


def prepare() -> None:
    """On the loop: have streams ended when this process is told to stop. Only its main thread can.

    A server whose handler is not a function of Python keeps it.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    # So that a stream which only begins when the signal comes finds a hub that is closing.
    hub.get_hub()
    for number in SIGNALS:
        otherwise = signal.getsignal(number)
        if callable(otherwise) and not isinstance(otherwise, Shutdown):
            signal.signal(number, Shutdown(number, otherwise))


async def until_ended(is_busy: Callable[[], object], *, seconds: float) -> None:
    """Return once nothing runs, or after so many seconds."""
    clock = asyncio.get_running_loop().time
    latest = clock() + seconds
    # Calls end in many places, and nobody waits here until the process is about to end.
    while is_busy() and clock() < latest:  # noqa: ASYNC110
        await asyncio.sleep(LOOK)

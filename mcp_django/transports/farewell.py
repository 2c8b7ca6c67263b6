"""The end of a server: streams are ended in good order before it closes their connections.

Servers wait for open responses for ever, or cut them. Neither says when it begins to stop, so the
signal that tells the server is looked at first.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from mcp_django.transports import hub

#: Seconds for the last words of all streams, before the server hears of the signal itself.
FAREWELL = 0.3
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Farewell:
    """Stands before the server's own handler of a signal."""

    def __init__(self, number: signal.Signals, otherwise: Callable[..., Any]) -> None:
        self.number = number
        self.otherwise = otherwise

    def __call__(self, number: int, frame: FrameType | None) -> None:
        open_hubs = [one for one in hub.all_hubs() if one.streams]
        for one in open_hubs:
            one.loop.call_soon_threadsafe(one.close)
        if open_hubs:
            later = open_hubs[0].loop
            later.call_soon_threadsafe(later.call_later, FAREWELL, self.otherwise, number, frame)
        else:
            self.otherwise(number, frame)


def prepare() -> None:
    """Have streams ended when this process is told to stop. Only its main thread can.

    A server whose handler is not a function of Python keeps it.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        otherwise = signal.getsignal(number)
        if callable(otherwise) and not isinstance(otherwise, Farewell):
            signal.signal(number, Farewell(number, otherwise))

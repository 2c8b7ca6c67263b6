"""What a call says before its answer, from whatever thread, in the order in which it was said."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Any

from mcp_django.protocol.notifications import Notification
from mcp_django.protocol.render import notification
from mcp_django.protocol.revisions import Revision


class Output:
    """Values of progress collapse to the last one, which may not fall: a call that runs again,
    with answers, counts from its start. Everything else is kept.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = Lock()
        self._unsent: dict[Any, Notification | bytes] = {}
        self._count = count()
        self._highest: dict[Any, float] = {}
        #: Set where the call wants its stream to be closed: milliseconds until the client comes.
        self.released: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self._unsent

    def add(self, one: Notification) -> None:
        token = one.params.get("progressToken")
        with self._lock:
            if token is None:
                self._unsent[next(self._count)] = one
            elif one.params["progress"] > self._highest.get(token, float("-inf")):
                self._highest[token] = one.params["progress"]
                # Not where the earlier value stood: what was said between them came before.
                self._unsent.pop(("progress", token), None)
                self._unsent["progress", token] = one
        self._wake()

    def say(self, message: bytes) -> None:
        """A message that is encoded already."""
        with self._lock:
            self._unsent[next(self._count)] = message
        self._wake()

    def release(self, milliseconds: int) -> None:
        self.released = milliseconds
        self._wake()

    def take(self, revision: Revision) -> list[bytes]:
        """The messages that were not taken yet."""
        if not self._unsent:
            return []
        with self._lock:
            unsent, self._unsent = self._unsent, {}
        return [
            one if isinstance(one, bytes) else notification(one, revision)
            for one in unsent.values()
        ]

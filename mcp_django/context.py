"""One call being answered: what a handler or a tool may know about it, and say while it runs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.http import HttpRequest

from mcp_django.asking import Asking
from mcp_django.exceptions import Cancelled, ToolError
from mcp_django.principal import Principal
from mcp_django.protocol.methods import LOG_LEVELS, LogLevel
from mcp_django.protocol.notifications import Notification, log_message, progress
from mcp_django.protocol.param_headers import SentParams

Notify: TypeAlias = Callable[[Notification], None]
#: From the least to the most urgent.
URGENCY = {level: urgency for urgency, level in enumerate(LOG_LEVELS)}
#: Characters of the name of a logger, and of a message about progress.
LONGEST_LOGGER, LONGEST_MESSAGE = 80, 1000
#: Beyond this an integer is another one for some readers of JSON.
LARGEST = 2**53


def drop(notification: Notification) -> None:
    """For transports that cannot send anything before the answer."""


def stay_open(milliseconds: int) -> None:
    """For transports that have no stream to close."""


@dataclass(slots=True)
class Facts:
    """What the record of a call says beside what everybody sees of it."""

    #: Records that were answered with, or changed.
    rows: int | None = None
    #: Whether the call may change something.
    may_write: bool = False
    #: Why it was refused, before that became the answer.
    refusal: ToolError | None = None


@dataclass(kw_only=True)
class CallContext(Asking):
    """Everything that the code behind one call may use.

    A tool of yours takes it as a parameter annotated `mcp.Context`.
    """

    #: Django's request: `user` is the principal's, the path is the endpoint's.
    request: HttpRequest
    principal: Principal
    #: Name and version of the connected program, as it says itself. Never a security input.
    client: Mapping[str, Any] = field(default_factory=dict)
    #: The headers Mcp-Param-* of a modern HTTP request, and None elsewhere.
    sent_params: SentParams | None = None
    progress_token: str | int | None = None
    notify: Notify = drop
    #: Whether there are streams, which some methods need.
    streams: bool = False
    #: The id of the request that is answered.
    request_id: str | int = 0
    #: The key of the legacy session, empty where there is none.
    session: str = ""
    #: The least level of log messages that the client wants. None: it wants none.
    log_level: str | None = None
    #: What may be told of some data in a log message, as JSON.
    tell: Callable[[Any], Any] = str
    #: Set when nobody waits any more: the client left, or the time is over.
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: Closes the stream of the call. See `close_stream`.
    release_stream: Callable[[int], None] = stay_open
    #: For the record of the call.
    facts: Facts = field(default_factory=Facts)
    _value: float | None = None

    def progress(self, value: float, *, total: float | None = None, message: str = "") -> None:
        """Tell the client how far this call is. Costs nothing where it did not ask.

        Values must rise from call to call; one that does not is dropped, since the protocol
        forbids sending it. Raises Cancelled when nobody waits for the call any more.
        """
        self.check()
        number = finite(value)
        if self.progress_token is None or number is None:
            return
        if self._value is not None and number <= self._value:
            return
        self._value = number
        said = encodable(message)[:LONGEST_MESSAGE] or None
        whole = None if total is None else finite(total)
        self.notify(progress(self.progress_token, number, total=whole, message=said))

    def log(self, level: LogLevel, data: Any, *, logger: str = "") -> None:
        """Tell the client something about this call, if it wants messages of this level.

        `data` is a text, or anything that JSON can say; of everything else the text is sent.
        Long data is cut, and the values of names that look secret are left out. A call sends 20
        messages in a second, and says how many more there were. Nothing here is for a log of the
        site: that is Python's `logging`.
        """
        # Misspelled is misspelled, whoever listens.
        urgency = URGENCY[level]
        if self.log_level is None or urgency < URGENCY[self.log_level]:
            return
        if not self.cancelled.is_set():
            named = encodable(logger)[:LONGEST_LOGGER]
            self.notify(log_message(level, self.tell(data), logger=named))

    def close_stream(self, *, retry: int = 1000) -> None:
        """Close the connection and work on: the client comes back after `retry` milliseconds for
        what was said meanwhile, and for the answer.

        For calls that take minutes, where connections cost. Nothing happens where the client
        could not come back: only sessions of 2025-11-25 tell it how.
        """
        if self.session and self.revision.features.priming_events:
            self.release_stream(retry)

    def check(self) -> None:
        """Raise Cancelled when nobody waits for this call any more. Call it in long loops."""
        if self.cancelled.is_set():
            raise Cancelled


def finite(value: Any) -> float | None:
    """The number as JSON has it, and None for one that it has not."""
    if isinstance(value, int) and abs(value) <= LARGEST:
        return int(value)
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def encodable(text: Any) -> str:
    """Also of a lazy text. UTF-8 has no place for half a character."""
    return str(text).encode("utf-8", "replace").decode()

"""One call being answered: what a handler or a tool may know about it, and say while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.http import HttpRequest

from mcp_django.asking import Asking
from mcp_django.exceptions import Cancelled, ToolError
from mcp_django.principal import Principal
from mcp_django.protocol.notifications import Notification, progress
from mcp_django.protocol.param_headers import SentParams

Notify: TypeAlias = Callable[[Notification], None]


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
        if self.progress_token is None or (self._value is not None and value <= self._value):
            return
        self._value = value
        self.notify(progress(self.progress_token, value, total=total, message=message or None))

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

"""What an HTTP request asks for, and what it is answered: the words that all transports share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from mcp_django.principal import Principal
from mcp_django.protocol.envelope import Envelope
from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.jsonrpc import (
    Notification,
    Request,
    RequestId,
    Response,
    encode_error,
    join_batch,
)
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.results import InputRequired
from mcp_django.protocol.revisions import LATEST_LEGACY, Revision
from mcp_django.subscriptions.events import Topic
from mcp_django.subscriptions.topics import Uris

HeaderList: TypeAlias = tuple[tuple[str, str], ...]

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
NO_STORE: HeaderList = (("Cache-Control", "no-store"),)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A whole HTTP response: no message, one, or those of a batch."""

    status: int = 200
    parts: tuple[bytes, ...] = ()
    is_batch: bool = False
    headers: HeaderList = ()
    #: In place of a body: a stream that stays open, or questions that the client is to answer
    #: first. Middleware sees an empty response, and its headers are those of the stream.
    opens: Opening | None = None
    asks: InputRequired | None = None

    @property
    def body(self) -> bytes:
        if self.is_batch:
            return join_batch(list(self.parts))
        return self.parts[0] if self.parts else b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """A stream that is to be opened, after everything about it was looked at."""

    #: listen, standalone, resumed or http_sse.
    kind: str
    principal: Principal
    revision: Revision
    client: str = ""
    #: When that was, as loops count.
    at: float = field(default_factory=time.monotonic)
    #: What the client wants to be told of.
    lists: frozenset[Topic] = frozenset()
    uris: Uris = field(default_factory=dict)
    session: str = ""
    #: Where the client posts its messages, where that is not where it asked.
    endpoint: str = ""
    #: The request that listens, and what it is told first.
    request_id: RequestId | None = None
    first: tuple[bytes, ...] = ()
    #: Told last, where the server ends the stream.
    last: tuple[bytes, ...] = ()
    #: Where a client that comes back left off.
    log: str = ""
    after: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    request: Request
    envelope: Envelope


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What an HTTP request asks for, before it is known who asks."""

    #: In the order of the body. A message of a batch that is none stands there as its error.
    calls: tuple[Call | ProtocolError, ...] = ()
    is_batch: bool = False
    verb: str = "POST"
    #: What needs no answer: notifications, and answers to requests of ours.
    notices: tuple[Notification | Response, ...] = ()
    #: Of the legacy era. The modern one has neither.
    session_id: str | None = None
    last_event_id: str | None = None
    #: What is wrong with the whole request. Told to callers with a credential only.
    refusal: Reply | None = None
    #: How errors about the request as a whole are written.
    revision: Revision = LATEST_LEGACY

    @cached_property
    def requests(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if isinstance(call, Call))

    @property
    def disconnect_cancels(self) -> bool:
        """2026-07-28: closing the stream cancels. Before, a lost connection says nothing."""
        return any(call.envelope.revision.features.disconnect_cancels for call in self.requests)

    @property
    def is_constant(self) -> bool:
        """The answer needs neither a thread nor the database."""
        return all(
            call.request.method in METHODS and METHODS[call.request.method].is_constant
            for call in self.requests
        )


def refuse(error: ProtocolError, *, id_optional: bool, headers: HeaderList = ()) -> Reply:
    body = encode_error(error, id_optional=id_optional)
    return Reply(status=error.status, parts=(body,), headers=headers)

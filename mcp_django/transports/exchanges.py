"""What a request asks for and what it is answered, as data that all transports share."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import Event
from typing import Any, NamedTuple, TypeAlias

from asgiref.sync import async_to_sync

from mcp_django.conf import get_config
from mcp_django.connections import TenantSchemas
from mcp_django.exceptions import Cancelled
from mcp_django.handlers.dispatch import PendingAnswer, server_info
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from mcp_django.protocol.jsonrpc import (
    Notification,
    Request,
    RequestId,
    Response,
    encode_error,
    encode_result,
    join_batch,
)
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.negotiation import Envelope
from mcp_django.protocol.render import render
from mcp_django.protocol.results import InputRequired, ToolResult
from mcp_django.protocol.revisions import LATEST_LEGACY, Revision
from mcp_django.subscriptions.topics import Topic, Uris

HeaderList: TypeAlias = tuple[tuple[str, str], ...]

NO_STORE: HeaderList = (("Cache-Control", "no-store"),)

# What the answer may be.

#: Characters of a value that is remembered. What clients send is shorter, and is always the same.
LONGEST_REMEMBERED = 200
JSON = "application/json"
EVENT_STREAM = "text/event-stream"


class Accept(NamedTuple):
    """What the answer to a request may be, by its Accept."""

    json: bool = True
    stream: bool = True
    #: It names the stream. Nobody else gets one where JSON does as well.
    names_stream: bool = True


ACCEPTS_ALL = Accept()


def accepted_by(header: str | None) -> Accept:
    """What Accept allows. An absent or empty one allows both.

    The most specific range decides about a type, and q=0 forbids (RFC 9110, 12.5.1).
    """
    if not header:
        return ACCEPTS_ALL._replace(names_stream=False)
    decide = ranges_of if len(header) <= LONGEST_REMEMBERED else ranges_of.__wrapped__
    return decide(header)


@lru_cache(maxsize=256)
def ranges_of(header: str) -> Accept:
    allowed: dict[str, bool] = {}
    for item in header.split(","):
        kind, *parameters = (part.strip().lower() for part in item.split(";"))
        allowed[kind] = not any(is_zero(parameter) for parameter in parameters)
    json, stream = (
        next((allowed[name] for name in names if name in allowed), False)
        for names in ((JSON, "application/*", "*/*"), (EVENT_STREAM, "text/*", "*/*"))
    )
    return Accept(json, stream, names_stream=allowed.get(EVENT_STREAM, False))


def is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and value.strip().rstrip("0") in ("", ".", "0", "0.")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A whole HTTP response: no message, one, or those of a batch."""

    status: int = 200
    parts: tuple[bytes, ...] = ()
    is_batch: bool = False
    headers: HeaderList = ()
    content_type: str = JSON
    #: In place of a body: a stream that stays open, or questions that the client is to answer
    #: first. Middleware sees an empty response, and its headers are those of the stream.
    opens: StreamSpec | None = None
    asks: InputRequired | None = None

    @property
    def body(self) -> bytes:
        if self.is_batch:
            return join_batch(list(self.parts))
        return self.parts[0] if self.parts else b""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamSpec:
    """A stream that is to be opened, after everything about it was looked at."""

    #: listen, standalone, call or http_sse.
    kind: str
    principal: Principal
    revision: Revision
    client: str = ""
    #: Where its tenant's tables are.
    schemas: TenantSchemas = ()
    #: When that was, as loops count.
    at: float = field(default_factory=time.monotonic)
    #: What the client subscribed to.
    lists: frozenset[Topic] = frozenset()
    uris: Uris = field(default_factory=dict)
    session: str = ""
    #: Where the client posts its messages, where that is not where it asked.
    endpoint: str = ""
    #: The request that listens, and the first messages that answer it.
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
    #: What the answer may be.
    accepted: Accept = ACCEPTS_ALL
    #: Reads a body that is too long for an event loop: in the thread, once it is known who sent
    #: it. Until then nothing else here says what is asked for. None: the body was read.
    read_body: Callable[[], Exchange] | None = None

    @cached_property
    def requests(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if isinstance(call, Call))

    @property
    def disconnect_cancels(self) -> bool:
        """2026-07-28: closing the stream cancels. Before, a lost connection says nothing."""
        if self.read_body is not None:
            return self.revision.features.disconnect_cancels
        return any(call.envelope.revision.features.disconnect_cancels for call in self.requests)

    @property
    def is_constant(self) -> bool:
        """The answer needs neither a thread nor the database."""
        return self.read_body is None and all(
            call.request.method in METHODS and METHODS[call.request.method].is_constant
            for call in self.requests
        )


def refuse(error: ProtocolError, *, id_optional: bool, headers: HeaderList = ()) -> Reply:
    body = encode_error(error, id_optional=id_optional)
    return Reply(status=error.status, parts=(body,), headers=headers)


# Replies that wait for an async tool: on the loop, or in a thread where no loop can take it.

#: Seconds between two looks whether an async tool inside middleware is still wanted.
LOOK = 0.1


Outcome: TypeAlias = Reply | PendingAnswer


def run_async(awaitable: Awaitable[Any], cancelled: Event) -> Any:
    """What an async tool returns. Raises Cancelled when nobody waits for it any more."""

    async def run() -> Any:
        task = asyncio.ensure_future(awaitable)
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK)
            if cancelled.is_set():
                task.cancel()
        if task.cancelled() and cancelled.is_set():
            raise Cancelled
        return task.result()

    return async_to_sync(run)()


# Refusals of a whole exchange, in the words of its revision.


logger = logging.getLogger("mcp_django")

#: Seconds after which a client may look whether staff opened the server again. Nobody knows.
CLOSED_FOR = "60"


def refuse_exchange(
    exchange: Exchange, error: ProtocolError, *, headers: HeaderList = ()
) -> Reply:
    if len(exchange.requests) == 1 and not exchange.is_batch:
        error.request_id = exchange.requests[0].request.id
    id_optional = exchange.revision.features.error_id_optional
    return refuse(error, id_optional=id_optional, headers=(*NO_STORE, *error.headers, *headers))


def busy(exchange: Exchange) -> Reply:
    error = ProtocolError(INTERNAL_ERROR, "The server is busy. Try again later.", status=503)
    return refuse_exchange(exchange, error, headers=(("Retry-After", "1"),))


def closed(exchange: Exchange) -> Reply:
    error = ProtocolError(INTERNAL_ERROR, "This server is closed for now.", status=503)
    return refuse_exchange(exchange, error, headers=(("Retry-After", CLOSED_FOR),))


def crashed(exchange: Exchange) -> Reply:
    """Inside an `except`: we have a bug. The log gets all of it, the peer a number."""
    correlation_id = secrets.token_hex(8)
    logger.exception("A request failed [%s]", correlation_id)
    error = ProtocolError(INTERNAL_ERROR, "Internal error", {"id": correlation_id}, status=500)
    return refuse_exchange(exchange, error)


def too_slow(exchange: Exchange) -> Reply:
    """The answer of a call that ran out of time: a tool failed, another method has an error."""
    seconds = f"{get_config().tool_timeout:g}"
    return gave_up(
        exchange,
        f"The tool was not done within {seconds} seconds. What it began may still take effect. "
        "Ask for less.",
        otherwise=f"Not done within {seconds} seconds.",
        code=INTERNAL_ERROR,
    )


def gave_up(
    exchange: Exchange, sentence: str, *, otherwise: str = "", code: int = INVALID_PARAMS
) -> Reply:
    """The answer of a call that the transport ended: a tool failed, any other has an error."""
    call = None if exchange.is_batch else next(iter(exchange.requests), None)
    if call is None or call.request.method != "tools/call":
        error = ProtocolError(code, otherwise or sentence)
        return refuse_exchange(exchange, error)
    result = ToolResult.error(sentence)
    wire = render(result, call.envelope.revision, server_info(streams=True))
    return Reply(parts=(encode_result(call.request.id, wire),), headers=NO_STORE)

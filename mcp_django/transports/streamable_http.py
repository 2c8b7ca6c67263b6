"""Streamable HTTP: the endpoint as an ASGI application, for Channels' routers or alone.

It is no Channels consumer on purpose: a consumer that awaits its handler hears neither a
disconnect nor a message meanwhile, and costs several times as much on a small call.
"""

from __future__ import annotations

import logging
from functools import cache
from threading import Event
from typing import Any, TypeAlias

from django.http import HttpRequest

from mcp_django.auth.authenticate import authenticate, cached_principal
from mcp_django.auth.switches import lets_in
from mcp_django.auth.throttles import is_first_refusal
from mcp_django.conf import get_config
from mcp_django.exceptions import Busy
from mcp_django.exposure.decisions import Decisions, known_decisions
from mcp_django.handlers.tools import kept_list
from mcp_django.principal import Principal
from mcp_django.protocol.envelope import Envelope
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.questions import InputParams
from mcp_django.transports.call_streams import CallStream
from mcp_django.transports.calls import RunningCall
from mcp_django.transports.endpoint import understand
from mcp_django.transports.event_streams import AlreadyOpen, EventStream
from mcp_django.transports.exchanges import Call, Exchange, Opening, Reply, refuse
from mcp_django.transports.hub import TooManyStreams
from mcp_django.transports.middleware import loaded
from mcp_django.transports.openings import RESUMED
from mcp_django.transports.refusals import busy, crashed
from mcp_django.transports.requests import build_request
from mcp_django.transports.resumed_streams import ResumedStream
from mcp_django.transports.serving import Service
from mcp_django.transports.strangers import stranger
from mcp_django.transports.streams import Receive, ResponseStream, Send

logger = logging.getLogger("mcp_django")

Scope: TypeAlias = dict[str, Any]
Opened: TypeAlias = EventStream | ResumedStream


class MCPApplication:
    """Serves the MCP endpoint at whatever path it is routed to."""

    @classmethod
    def as_asgi(cls) -> MCPApplication:
        """As Channels' consumers have it, for `path("mcp", MCPApplication.as_asgi())`."""
        return cls()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError("The MCP endpoint speaks HTTP only.")
        stream = ResponseStream(send)
        exchange = Exchange()
        try:
            headers = Headers(scope["headers"])
            refusal = stranger(headers)
            if refusal is None and not scope.get("query_string", b"").isascii():
                # A URI is ASCII (RFC 3986), and Django decodes this without a net.
                error = ProtocolError(INVALID_REQUEST, "The URL is not valid.", status=400)
                refusal = refuse(error, id_optional=True)
            if refusal is not None:
                await stream.reply(refusal)
                return
            body = await read_body(receive, headers, limit=get_config().max_body)
            exchange = self.understand(scope, headers, body)
            opened = await self.answer(scope, exchange, body or b"", headers, receive, stream)
            if opened is not None:
                # It may stay open for days. What asked for it is of no use any more.
                exchange = asked_for(opened.opening)
                del headers, body
                await opened.run(receive)
        except TooManyStreams:
            await stream.reply(busy(exchange))
        except AlreadyOpen:
            error = ProtocolError(
                INVALID_REQUEST, "This session has its standalone stream already.", status=409
            )
            await stream.reply(refuse(error, id_optional=True))
        except Disconnected:
            return
        except Exception:
            # Out of here an exception would stop Daphne's watch over all its connections.
            await stream.reply(crashed(exchange))
        finally:
            await stream.end()

    def understand(self, scope: Scope, headers: Headers, body: bytes | None) -> Exchange:
        """What is asked for. `body` is None where it is too long."""
        return understand(scope["method"], headers, body)

    async def answer(
        self,
        scope: Scope,
        exchange: Exchange,
        body: bytes,
        headers: Headers,
        receive: Receive,
        stream: ResponseStream,
    ) -> Opened | None:
        """Answer, or return the stream that is the answer: it runs until it is over."""
        return await answer(scope, exchange, body, headers, receive, stream)


def asked_for(opening: Opening) -> Exchange:
    """What is left of an exchange that opened a stream: of whom errors speak, and how."""
    if opening.request_id is None:
        return Exchange(revision=opening.revision)
    request = Request(id=opening.request_id, method="subscriptions/listen")
    call = Call(request=request, envelope=Envelope(revision=opening.revision))
    return Exchange(calls=(call,), revision=opening.revision)


class Disconnected(Exception):
    """The client left before its request was complete."""


async def read_body(receive: Receive, headers: Headers, *, limit: int) -> bytes | None:
    """The body, or None where it is longer than `limit`: the rest is not kept."""
    declared = headers.get("content-length") or "0"
    if declared.isdecimal() and int(declared[:20]) > limit:
        return None
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def answer(
    scope: Scope,
    exchange: Exchange,
    body: bytes,
    headers: Headers,
    receive: Receive,
    stream: ResponseStream,
) -> Opened | None:
    reply = answer_at_once(exchange, headers)
    if reply is not None:
        await stream.reply(reply)
        return None

    def prepare(call: RunningCall, sent_input: InputParams) -> Service:
        # Each run has a request of its own: what the one before made of it is over.
        return Service(
            exchange=exchange,
            request=build_request(scope, body),
            cancelled=call.cancelled,
            notify=call.notify,
            tell_session=call.tell_session,
            release_stream=call.output.release,
            sent_input=sent_input,
        )

    call = RunningCall(exchange, prepare=prepare)
    try:
        call.start()
    except Busy:
        await stream.reply(busy(exchange))
        return None
    reply = await CallStream(call, stream).follow(receive)
    if reply is None or reply.opens is None:
        return None
    stream.headers = reply.headers
    kind = ResumedStream if reply.opens.kind == RESUMED else EventStream
    return kind(reply.opens, stream, source=HTTPReader(scope))


class HTTPReader:
    """Who reads a stream, by the credential that came with its request."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def request(self) -> HttpRequest:
        return build_request(self._scope, b"")

    def recognise(self, request: HttpRequest) -> Principal:
        return authenticate(request)


def answer_at_once(exchange: Exchange, headers: Headers) -> Reply | None:
    """The reply that needs neither a thread nor the database, for a caller known a moment ago."""
    # A session may be over, and only its store knows.
    is_plain = exchange.verb == "POST" and exchange.session_id is None
    if not is_plain or not loaded.is_known_to_be_empty:
        return None
    if not (exchange.is_constant or lists_tools(exchange)):
        return None
    principal = cached_principal(headers)
    if principal is None:
        return None
    known = known_decisions(principal.server)
    if known is None or not lets_in(known, principal):
        return None
    # For the handlers: a second question could be one too late for an event loop.
    principal.kept[Decisions] = known
    # Throttles of the site keep their counts in a cache, which may be far away. And of a refusal
    # receivers of signals hear, which may ask the database.
    if get_config().throttles or is_first_refusal(principal):
        return None
    service = Service(exchange=exchange, request=no_request(), cancelled=Event())
    if exchange.is_constant:
        outcome = service.reply_to(principal)
        assert isinstance(outcome, Reply)  # noqa: S101  constant methods are never pending
        return outcome
    result = kept_list(principal, exchange.requests[0].request.params)
    return None if result is None else service.reply_with(principal, result)


@cache
def no_request() -> HttpRequest:
    """Nothing that is answered at once looks at its request, so all have one."""
    return HttpRequest()


def lists_tools(exchange: Exchange) -> bool:
    methods = [call.request.method for call in exchange.requests]
    return not exchange.is_batch and methods == ["tools/list"]

"""Streamable HTTP: the endpoint as an ASGI application, for Channels' routers or alone.

It is no Channels consumer on purpose: a consumer that awaits its handler hears neither a
disconnect nor a message meanwhile, and costs several times as much on a small call.
"""

from __future__ import annotations

from threading import Event
from typing import Any, TypeAlias

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from mcp_django.auth.authenticate import cached_principal, caller_of, lacks_credential, lets_in
from mcp_django.auth.throttles import is_first_refusal
from mcp_django.conf import get_config
from mcp_django.exposure.decisions import decisions_of_loop, known_decisions
from mcp_django.handlers.tools import kept_list
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.negotiation import Envelope
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.bodies import Body, Disconnected, TooSlow
from mcp_django.transports.call import CallStream, RunningCall
from mcp_django.transports.endpoint import (
    answer_to_browser,
    check_host_and_origin,
    cors_headers,
    evidence_revision,
    understand,
    unidentified,
)
from mcp_django.transports.event_stream import EventStream, ResumedStream
from mcp_django.transports.exchanges import (
    Call,
    Exchange,
    Reply,
    StreamSpec,
    busy,
    crashed,
    refuse,
)
from mcp_django.transports.hub import TooManyStreams
from mcp_django.transports.middleware import loaded
from mcp_django.transports.notifier import Reader
from mcp_django.transports.requests import build_request
from mcp_django.transports.responses import Receive, ResponseStream, Send
from mcp_django.transports.serving import RESUMED, Service

Scope: TypeAlias = dict[str, Any]


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
        body: Body | None = None
        try:
            headers = Headers(scope["headers"])
            body = Body(receive, headers, limit=get_config().max_body)
            # Later versions of HTTP end each request by itself.
            stream.closes = body.is_expected and scope["http_version"].startswith("1")
            refusal = check_host_and_origin(headers, scope.get("query_string", b""))
            refusal = refusal or answer_to_browser(scope["method"], headers)
            stream.cors = cors_headers(headers)
            if refusal is not None:
                await stream.reply(refusal)
                return
            if lacks_credential(headers):
                content = None
                exchange = unidentified(scope["method"], revision=self.revision_of(headers))
            else:
                content = await body.read()
                exchange = self.understand(scope, headers, content)
            stream.is_to_stream = not exchange.accepted.json
            if body.is_expected:
                receive = body.receive
            else:
                stream.closes = False
            opened = await self.serve_post(
                scope, exchange, content or b"", headers, receive, stream
            )
            if opened is not None:
                # It may stay open for days. What asked for it is of no use any more.
                exchange = asked_for(opened.spec)
                del headers, content
                await opened.run(receive)
        except Disconnected:
            stream.closes = False
        except Exception as error:
            # Out of here an exception would stop Daphne's watch over all its connections.
            await stream.reply(failure(error, exchange))
        finally:
            if stream.closes and body is not None:
                await body.drop()
            await stream.end()

    def revision_of(self, headers: Headers) -> Revision:
        """The revision that errors about the whole request are written in."""
        return evidence_revision(headers)

    def understand(self, scope: Scope, headers: Headers, body: bytes | None) -> Exchange:
        """What is asked for. `body` is None where it is too long."""
        return understand(scope["method"], headers, body)

    async def serve_post(
        self,
        scope: Scope,
        exchange: Exchange,
        body: bytes,
        headers: Headers,
        receive: Receive,
        stream: ResponseStream,
    ) -> EventStream | None:
        """Answer, or return the stream that is the answer: it runs until it is over."""
        reply = answer_at_once(exchange, headers)
        if reply is not None:
            await stream.reply(reply)
            return None

        def make(**run: Any) -> Service:
            streams = exchange.accepted.stream
            return Service(request=build_request(scope, body), streams=streams, **run)

        call = RunningCall(exchange, make=make, caller=caller_in(scope, headers))
        call.start()
        reply = await CallStream(call, stream).follow(receive)
        if reply is None or reply.opens is None:
            return None
        stream.headers = reply.headers
        kind = ResumedStream if reply.opens.kind == RESUMED else EventStream
        return kind(reply.opens, stream, source=Reader(scope))


def failure(error: Exception, exchange: Exchange) -> Reply:
    """Inside an `except`: the answer where the exchange came to nothing."""
    if isinstance(error, TooManyStreams):
        return busy(exchange)
    if isinstance(error, TooSlow):
        refused = ProtocolError(INVALID_REQUEST, "The body did not come in time.", status=408)
        return refuse(refused, id_optional=True)
    return crashed(exchange)


def asked_for(spec: StreamSpec) -> Exchange:
    """What errors need of an exchange that opened a stream: the id and the revision."""
    if spec.request_id is None:
        return Exchange(revision=spec.revision)
    request = Request(id=spec.request_id, method="subscriptions/listen")
    call = Call(request=request, envelope=Envelope(revision=spec.revision))
    return Exchange(calls=(call,), revision=spec.revision)


def caller_in(scope: Scope, headers: Headers) -> str:
    """Whose share of the threads the request takes."""
    # A server behind a socket of its own names no client.
    address, _ = scope.get("client") or ("", 0)
    return caller_of(headers, address)


def answer_at_once(exchange: Exchange, headers: Headers) -> Reply | None:
    """The reply that needs neither a thread nor the database, for a caller known a moment ago."""
    # A session may be over, and only its store knows.
    is_plain = exchange.verb == "POST" and exchange.session_id is None
    if not is_plain or not loaded.is_known_to_be_empty:
        return None
    methods = [call.request.method for call in exchange.requests]
    lists_tools = not exchange.is_batch and methods == ["tools/list"]
    if not (exchange.is_constant or lists_tools):
        return None
    principal = cached_principal(headers)
    if principal is None:
        return None
    known = known_decisions(principal.server)
    if known is None or not lets_in(known, principal):
        return None
    # For the handlers: a second question could be one too late for an event loop.
    decisions_of_loop.of(principal)[None] = known
    # Throttles of the site keep their counts in a cache, which may be far away. And of a refusal
    # receivers of signals hear, which may ask the database.
    if get_config().throttles or is_first_refusal(principal):
        return None
    if exchange.is_constant:
        reply = constant_service(exchange).reply_to(principal)
        assert isinstance(reply, Reply)  # noqa: S101  constant methods are never pending
        return reply
    result = kept_list(principal, exchange.requests[0].request.params)
    return None if result is None else constant_service(exchange).reply_with(principal, result)


def constant_service(exchange: Exchange) -> Service:
    # Nothing that is answered at once looks at its request: most are never made.
    request: Any = SimpleLazyObject(HttpRequest)
    return Service(exchange=exchange, request=request, cancelled=Event())

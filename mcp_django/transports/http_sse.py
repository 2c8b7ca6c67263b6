"""HTTP+SSE, the transport of 2024-11-05: one address for a stream, and one to post messages to.

The stream is the session. Whatever a POST asks for is answered there, by whichever process.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, quote

from django.http import HttpRequest

from mcp_django.conf import get_config
from mcp_django.exceptions import Busy
from mcp_django.handlers.dispatch import Answer
from mcp_django.principal import Principal
from mcp_django.protocol.envelope import Envelope
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.jsonrpc import Batch, Request, decode
from mcp_django.protocol.methods import served
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.chosen import get_store
from mcp_django.stores.interface import Log
from mcp_django.subscriptions.events import LISTS
from mcp_django.transports.calls import RunningCall
from mcp_django.transports.endpoint import check_body, check_verb, refused
from mcp_django.transports.exchanges import Call, Exchange, Opening, Reply
from mcp_django.transports.hub import TooManyStreams, get_hub
from mcp_django.transports.openings import HTTP_SSE
from mcp_django.transports.posted_calls import PostedCall
from mcp_django.transports.refusals import busy
from mcp_django.transports.requests import build_request
from mcp_django.transports.serving import Service, reply_of
from mcp_django.transports.session_streams import SessionStream, index_of
from mcp_django.transports.sessions import agree, new_id, new_session
from mcp_django.transports.streamable_http import HTTPReader, MCPApplication, Scope
from mcp_django.transports.streams import Receive, ResponseStream

#: What follows the path of the endpoint.
STREAM, MESSAGES = "sse", "messages"
#: How errors are written, and which revision is spoken, before a handshake.
FIRST = next(iter(Revision))
SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
#: Fields of a query string. Ours has one.
MOST_FIELDS = 20
BEFORE_HANDSHAKE = frozenset({"initialize", "ping"})


class HTTPSSEApplication(MCPApplication):
    """Serves both addresses, told apart by how their paths end: `/sse` and `/messages`."""

    def understand(self, scope: Scope, headers: Headers, body: bytes | None) -> Exchange:
        verb, is_stream = scope["method"], last_segment(scope["path"]) == STREAM
        verbs = ("GET",) if is_stream else ("POST",)
        try:
            check_verb(verb, headers, verbs=verbs)
            if is_stream:
                return Exchange(verb=verb, revision=FIRST)
            check_body(headers, body)
            session_id = session_id_of(scope.get("query_string", b""))
            return parse(body or b"", session_id=session_id)
        except ProtocolError as error:
            return refused(error, revision=FIRST, verbs=verbs)

    async def answer(
        self,
        scope: Scope,
        exchange: Exchange,
        body: bytes,
        headers: Headers,
        receive: Receive,
        stream: ResponseStream,
    ) -> None:
        owner = get_hub().key

        def prepare(running: RunningCall, sent_input: InputParams) -> Service:
            return SessionService(
                exchange=exchange,
                request=build_request(scope, body),
                cancelled=running.cancelled,
                notify=running.notify,
                tell_session=running.tell_session,
                sent_input=sent_input,
                accept=call.accept,
                owner=owner,
            )

        call = PostedCall(exchange, prepare=prepare)
        try:
            call.start()
        except Busy:
            await stream.reply(busy(exchange))
            return
        if exchange.verb == "GET":
            await open_stream(await call.reply(), scope, exchange, receive, stream)
        else:
            await call.post(stream)


async def open_stream(
    reply: Reply, scope: Scope, exchange: Exchange, receive: Receive, stream: ResponseStream
) -> None:
    if reply.opens is None:
        await stream.reply(reply)
        return
    stream.headers = reply.headers
    try:
        await SessionStream(reply.opens, stream, source=HTTPReader(scope)).run(receive)
    except TooManyStreams:
        await stream.reply(busy(exchange))


def last_segment(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def session_id_of(query: bytes) -> str:
    """The one in the query string, which is ASCII. Raises ProtocolError with status 400."""
    try:
        found = parse_qs(query.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        found = {}
    ids = found.get("session_id", [])
    if len(ids) != 1 or not SESSION_ID.fullmatch(ids[0]):
        raise ProtocolError(
            INVALID_REQUEST, "Post to the address that the endpoint event named.", status=400
        )
    return ids[0]


def parse(body: bytes, *, session_id: str) -> Exchange:
    """One message, in whatever revision its session speaks: headers say nothing about that."""
    config = get_config()
    received = decode(body, max_depth=config.max_depth, max_batch=config.max_batch)
    if isinstance(received, Batch):
        raise ProtocolError(INVALID_REQUEST, "Post one message at a time.", status=400)
    if isinstance(received, Request):
        call = Call(request=received, envelope=Envelope(revision=FIRST))
        return Exchange(calls=(call,), session_id=session_id, revision=FIRST)
    return Exchange(notices=(received,), session_id=session_id, revision=FIRST)


def endpoint_of(request: HttpRequest, session_id: str) -> str:
    """Where a stream's client posts. Without a host: it is the one that the client asked."""
    # The specification has the prefix in the path. Not every server does.
    prefix = request.META["SCRIPT_NAME"].rstrip("/")
    path = prefix + request.path.removeprefix(prefix).rstrip("/")
    # One slash at the start: two would name another host.
    base = quote(path.rpartition("/")[0].strip("/"))
    path = f"/{base}/{MESSAGES}" if base else f"/{MESSAGES}"
    return f"{path}?session_id={session_id}"


@dataclass(frozen=True, kw_only=True)
class SessionService(Service):
    """In the hop: a stream is a new session, and a POST is for the session that it names."""

    transport: str = HTTP_SSE
    #: Told once nothing can be wrong with the POST itself any more.
    accept: Callable[[], None]
    #: The hub that will have the stream.
    owner: str

    def open_stream(self, principal: Principal) -> Opening:
        session_id = new_id()
        session = new_session(principal, transport=self.transport, session_id=session_id)
        store = get_store()
        store.add_session(session)
        store.open_log(Log(key=index_of(session.key), session=session.key, owner=self.owner))
        return Opening(
            kind=HTTP_SSE,
            principal=principal,
            revision=FIRST,
            lists=LISTS,
            session=session.key,
            endpoint=endpoint_of(self.request, session_id),
        )

    def accept_calls(self) -> None:
        self.accept()
        method = self.exchange.requests[0].request.method
        has_begun = bool(self.required_session.client)
        if has_begun and method == "initialize":
            raise ProtocolError(INVALID_REQUEST, "This session was initialized before.")
        if not has_begun and method not in BEFORE_HANDSHAKE:
            served(method, self.exchange.revision)
            raise ProtocolError(INVALID_REQUEST, "Send initialize first.")

    def reply_with_session(self, principal: Principal, call: Call, answered: Answer) -> Reply:
        agree(self.required_session, call.request.params)
        return reply_of(answered)

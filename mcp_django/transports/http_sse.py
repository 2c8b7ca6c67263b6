"""HTTP+SSE, the transport of 2024-11-05: one address for a stream, and one to post messages to.

The stream is the session. Each POST is answered there, whichever process it arrives in.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote

from django.http import HttpRequest

from mcp_django.conf import get_config
from mcp_django.context import OutsideTransaction
from mcp_django.handlers.dispatch import Answer
from mcp_django.principal import Principal
from mcp_django.protocol import sse
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.jsonrpc import Batch, Request, RequestId, decode, encode_error, encoder
from mcp_django.protocol.methods import served
from mcp_django.protocol.negotiation import Envelope
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.sessions import Session, Store, StoreFull, get_store
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import LISTS, Change
from mcp_django.transports.call import RunningCall
from mcp_django.transports.call_log import log_topic, read_log
from mcp_django.transports.endpoint import check_body, check_verb, read_soon, refused
from mcp_django.transports.event_stream import EventStream
from mcp_django.transports.exchanges import Call, Exchange, Reply, StreamSpec
from mcp_django.transports.notifier import Reader
from mcp_django.transports.requests import build_request
from mcp_django.transports.responses import Receive, ResponseStream
from mcp_django.transports.serving import HTTP_SSE, Service, reply_of
from mcp_django.transports.sessions import (
    agree,
    end_session,
    in_store,
    new_id,
    new_session,
    not_found,
    try_store,
    work_topic,
)
from mcp_django.transports.streamable_http import MCPApplication, Scope, caller_in

# The stream of an HTTP+SSE session, which begins and ends with it.


def index_of(session: str) -> str:
    """The log in which other processes name the logs of their calls."""
    return f"i-{session[:32]}"


class SessionStream(EventStream):
    """It has the key of its session, and answers calls that are posted to this process.

    Other processes write what they answer to logs, one for each call. See `Relay`.
    """

    def __init__(self, spec: StreamSpec, response: ResponseStream, *, source: Reader) -> None:
        super().__init__(spec, response, source=source)
        self.key = spec.session
        #: Calls that are not answered yet.
        self.calls: set[PostedCall] = set()
        #: Bytes of answers that wait for the client to read what came before them.
        self.unsent = 0
        self._has_answered = False
        #: The last event that was read of the index, and of each log that it names.
        self._indexed = 0
        self._logs: dict[str, int] = {}

    async def run(self, receive: Receive) -> None:
        """Until the client leaves or the server ends it, and the session with it.

        Raises TooManyStreams before it began.
        """
        try:
            with self.hub.when(self.nudge, log_topic(index_of(self.key))):
                await self._run(receive)
        finally:
            publish({Change(topic=work_topic(self.key))})
            self.hub.keep(try_store(lambda store: end_session(self.key)))

    async def say(self, messages: Sequence[bytes]) -> None:
        """Send messages, each whole, as soon as the client reads. After the end: nothing."""
        size = sum(map(len, messages))
        self.unsent += size
        try:
            await self._send(messages)
        finally:
            self.unsent -= size
        if messages and not self._has_answered:
            self._has_answered = True
            self.wake()

    async def end_call(self, messages: Messages, *, request: RequestId) -> None:
        """Send the answer, or an error where there is no room for it. A call that the client took
        back has none.
        """
        if self.unsent and self.unsent + sum(map(len, messages)) > MOST_UNSENT:
            error = ProtocolError(INTERNAL_ERROR, UNREAD, request_id=request)
            messages = (encode_error(error, id_optional=False),)
        await self.say(messages)

    def take(self) -> tuple[str, ...]:
        """Changes wait for the first answer: until the handshake a client expects no other."""
        return super().take() if self._has_answered else ()

    async def _greet(self) -> None:
        # Not a comment first, as elsewhere: old clients take the first lines for the endpoint.
        frame = sse.encode_event(self.spec.endpoint.encode(), event="endpoint")
        await self.response.frames(frame)

    def _frame(self, message: bytes) -> bytes:
        return sse.encode_event(message)

    async def _keep_alive(self) -> None:
        await super()._keep_alive()
        self.nudge()

    async def _follow(self, session: Session) -> None:
        if session.revision != self.spec.revision.value or not self.spec.client:
            self.spec = replace(
                self.spec,
                revision=Revision(session.revision),
                client=str(session.client.get("name", ""))[:200],
            )
            # Unless it ended meanwhile.
            if self.hub.find(self.key) is self:
                self._show()

    # What other processes have for it

    async def _look(self) -> None:
        try:
            messages = await in_store(self._collect)
        except Exception:
            # The next sign of life is the next look.
            logger.exception("Answers of other processes cannot be read.")
            return
        if messages is None:
            self.end()
        else:
            await self.say(messages)

    # In the thread

    def _collect(self, store: Store) -> list[bytes] | None:
        """What was not read yet. None: the session is over, or cannot go on."""
        page = store.read(index_of(self.key), session=self.key, after=self._indexed)
        if page is None or page.has_gap:
            return None
        for event in page.events:
            self._indexed = event.number
            self._logs[event.data.decode()] = 0
        return [message for key in list(self._logs) for message in self._read_log(store, key)]

    def _read_log(self, store: Store, key: str) -> list[bytes]:
        page = read_log(store, key, session=self.key, after=self._logs[key], id_optional=False)
        if page is None or page.is_final:
            del self._logs[key]
        elif page.events:
            self._logs[key] = page.events[-1].number
        return [] if page is None else [event.data for event in page.events]


# Calls that are posted: the POST is answered at once, the call on the stream of its session.

logger = logging.getLogger("mcp_django.streams")

#: Calls of one session whose answers are not sent yet.
MOST_CALLS = 60
#: Bytes of answers of one session that wait for its client to read.
MOST_UNSENT = 4 * 1024 * 1024
#: Seconds before a store that failed is asked again: a client waits for the answer.
PAUSES = (0.5, 2.0, 8.0)
#: Later than any event.
LAST = 2**62
UNREAD = (
    "The call ran, and its answer was dropped, since too many answers wait to be read. Read the "
    "stream, and ask again."
)

Messages: TypeAlias = tuple[bytes, ...]


class PostedCall(RunningCall):
    _route: SessionStream | Relay | None = None

    def accept(self, session: Session, outside_transaction: OutsideTransaction) -> None:
        """In the thread: from here on the answer belongs on the stream.

        Raises ProtocolError where there is none, or where too many answers are on their way.
        """
        # A call that runs again, with answers, was accepted before.
        if self._route is not None:
            return
        stream = self.hub.find(session.key)
        if not isinstance(stream, SessionStream):
            request_id = self.exchange.requests[0].request.id
            relay = Relay(session, owner=self.hub.key, request=request_id)
            relay.check(outside_transaction)
            outside_transaction(relay.open)
            self._route = relay
        elif len(stream.calls) >= MOST_CALLS or stream.unsent >= MOST_UNSENT:
            raise too_many()
        else:
            stream.calls.add(self)
            self._route = stream
        topic = work_topic(session.key)
        self.hub.call_back(topic, self.cancel)
        self._topics.append(topic)
        self.waker.wake_soon()

    async def post(self, stream: ResponseStream) -> None:
        """Say whether the call was accepted. It goes on whether the client waits or not."""
        try:
            while self._route is None and not self.is_over:
                await self.waker.wait()
        finally:
            self.hub.keep(self._answer())
        await stream.reply(self._outcome() if self._route is None else ACCEPTED)

    async def _answer(self) -> None:
        try:
            await self.pass_on(self._say)
            if self._route is not None:
                parts = self._outcome().parts
                # The route holds the answer from here on, or nobody does.
                del self._work
                await self._route.end_call(parts, request=self.exchange.requests[0].request.id)
        finally:
            if isinstance(self._route, SessionStream):
                self._route.calls.discard(self)
            self.forget()

    async def _say(self, messages: Sequence[bytes]) -> None:
        if messages and self._route is not None:
            await self._route.say(messages)

    def _outcome(self) -> Reply:
        return ACCEPTED if self.is_cancelled else self.result()


ACCEPTED = Reply(status=202)


def too_many() -> ProtocolError:
    return ProtocolError(
        INTERNAL_ERROR, "Too many calls of this session wait for their answers.", status=503
    )


class Relay:
    """The stream is in another process, which reads what is written here.

    Each call has a log of its own. It stays open until that process has read the answer, so that
    no store drops it. If this process ends first, the log ends with an error.
    """

    def __init__(self, session: Session, *, owner: str, request: str | int) -> None:
        self.index = index_of(session.key)
        self.key = secrets.token_urlsafe(18)
        self.session = session.key
        self.owner = owner
        self.request = encoder.encode(request).decode()

    def check(self, outside_transaction: OutsideTransaction) -> None:
        """In the thread. Raises ProtocolError where the stream is gone."""
        page = get_store().read(self.index, session=self.session, after=LAST)
        if page is None or page.is_orphaned:
            # The process that had the stream is gone, and the stream with it.
            outside_transaction(partial(end_session, self.session))
            raise not_found()

    def open(self) -> None:
        """In the thread. Raises ProtocolError."""
        store = get_store()
        try:
            store.open_log(self.key, session=self.session, owner=self.owner, request=self.request)
        except StoreFull:
            raise too_many() from None
        store.append(self.index, [self.key.encode()])

    async def end_call(self, messages: Messages, *, request: RequestId) -> None:
        # The store has its own bounds.
        await self.say(messages, is_final=not messages)

    async def say(self, messages: Sequence[bytes], *, is_final: bool = False) -> None:
        for pause in (*PAUSES, None):
            try:
                await in_store(lambda store: store.append(self.key, messages, is_final=is_final))
                break
            except Exception:
                logger.exception("A message does not reach the stream of its session.")
                if pause is not None:
                    await asyncio.sleep(pause)
        publish({Change(topic=log_topic(self.index))})


#: What follows the path of the endpoint.
STREAM, MESSAGES = "sse", "messages"
#: How errors are written, and which revision is spoken, before a handshake.
FIRST = next(iter(Revision))
SESSION_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class HTTPSSEApplication(MCPApplication):
    """Serves both addresses, by how their paths end: `/sse` and `/messages`."""

    def revision_of(self, headers: Headers) -> Revision:
        return FIRST

    def understand(self, scope: Scope, headers: Headers, body: bytes | None) -> Exchange:
        verb, is_stream = scope["method"], scope["path"].rstrip("/").endswith(f"/{STREAM}")
        verbs = ("GET",) if is_stream else ("POST",)
        try:
            check_verb(verb, headers, verbs=verbs)
            if is_stream:
                return Exchange(verb=verb, revision=FIRST)
            check_body(headers, body)
            session_id = session_id_of(scope.get("query_string", b""))
        except ProtocolError as error:
            return refused(error, revision=FIRST, verbs=verbs)
        return read_soon(partial(parse, session_id=session_id), body or b"", revision=FIRST)

    async def serve_post(
        self,
        scope: Scope,
        exchange: Exchange,
        body: bytes,
        headers: Headers,
        receive: Receive,
        stream: ResponseStream,
    ) -> EventStream | None:
        def make(**run: Any) -> Service:
            return SessionService(request=build_request(scope, body), call=call, **run)

        call = PostedCall(exchange, make=make, caller=caller_in(scope, headers))
        call.start()
        if exchange.verb != "GET":
            await call.post(stream)
            return None
        reply = await call.reply()
        if reply.opens is None:
            await stream.reply(reply)
            return None
        stream.headers = reply.headers
        return SessionStream(reply.opens, stream, source=Reader(scope))


def session_id_of(query: bytes) -> str:
    """The one in the query string, which is ASCII. Raises ProtocolError with status 400."""
    try:
        # Ours has one field.
        fields = parse_qs(query.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        fields = {}
    ids = fields.get("session_id", [])
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
    call: PostedCall

    def open_stream(self, principal: Principal) -> StreamSpec:
        session_id = new_id()
        session = new_session(principal, transport=self.transport, session_id=session_id)
        self.outside_transaction(partial(begin_stream, session, owner=self.call.hub.key))
        return StreamSpec(
            kind=HTTP_SSE,
            principal=principal,
            revision=FIRST,
            lists=LISTS,
            session=session.key,
            endpoint=endpoint_of(self.request, session_id),
        )

    def accept_calls(self) -> None:
        # Nothing can be wrong with the POST itself any more.
        self.call.accept(self.required_session, self.outside_transaction)
        method = self.exchange.requests[0].request.method
        has_begun = bool(self.required_session.client)
        if has_begun and method == "initialize":
            raise ProtocolError(INVALID_REQUEST, "This session was initialized before.")
        if not has_begun and method not in ("initialize", "ping"):
            served(method, self.exchange.revision)
            raise ProtocolError(INVALID_REQUEST, "Send initialize first.")

    def reply_with_session(self, principal: Principal, call: Call, answered: Answer) -> Reply:
        self.outside_transaction(partial(agree, self.required_session, call.request.params))
        return reply_of(answered)


def begin_stream(session: Session, *, owner: str) -> None:
    """Keep the session, and the log in which other processes write to its stream."""
    store = get_store()
    store.add_session(session)
    store.open_log(index_of(session.key), session=session.key, owner=owner)

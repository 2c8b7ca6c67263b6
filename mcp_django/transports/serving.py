"""In the thread of a call: who calls, whether they may, and the answer in bytes."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import TypeVar

from django.http import HttpRequest

from mcp_django.audit.entries import log_data
from mcp_django.auth.authenticate import authenticate, challenge, check_switches
from mcp_django.auth.throttles import calls, site_retry_after
from mcp_django.connections import current_schemas
from mcp_django.context import CallContext, Notify, OutsideTransaction, at_once, drop, stay_open
from mcp_django.exceptions import (
    AuthenticationFailed,
    Cancelled,
    Closed,
    ServiceUnavailable,
    TooManyRequests,
)
from mcp_django.handlers.dispatch import Answer, PendingAnswer, answer, server_info
from mcp_django.handlers.recording import record_limited
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import encode_error, is_id
from mcp_django.protocol.negotiation import meta_of
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.render import acknowledged, notification, with_subscription
from mcp_django.protocol.results import ListenResult, Result
from mcp_django.protocol.revisions import Revision
from mcp_django.protocol.sse import parse_event_id
from mcp_django.stores.sessions import Session, Store, get_store
from mcp_django.subscriptions.topics import LISTS, Uris, by_topic
from mcp_django.transports.call_log import may_read
from mcp_django.transports.exchanges import (
    NO_STORE,
    Call,
    Exchange,
    HeaderList,
    Outcome,
    Reply,
    StreamSpec,
    closed,
    refuse_exchange,
    run_async,
)
from mcp_django.transports.requests import forget_credential, known, own_copy
from mcp_django.transports.sessions import HEADER as SESSION_HEADER
from mcp_django.transports.sessions import (
    agreed,
    apply_notifications,
    as_agreed,
    end_session,
    find_session,
    new_id,
    new_session,
    note_session_use,
)

logger = logging.getLogger("mcp_django")

T = TypeVar("T")

STREAMABLE_HTTP = "streamable_http"

NO_INPUT = InputParams()


def ignore(*args: object) -> None:
    """For transports that keep nothing beyond the answer."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """One HTTP request being served, in whatever thread it is."""

    exchange: Exchange
    request: HttpRequest
    cancelled: Event
    notify: Notify = drop
    #: Whether the transport can send anything before the answer, and has sessions.
    streams: bool = True
    transport: str = STREAMABLE_HTTP
    #: Who calls, or what `authenticate` raises.
    recognize: Callable[[HttpRequest], Principal] = authenticate
    #: The session that the request came in, once it was found.
    session: Session | None = None
    #: Told in the thread which one that is, and who came.
    tell_session: Callable[[Session, Principal], None] = ignore
    #: Told in the thread what a long body asks for.
    tell_exchange: Callable[[Exchange], None] = ignore
    #: Lets the call close its stream and be resumed.
    release_stream: Callable[[int], None] = stay_open
    outside_transaction: OutsideTransaction = at_once
    #: Answers of the client to what this call asked, when it runs again with them.
    sent_input: InputParams = NO_INPUT

    def respond(self) -> Outcome:
        """Identify the caller and answer. Raises Cancelled when nobody waits any more."""
        principal = self.identify()
        return principal if isinstance(principal, Reply) else self.serve(principal)

    def identify(self) -> Principal | Reply:
        try:
            principal = self.recognize(self.request)
            check_switches(principal)
            return principal
        except AuthenticationFailed as error:
            headers = tuple(("WWW-Authenticate", value) for value in challenge(error))
            return self.refuse(error.description, status=401, headers=headers)
        except TooManyRequests as error:
            return self.too_many(error.retry_after)
        except Closed:
            return closed(self.exchange)
        except ServiceUnavailable as error:
            logger.error("Nobody can be served: %s", error)
            return self.refuse(error.description, status=503, code=INTERNAL_ERROR)

    def serve(self, principal: Principal) -> Outcome:
        """Answer a caller who is known."""
        principal = own_copy(principal)
        forget_credential(self.request)
        self.request.user = principal.user
        self.request.auser = partial(known, principal.user)
        if self.exchange.read_body is not None and (wait := calls.wait(principal.key)) is not None:
            return self.too_many(wait)
        if self.exchange.read_body is None:
            return self.reply_to(principal)
        exchange = self.exchange.read_body()
        self.tell_exchange(exchange)
        return replace(self, exchange=exchange).reply_to(principal)

    def reply_to(self, principal: Principal) -> Outcome:
        if self.exchange.refusal is not None:
            # To find out what is wrong took time as well.
            return self.throttle(principal) or self.exchange.refusal
        try:
            service = self.in_session(principal)
        except ProtocolError as error:
            return self.throttle(principal) or refuse_exchange(self.exchange, error)
        try:
            return service.throttle(principal) or service.reply_in_session(principal)
        except ProtocolError as error:
            return refuse_exchange(self.exchange, error)

    def in_session(self, principal: Principal) -> Service:
        """The same request, as its session has it. Raises ProtocolError where there is none."""
        session_id = self.exchange.session_id
        if session_id is None:
            return self
        session = find_session(session_id, principal, transport=self.transport)
        self.outside_transaction(partial(note_session_use, session))
        self.tell_session(session, principal)
        return replace(self, session=session, exchange=as_agreed(self.exchange, session))

    def reply_in_session(self, principal: Principal) -> Outcome:
        exchange = self.exchange
        if exchange.verb == "DELETE":
            self.outside_transaction(partial(end_session, self.required_session.key))
            return Reply(status=204)
        if exchange.verb == "GET":
            return Reply(opens=self.open_stream(principal))
        if self.session is not None:
            self.outside_transaction(partial(apply_notifications, self.session, exchange.notices))
        if not exchange.calls:
            return Reply(status=202)
        self.accept_calls()
        if exchange.is_batch:
            return self.serve_batch(principal)
        call = exchange.requests[0]
        answered = self.dispatch(principal, call)
        if isinstance(answered, PendingAnswer):
            settle = answered.settle
            return replace(answered, settle=lambda returned: reply_of(settle(returned)))
        if answered.opens is not None:
            return Reply(opens=open_listening(principal, call, answered.opens, answered.body))
        if call.request.method == "initialize" and self.streams and not answered.is_error:
            return self.reply_with_session(principal, call, answered)
        return reply_of(answered)

    def open_stream(self, principal: Principal) -> StreamSpec:
        return open_standalone(self.required_session, principal, self.exchange.last_event_id)

    def accept_calls(self) -> None:
        """Nothing is wrong with the HTTP request itself. May raise ProtocolError all the same."""

    @property
    def required_session(self) -> Session:
        if self.session is None:
            raise ProtocolError(INVALID_REQUEST, "Send Mcp-Session-Id.", status=400)
        return self.session

    def reply_with_session(self, principal: Principal, call: Call, answered: Answer) -> Reply:
        session_id = new_id()
        session = new_session(principal, transport=self.transport, session_id=session_id)
        session = replace(session, **agreed(call.request.params))
        self.outside_transaction(partial(get_store().add_session, session))
        reply = reply_of(answered)
        return replace(reply, headers=(*reply.headers, (SESSION_HEADER, session_id)))

    def reply_with(self, principal: Principal, result: Result) -> Reply:
        """A result that is known already, as the answer to a single request."""
        if (refusal := self.throttle(principal)) is not None:
            return refusal
        answered = self.dispatch(principal, self.exchange.requests[0], known=result)
        assert isinstance(answered, Answer)  # noqa: S101  a result is not pending
        return reply_of(answered)

    def throttle(self, principal: Principal) -> Reply | None:
        """The refusal of more calls than are allowed. Each element of a batch is one."""
        if self.sent_input is not NO_INPUT:
            # The same call again. It was counted when it came.
            return None
        if not self.exchange.requests and (wait := calls.take(principal.key)) is not None:
            return self.too_many(wait)
        for call in self.exchange.requests:
            wait = calls.take(principal.key) or site_retry_after(
                self.request, principal, method=call.request.method
            )
            if wait is not None:
                record_limited(self.context_of(principal, call), call.request)
                return self.too_many(wait)
        return None

    def serve_batch(self, principal: Principal) -> Reply:
        """All answers of a batch, one after the other, as JSON-RPC allows."""
        parts: list[bytes] = []
        for call in self.exchange.calls:
            if self.cancelled.is_set():
                raise Cancelled
            if isinstance(call, ProtocolError):
                parts.append(encode_error(call, id_optional=False))
            else:
                parts.append(self.wait_for(self.dispatch(principal, call)).body)
        status = 200 if self.exchange.requests else 400
        return Reply(status=status, parts=tuple(parts), is_batch=True, headers=NO_STORE)

    def dispatch(
        self, principal: Principal, call: Call, *, known: Result | None = None
    ) -> Answer | PendingAnswer:
        context = self.context_of(principal, call)
        return answer(context, call.request, server_info(streams=self.streams), known=known)

    def context_of(self, principal: Principal, call: Call) -> CallContext:
        token = meta_of(call.request).get("progressToken")
        return CallContext(
            request=self.request,
            principal=principal,
            revision=call.envelope.revision,
            client=call.envelope.client,
            capabilities=call.envelope.capabilities,
            sent_params=call.envelope.sent_params,
            request_id=call.request.id,
            streams=self.streams,
            session="" if self.session is None else self.session.key,
            log_level=call.envelope.log_level,
            tell=log_data,
            # An answer within a batch could come before its question.
            can_request=self.session is not None
            and self.exchange.accepted.names_stream
            and not self.exchange.is_batch,
            sent_input=self.sent_input,
            release_stream=self.release_stream,
            outside_transaction=self.outside_transaction,
            progress_token=token if is_id(token) else None,
            notify=self.notify,
            cancelled=self.cancelled,
        )

    def wait_for(self, outcome: T | PendingAnswer) -> T:
        """Run an async tool to its end in this thread, where no loop can take it."""
        if not isinstance(outcome, PendingAnswer):
            return outcome
        settled: T = outcome.settle(partial(run_async, outcome.awaitable, self.cancelled))
        return settled

    def too_many(self, seconds: float) -> Reply:
        headers = (("Retry-After", str(math.ceil(seconds))),)
        return self.refuse(
            f"Too many requests. Try again in {math.ceil(seconds)} seconds.",
            status=429,
            code=INTERNAL_ERROR,
            headers=headers,
        )

    def refuse(
        self, sentence: str, *, status: int, code: int = INVALID_REQUEST, headers: HeaderList = ()
    ) -> Reply:
        """A refusal of the whole HTTP request. It carries the id of the one request, if any."""
        return refuse_exchange(
            self.exchange, ProtocolError(code, sentence, status=status), headers=headers
        )


def reply_of(answered: Answer) -> Reply:
    if answered.asks is not None:
        return Reply(asks=answered.asks)
    headers = (*NO_STORE, *answered.headers)
    return Reply(status=answered.status, parts=(answered.body,), headers=headers)


# The streams that a request may open.

LISTEN = "listen"
STANDALONE = "standalone"
RESUMED = "call"
HTTP_SSE = "http_sse"


def open_listening(
    principal: Principal, call: Call, result: ListenResult, ending: bytes
) -> StreamSpec:
    """The stream of a subscription. `ending` is the answer, which comes last."""
    revision = call.envelope.revision
    hello = with_subscription(acknowledged(result.honoured), result.subscription)
    return StreamSpec(
        kind=LISTEN,
        principal=principal,
        revision=revision,
        client=str(call.envelope.client.get("name", ""))[:200],
        lists=result.lists,
        uris=by_topic(result.uris),
        request_id=result.subscription,
        first=(notification(hello, revision),),
        last=(ending,),
    )


def open_standalone(
    session: Session, principal: Principal, last_event_id: str | None
) -> StreamSpec:
    """The standalone stream of a session, or one that resumes the stream of a call.

    Raises ProtocolError: status 400 for an id that is malformed, 404 for one of another session.
    """
    spec = StreamSpec(
        kind=STANDALONE,
        principal=principal,
        # Before the subscriptions are read.
        at=time.monotonic(),
        revision=Revision(session.revision),
        client=str(session.client.get("name", ""))[:200],
        session=session.key,
    )
    own = standalone_name(session.key)
    stream, number = (own, 0) if last_event_id is None else parse_event_id(last_event_id)
    if stream == own:
        # A legacy client is notified of every list, and of what it subscribed to.
        uris = subscribed_by(session.key, store=get_store())
        return replace(spec, lists=LISTS, uris=uris, after=number)
    page = get_store().read(stream, session=session.key, after=number)
    if page is None or not may_read(stream, principal):
        raise ProtocolError(INVALID_REQUEST, "There is nothing to resume.", status=404)
    return replace(spec, kind=RESUMED, schemas=current_schemas(), log=stream, after=number)


def subscribed_by(session: str, *, store: Store) -> Uris:
    return by_topic(sorted(store.subscriptions(session)))


def standalone_name(session: str) -> str:
    """A session has one such stream, so that a client may come back to it in any process."""
    return f"s-{session[:32]}"

"""Inside the hop: who asks, may they, and the answer in bytes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

from django.http import HttpRequest

from mcp_django.audit.told import told
from mcp_django.auth.authenticate import authenticate, challenge
from mcp_django.auth.site_throttles import site_retry_after
from mcp_django.auth.switches import check_switches
from mcp_django.auth.throttles import retry_after
from mcp_django.context import CallContext, Notify, drop, stay_open
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
from mcp_django.protocol.envelope import meta_of
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError
from mcp_django.protocol.jsonrpc import encode_error, is_id
from mcp_django.protocol.questions import InputParams
from mcp_django.protocol.results import Result
from mcp_django.stores.interface import Session
from mcp_django.transports.callers import forget_credential, known, own_copy
from mcp_django.transports.exchanges import NO_STORE, Call, Exchange, HeaderList, Opening, Reply
from mcp_django.transports.openings import open_listening, open_standalone
from mcp_django.transports.pending_replies import Outcome, PendingReply, run_async
from mcp_django.transports.refusals import closed, refuse_exchange
from mcp_django.transports.sessions import HEADER as SESSION_HEADER
from mcp_django.transports.sessions import (
    as_agreed,
    begin_session,
    end_session,
    find_session,
    heed,
    new_id,
)

logger = logging.getLogger("mcp_django")

STREAMABLE_HTTP = "streamable_http"
#: Characters of a progress token, which every progress event repeats.
LONGEST_TOKEN = 256

NO_INPUT = InputParams()


def nobody(session: Session, principal: Principal) -> None:
    """For transports that keep nothing of a session beyond the answer."""


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
    recognise: Callable[[HttpRequest], Principal] = authenticate
    #: The session that the request came in, once it was found.
    session: Session | None = None
    #: Told in the thread which one that is, and who came.
    tell_session: Callable[[Session, Principal], None] = nobody
    #: Lets the call close its stream and be resumed.
    release_stream: Callable[[int], None] = stay_open
    #: Answers of the client to what this call asked, when it runs again with them.
    sent_input: InputParams = NO_INPUT

    def respond(self) -> Outcome:
        """Identify the caller and answer. Raises Cancelled when nobody waits any more."""
        principal = self.identify()
        return principal if isinstance(principal, Reply) else self.serve(principal)

    def identify(self) -> Principal | Reply:
        try:
            principal = self.recognise(self.request)
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
            return self.refuse("This server is not set up.", status=503, code=INTERNAL_ERROR)

    def serve(self, principal: Principal) -> Outcome:
        """Answer a caller who is known."""
        principal = own_copy(principal)
        forget_credential(self.request)
        self.request.user = principal.user
        self.request.auser = partial(known, principal.user)
        return self.reply_to(principal)

    def reply_to(self, principal: Principal) -> Outcome:
        if self.exchange.refusal is not None:
            return self.exchange.refusal
        try:
            return self.in_session(principal).reply_in_session(principal)
        except ProtocolError as error:
            return refuse_exchange(self.exchange, error)

    def in_session(self, principal: Principal) -> Service:
        """The same request, as its session has it. Raises ProtocolError where there is none."""
        session_id = self.exchange.session_id
        if session_id is None:
            return self
        session = find_session(session_id, principal, transport=self.transport)
        self.tell_session(session, principal)
        return replace(self, session=session, exchange=as_agreed(self.exchange, session))

    def reply_in_session(self, principal: Principal) -> Outcome:
        exchange = self.exchange
        refusal = self.throttle(principal)
        if refusal is not None:
            return refusal
        if exchange.verb == "DELETE":
            end_session(self.required_session.key)
            return Reply(status=204)
        if exchange.verb == "GET":
            return Reply(opens=self.open_stream(principal))
        if self.session is not None:
            heed(self.session, exchange.notices)
        if not exchange.calls:
            return Reply(status=202)
        self.accept_calls()
        if exchange.is_batch:
            return self.serve_batch(principal)
        call = exchange.requests[0]
        answered = self.answer(principal, call)
        if isinstance(answered, PendingAnswer):
            settle = answered.settle
            return PendingReply(
                awaitable=answered.awaitable,
                settle=lambda returned: reply_of(settle(returned)),
                give_up=answered.give_up,
            )
        if answered.opens is not None:
            return Reply(opens=open_listening(principal, call, answered.opens, answered.body))
        if call.request.method == "initialize" and self.streams and not answered.is_error:
            return self.reply_with_session(principal, call, answered)
        return reply_of(answered)

    def open_stream(self, principal: Principal) -> Opening:
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
        begin_session(
            principal, call.request.params, transport=self.transport, session_id=session_id
        )
        reply = reply_of(answered)
        return replace(reply, headers=(*reply.headers, (SESSION_HEADER, session_id)))

    def reply_with(self, principal: Principal, result: Result) -> Reply:
        """A result that is known already, as the answer to a single request."""
        refusal = self.throttle(principal)
        if refusal is not None:
            return refusal
        answered = self.answer(principal, self.exchange.requests[0], known=result)
        assert isinstance(answered, Answer)  # noqa: S101  a result is not pending
        return reply_of(answered)

    def throttle(self, principal: Principal) -> Reply | None:
        """The refusal of more calls than are allowed. Each element of a batch is one."""
        if self.sent_input is not NO_INPUT:
            # The same call once more. What brought the answers was counted.
            return None
        if not self.exchange.requests and (wait := retry_after(principal)) is not None:
            return self.too_many(wait)
        for call in self.exchange.requests:
            wait = retry_after(principal) or site_retry_after(
                self.request, principal, method=call.request.method
            )
            if wait is not None:
                record_limited(self.context_of(principal, call), call.request)
                return self.too_many(wait)
        return None

    def serve_batch(self, principal: Principal) -> Reply:
        """All answers of a batch, one after the other, as JSON-RPC allows."""
        parts = []
        for call in self.exchange.calls:
            if self.cancelled.is_set():
                raise Cancelled
            if isinstance(call, ProtocolError):
                parts.append(encode_error(call, id_optional=False))
                continue
            answered = self.answer(principal, call)
            parts.append(self.wait_for(answered).body)
        status = 200 if self.exchange.requests else 400
        return Reply(status=status, parts=tuple(parts), is_batch=True, headers=NO_STORE)

    def answer(
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
            tell=told,
            # An answer within a batch could come before its question.
            can_request=self.session is not None and not self.exchange.is_batch,
            sent_input=self.sent_input,
            release_stream=self.release_stream,
            progress_token=token if is_id(token) and len(str(token)) <= LONGEST_TOKEN else None,
            notify=self.notify,
            cancelled=self.cancelled,
        )

    def wait_for(self, answered: Answer | PendingAnswer) -> Answer:
        """Run an async tool to its end in this thread, where no loop can take it."""
        if isinstance(answered, Answer):
            return answered
        return answered.settle(partial(run_async, answered.awaitable, self.cancelled))

    def finish(self, outcome: Outcome) -> Reply:
        """The same for a reply."""
        if isinstance(outcome, Reply):
            return outcome
        return outcome.settle(partial(run_async, outcome.awaitable, self.cancelled))

    def too_many(self, seconds: float) -> Reply:
        headers = (("Retry-After", str(math.ceil(seconds))),)
        return self.refuse(
            f"Too many requests. Try again in {math.ceil(seconds)} seconds.",
            status=429,
            code=INTERNAL_ERROR,
            headers=headers,
        )

    def refuse(
        self,
        sentence: str,
        *,
        status: int,
        code: int = INVALID_REQUEST,
        headers: HeaderList = (),
    ) -> Reply:
        """A refusal of the whole HTTP request. It carries the id of the one request, if any."""
        return refuse_exchange(
            self.exchange, ProtocolError(code, sentence, status=status), headers=headers
        )


def reply_of(answered: Answer) -> Reply:
    if answered.asks is not None:
        return Reply(asks=answered.asks)
    return Reply(status=answered.status, parts=(answered.body,), headers=NO_STORE)

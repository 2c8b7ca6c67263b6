"""One request to one answer in bytes, and the only place where exceptions become errors."""

from __future__ import annotations

import logging
import secrets
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import OperationalError

from mcp_django.audit.reasons import reason_of
from mcp_django.auth.throttles import exceeded, tool_calls
from mcp_django.conf import Config, get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Cancelled, InputNeeded, ToolError
from mcp_django.exposure.decisions import decisions, decisions_of_loop, has_fences
from mcp_django.exposure.limits import is_timeout
from mcp_django.exposure.primitives import Outcome, PendingCall
from mcp_django.handlers import completion, prompts, resources, subscriptions, tools
from mcp_django.handlers.recording import Recording
from mcp_django.handlers.telemetry import ActiveAwaitable
from mcp_django.models import CallRecord
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import Request, encode_error, encode_result
from mcp_django.protocol.methods import served
from mcp_django.protocol.negotiation import negotiate
from mcp_django.protocol.questions import INPUT, parse_input
from mcp_django.protocol.render import ServerInfo, render
from mcp_django.protocol.results import (
    DiscoverResult,
    EmptyResult,
    InitializeResult,
    InputRequired,
    ListenResult,
    Result,
)
from mcp_django.templating.fences import FENCES

logger = logging.getLogger("mcp_django")

# Before anything else: the legacy handshake, ping, and modern discovery.


def initialize(context: CallContext, params: dict[str, Any]) -> InitializeResult:
    return InitializeResult(
        protocol_version=negotiate(params).value, instructions=instructions(context)
    )


def ping(context: CallContext, params: dict[str, Any]) -> EmptyResult:
    return EmptyResult()


def discover(context: CallContext, params: dict[str, Any]) -> DiscoverResult:
    return DiscoverResult(instructions=instructions(context))


def instructions(context: CallContext) -> str:
    """Those of staff, if they wrote some. Else those of the site, or our own with what they say
    of fences, where there are any: rights are not known yet.
    """
    known = decisions_of_loop.of(context.principal).get(None)
    decided, config = known or decisions(context.principal.server), get_config()
    if decided.instructions or config.instructions or not has_fences(decided):
        return decided.instructions
    return f"{default_instructions(config)} {FENCES}"


HANDLERS: dict[str, Callable[[CallContext, dict[str, Any]], Result | Outcome]] = {
    "initialize": initialize,
    "ping": ping,
    "server/discover": discover,
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "completion/complete": completion.complete,
    "resources/subscribe": subscriptions.subscribe,
    "resources/unsubscribe": subscriptions.unsubscribe,
    "logging/setLevel": subscriptions.set_level,
    "subscriptions/listen": subscriptions.listen,
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The bytes of one response, and the HTTP status that it would have alone."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    is_error: bool = False
    #: In place of a body, for peers that questions travel to as requests of ours.
    asks: InputRequired | None = None
    #: Before the body: the stream that the body ends.
    opens: ListenResult | None = None


@dataclass(frozen=True, kw_only=True)
class PendingAnswer:
    """An async tool: the loop awaits it, and in a second hop `settle` makes the answer of what
    that returned or raised.

    Where nobody settles it any more, `give_up` says so to the records.
    """

    awaitable: Awaitable[Any]
    settle: Callable[[Callable[[], Any]], Any]
    give_up: Callable[[], None]

    def release(self) -> None:
        """A coroutine that never ran complains, unless it is closed."""
        getattr(self.awaitable, "close", bool)()


def server_info(*, streams: bool) -> ServerInfo:
    config = get_config()
    return ServerInfo(
        name=config.name,
        version=config.version,
        instructions=config.instructions or default_instructions(config),
        streams=streams,
    )


def default_instructions(config: Config) -> str:
    """For sites that write none. They are told before rights are known, so they name no model."""
    return (
        f"{config.name[:80]}: records of this site, with the rights of the user behind "
        "the credential. Start with list_models, then describe_model, then find_records or "
        "aggregate_records. A page is a table: columns, then rows with their values in that "
        "order. labels gives the names of related records, by model and key. Errors say what to "
        "do next."
    )


def dispatch(context: CallContext, request: Request) -> Result | Outcome:
    served(request.method, context.revision, streams=context.streams)
    if context.revision.features.input_required and request.params.keys() & INPUT:
        context.sent_input = parse_input(request.params)
    return exceeded(context, request) or HANDLERS[request.method](context, request.params)


def answer(
    context: CallContext, request: Request, server: ServerInfo, *, known: Result | None = None
) -> Answer | PendingAnswer:
    """Answer one request, with the `known` result where there is one, and record that.

    Raises Cancelled when nobody waits for it, and nothing else.
    """
    answering = Answering(context, request, server, Recording(context, request))
    return answering.finish(
        partial(dispatch, context, request) if known is None else lambda: known
    )


@dataclass
class Answering:
    """One request being answered, in as many hops as that takes."""

    context: CallContext
    request: Request
    server: ServerInfo
    recording: Recording

    def finish(self, make: Callable[[], Result | Outcome]) -> Answer | PendingAnswer:
        span = self.recording.span
        with nullcontext() if span is None else span.active():
            return self._finish(make)

    def _finish(self, make: Callable[[], Result | Outcome]) -> Answer | PendingAnswer:
        is_asked = False
        try:
            try:
                outcome = make()
            except InputNeeded as needed:
                outcome, is_asked = needed.result, True
                # A question is no call of its tool: what follows it is.
                if self.context.counted_as:
                    tool_calls.add(self.context.counted_as, -1)
            if isinstance(outcome, PendingCall):
                span, awaitable = self.recording.span, outcome.awaitable
                return PendingAnswer(
                    awaitable=awaitable if span is None else ActiveAwaitable(span, awaitable),
                    settle=partial(self.settle, outcome),
                    give_up=partial(self.recording.end, CallRecord.Outcome.CANCELLED),
                )
            final = self.encode(outcome)
        except ProtocolError as error:
            error.request_id = self.request.id
            final = refused(error, self.context)
            self.recording.refused(error, size=len(final.body))
        # A tool may call what exits, or awaits what was cancelled. The server goes on.
        except (Exception, SystemExit, CancelledError) as error:
            # Code looked and went no further, or its statement was ended under it.
            is_stop = isinstance(error, Cancelled) or (
                isinstance(error, OperationalError) and is_timeout(error)
            )
            if is_stop and self.context.cancelled.is_set():
                self.recording.end(CallRecord.Outcome.CANCELLED)
                raise Cancelled from error
            final = self.crash(error)
        else:
            self.recording.answered(outcome, size=len(final.body), is_asked=is_asked)
        return final

    def encode(self, result: Result) -> Answer:
        revision = self.context.revision
        if isinstance(result, InputRequired) and not revision.features.input_required:
            return Answer(asks=result)
        wire = render(result, revision, self.server)
        opens = result if isinstance(result, ListenResult) else None
        return Answer(body=encode_result(self.request.id, wire), opens=opens)

    def settle(self, pending: PendingCall, returned: Callable[[], Any]) -> Answer:
        def make() -> Result:
            try:
                result: Result = pending.finish(returned())
            except ToolError as error:
                result = pending.refuse(error)
            return result

        final = self.finish(make)
        assert isinstance(final, Answer)  # noqa: S101  a result is never pending twice
        return final

    def crash(self, error: BaseException) -> Answer:
        """We have a bug: the log gets all of it, the peer a number to find it by."""
        correlation_id = secrets.token_hex(8)
        logger.exception("%s failed [%s]", self.request.method[:80], correlation_id)
        answer = ProtocolError(
            INTERNAL_ERROR,
            "Internal error",
            {"id": correlation_id},
            request_id=self.request.id,
        )
        final = refused(answer, self.context)
        self.recording.end(
            CallRecord.Outcome.CRASHED,
            size=len(final.body),
            correlation_id=correlation_id,
            reason=reason_of(error, {}),
        )
        return final


def refused(error: ProtocolError, context: CallContext) -> Answer:
    id_optional = context.revision.features.error_id_optional
    body = encode_error(error, id_optional=id_optional)
    return Answer(body=body, status=error.status, headers=error.headers, is_error=True)

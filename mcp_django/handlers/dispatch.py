"""One request to one answer in bytes, and the only place where exceptions become errors."""

from __future__ import annotations

import logging
import secrets
from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Cancelled, ToolError
from mcp_django.exposure.tools import Outcome, PendingCall
from mcp_django.handlers import completion, lifecycle, prompts, resources, tools
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import Request, encode_error, encode_result
from mcp_django.protocol.methods import served
from mcp_django.protocol.render import ServerInfo, render
from mcp_django.protocol.results import Result

logger = logging.getLogger("mcp_django")

Handler: TypeAlias = Callable[[CallContext, dict[str, Any]], Result | Outcome]

HANDLERS: dict[str, Handler] = {
    "initialize": lifecycle.initialize,
    "ping": lifecycle.ping,
    "server/discover": lifecycle.discover,
    "tools/list": tools.list_tools,
    "tools/call": tools.call_tool,
    "resources/list": resources.list_resources,
    "resources/templates/list": resources.list_templates,
    "resources/read": resources.read_resource,
    "prompts/list": prompts.list_prompts,
    "prompts/get": prompts.get_prompt,
    "completion/complete": completion.complete,
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The bytes of one response, and the HTTP status that it would have alone."""

    body: bytes
    status: int = 200


@dataclass(frozen=True, kw_only=True)
class PendingAnswer:
    """An async tool: `settle` makes the answer of what awaiting it returns or raises."""

    awaitable: Awaitable[Any]
    settle: Callable[[Callable[[], Any]], Answer]


def server_info(*, streams: bool) -> ServerInfo:
    config = get_config()
    return ServerInfo(
        name=config.name,
        version=config.version,
        instructions=config.instructions,
        streams=streams,
    )


def dispatch(context: CallContext, request: Request) -> Result | Outcome:
    served(request.method, context.revision)
    return HANDLERS[request.method](context, request.params)


def answer(context: CallContext, request: Request, server: ServerInfo) -> Answer | PendingAnswer:
    """Answer one request. Raises Cancelled when nobody waits for it, and nothing else."""

    def finish(make: Callable[[], Result | Outcome]) -> Answer | PendingAnswer:
        try:
            outcome = make()
            if isinstance(outcome, PendingCall):
                return PendingAnswer(awaitable=outcome.awaitable, settle=settle(outcome))
            wire = render(outcome, context.revision, server)
            return Answer(body=encode_result(request.id, wire))
        except ProtocolError as error:
            error.request_id = request.id
            return refused(error, context)
        # A tool may call what exits, or awaits what was cancelled. The server goes on.
        except (Exception, SystemExit, CancelledError) as error:
            if isinstance(error, Cancelled) and context.cancelled.is_set():
                raise
            return refused(unexpected(request), context)

    def settle(pending: PendingCall) -> Callable[[Callable[[], Any]], Answer]:
        def settled(returned: Callable[[], Any]) -> Answer:
            def make() -> Result:
                try:
                    return pending.finish(returned())
                except ToolError as error:
                    return pending.refuse(error)

            final = finish(make)
            assert isinstance(final, Answer)  # noqa: S101  a result is never pending twice
            return final

        return settled

    return finish(lambda: dispatch(context, request))


def refused(error: ProtocolError, context: CallContext) -> Answer:
    id_optional = context.revision.features.error_id_optional
    return Answer(body=encode_error(error, id_optional=id_optional), status=error.status)


def unexpected(request: Request) -> ProtocolError:
    """We have a bug: the log gets all of it, the peer a number to find it by."""
    correlation_id = secrets.token_hex(8)
    logger.exception("%s failed [%s]", request.method[:80], correlation_id)
    return ProtocolError(
        INTERNAL_ERROR, "Internal error", {"id": correlation_id}, request_id=request.id
    )

"""Refusals of a whole exchange, in the words of its revision."""

from __future__ import annotations

import logging
import secrets

from mcp_django.conf import get_config
from mcp_django.handlers.dispatch import server_info
from mcp_django.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from mcp_django.protocol.jsonrpc import encode_error, encode_result
from mcp_django.protocol.render import render
from mcp_django.protocol.results import ToolResult
from mcp_django.transports.exchanges import NO_STORE, Exchange, HeaderList, Reply

logger = logging.getLogger("mcp_django")

#: Seconds after which a client may look whether staff opened the server again. Nobody knows.
CLOSED_FOR = "60"


def refuse_exchange(
    exchange: Exchange, error: ProtocolError, *, headers: HeaderList = ()
) -> Reply:
    if len(exchange.requests) == 1 and not exchange.is_batch:
        error.request_id = exchange.requests[0].request.id
    id_optional = exchange.revision.features.error_id_optional
    body = encode_error(error, id_optional=id_optional)
    return Reply(status=error.status, parts=(body,), headers=(*NO_STORE, *headers))


def busy(exchange: Exchange) -> Reply:
    error = ProtocolError(INTERNAL_ERROR, "The server is busy. Try again later.", status=503)
    return refuse_exchange(exchange, error, headers=(("Retry-After", "1"),))


def closed(exchange: Exchange) -> Reply:
    error = ProtocolError(INTERNAL_ERROR, "This server is closed for now.", status=503)
    return refuse_exchange(exchange, error, headers=(("Retry-After", CLOSED_FOR),))


def failed(exchange: Exchange, correlation_id: str) -> Reply:
    error = ProtocolError(INTERNAL_ERROR, "Internal error", {"id": correlation_id}, status=500)
    return refuse_exchange(exchange, error)


def crashed(exchange: Exchange) -> Reply:
    """Inside an `except`: we have a bug. The log gets all of it, the peer a number."""
    correlation_id = secrets.token_hex(8)
    logger.exception("A request failed [%s]", correlation_id)
    return failed(exchange, correlation_id)


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

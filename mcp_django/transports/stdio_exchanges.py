"""From a line to what it asks for. There are no headers: the message says it all, or its session.

The era is that of each message: one with an envelope is modern, whatever came before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp_django.conf import get_config
from mcp_django.protocol.envelope import (
    NO_HEADERS,
    REVISION_KEY,
    Route,
    meta_of,
    open_bare_envelope,
    route,
)
from mcp_django.protocol.errors import INVALID_REQUEST, PARSE_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import (
    Batch,
    Message,
    Notification,
    Request,
    Response,
    decode,
    requests_of,
)
from mcp_django.protocol.revisions import ASSUMED, Revision
from mcp_django.transports.endpoint import calls_of
from mcp_django.transports.exchanges import Call, Exchange
from mcp_django.transports.lines import Line
from mcp_django.transports.sessions import CANCELLATIONS


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What a handshake came to."""

    session_id: str
    revision: Revision


def understand_line(line: Line, agreed: Agreed | None) -> Exchange:
    """Raises ProtocolError for what is no message, and for what is none of this moment."""
    config = get_config()
    if line is None:
        raise ProtocolError(PARSE_ERROR, f"The line is longer than {config.max_body} bytes.")
    received = decode(line, max_depth=config.max_depth, max_batch=config.max_batch)
    if isinstance(received, Request):
        return exchange_of(received, agreed)
    if isinstance(received, Batch):
        return in_session(batch_of(received, agreed), agreed)
    return in_session(Exchange(notices=(received,)), agreed)


def exchange_of(request: Request, agreed: Agreed | None) -> Exchange:
    try:
        envelope = open_bare_envelope(request)
    except ProtocolError as error:
        error.request_id = request.id
        raise
    found = Exchange(calls=(Call(request=request, envelope=envelope),), revision=envelope.revision)
    if route(NO_HEADERS, request) is not Route.LEGACY:
        return found
    if agreed is None and request.method != "ping":
        raise ProtocolError(
            INVALID_REQUEST,
            "Send initialize first, or an envelope in params._meta.",
            request_id=request.id,
        )
    return in_session(found, agreed)


def batch_of(batch: Batch, agreed: Agreed | None) -> Exchange:
    if agreed is None or not agreed.revision.features.batches:
        raise ProtocolError(INVALID_REQUEST, "Batches exist after agreeing on 2025-03-26 only.")
    if any(REVISION_KEY in meta_of(request) for request in requests_of(batch)):
        raise ProtocolError(INVALID_REQUEST, "A request of a modern revision stands alone.")
    notices = tuple(one for one in batch.messages if isinstance(one, Notification | Response))
    return Exchange(calls=calls_of(batch, NO_HEADERS), is_batch=True, notices=notices)


def in_session(exchange: Exchange, agreed: Agreed | None) -> Exchange:
    if agreed is None:
        return replace(exchange, revision=ASSUMED)
    return replace(exchange, session_id=agreed.session_id, revision=agreed.revision)


def takes_back(notice: Message) -> object:
    """The id of the request that the client takes back. None: it does no such thing."""
    if isinstance(notice, Notification) and notice.method in CANCELLATIONS:
        return notice.params.get(CANCELLATIONS[notice.method])
    return None

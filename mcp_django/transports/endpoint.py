"""From an HTTP request to what it asks for. Knows no server.

Refusals come in the order of the specification's ladders: strangers (Host, Origin) at once, then
whoever has no credential, and only then what is wrong with the request itself.
"""

from __future__ import annotations

from dataclasses import replace

from mcp_django.conf import get_config
from mcp_django.protocol import headers as names
from mcp_django.protocol.envelope import (
    Envelope,
    Evidence,
    check_without_answer,
    evidence_of,
    legacy_revision,
    open_envelope,
    unsupported,
)
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import Headers, accepts, media_type
from mcp_django.protocol.jsonrpc import Batch, Notification, Request, Response, decode
from mcp_django.protocol.revisions import MODERN, Era, Revision
from mcp_django.transports.exchanges import EVENT_STREAM, JSON, Call, Exchange, refuse


def understand(
    verb: str, headers: Headers, body: bytes | None, *, streams: bool = True
) -> Exchange:
    """What is asked for. Never raises: what is wrong is in the exchange.

    `body` is None where it was longer than the limit. Without `streams` there are no sessions.
    """
    revision = evidence_revision(headers)
    verbs = verbs_of(headers) if streams else ("POST",)
    try:
        check_transport(verb, headers, body, verbs=verbs)
        if verb == "POST":
            found = parse(headers, body or b"", revision)
        else:
            found = Exchange(verb=verb, revision=revision)
        return in_session(found, headers) if streams else found
    except ProtocolError as error:
        return refused(error, revision=revision, verbs=verbs)


def refused(error: ProtocolError, *, revision: Revision, verbs: tuple[str, ...]) -> Exchange:
    """What nobody is served, who asked for it or not."""
    id_optional = revision.features.error_id_optional
    allow = (("Allow", ", ".join(verbs)),) if error.status == 405 else ()
    return Exchange(
        refusal=refuse(error, id_optional=id_optional, headers=allow), revision=revision
    )


def evidence_revision(headers: Headers) -> Revision:
    """The revision that errors about the whole request are written in."""
    if evidence_of(headers) is Evidence.UNKNOWN:
        return MODERN[-1]
    return Revision.parse(headers.get(names.REVISION)) or legacy_revision(headers)


def verbs_of(headers: Headers) -> tuple[str, ...]:
    is_modern = evidence_of(headers) is Evidence.MODERN
    return ("POST",) if is_modern else ("GET", "POST", "DELETE")


def in_session(exchange: Exchange, headers: Headers) -> Exchange:
    """With what the legacy era has in headers. Raises ProtocolError for two sessions at once."""
    if exchange.revision.era is Era.MODERN:
        return exchange
    if headers.count(names.SESSION) > 1:
        raise ProtocolError(INVALID_REQUEST, "Mcp-Session-Id stands more than once.", status=400)
    return replace(
        exchange,
        session_id=None if begins_session(exchange) else headers.get(names.SESSION),
        last_event_id=headers.get(names.LAST_EVENT),
    )


def begins_session(exchange: Exchange) -> bool:
    """Whatever session it came with, a handshake begins a new one."""
    return any(call.request.method == "initialize" for call in exchange.requests)


def check_transport(
    verb: str, headers: Headers, body: bytes | None, *, verbs: tuple[str, ...]
) -> None:
    """The rungs that look at HTTP only. Raises ProtocolError with the status."""
    if verb in ("GET", "DELETE") and evidence_of(headers) is Evidence.UNKNOWN:
        raise unsupported(headers.get(names.REVISION), None)
    check_verb(verb, headers, verbs=verbs)
    if verb != "POST":
        return
    check_body(headers, body)
    if not accepts(headers.joined("accept"), JSON, EVENT_STREAM):
        raise ProtocolError(
            INVALID_REQUEST, f"Accept must allow {JSON} and {EVENT_STREAM}.", status=406
        )


def check_verb(verb: str, headers: Headers, *, verbs: tuple[str, ...]) -> None:
    if verb not in verbs:
        raise ProtocolError(
            INVALID_REQUEST, f"The verbs of this address: {', '.join(verbs)}.", status=405
        )
    if verb == "GET" and not accepts(headers.joined("accept"), EVENT_STREAM):
        raise ProtocolError(INVALID_REQUEST, f"Accept must allow {EVENT_STREAM}.", status=406)


def check_body(headers: Headers, body: bytes | None) -> None:
    if body is None:
        limit = get_config().max_body
        raise ProtocolError(INVALID_REQUEST, f"The body is longer than {limit} bytes.", status=413)
    is_plain = (headers.get("content-encoding") or "identity").lower() == "identity"
    if media_type(headers.get("content-type") or "") != JSON or not is_plain:
        raise ProtocolError(
            INVALID_REQUEST, "Send plain JSON, with Content-Type: application/json.", status=415
        )


def parse(headers: Headers, body: bytes, revision: Revision) -> Exchange:
    config = get_config()
    received = decode(body, max_depth=config.max_depth, max_batch=config.max_batch)
    if isinstance(received, Request):
        envelope = open_envelope(headers, received)
        call = Call(request=received, envelope=envelope)
        return Exchange(calls=(call,), revision=envelope.revision)
    check_without_answer(headers, received)
    if not isinstance(received, Batch):
        return Exchange(notices=(received,), revision=revision)
    notices = tuple(one for one in received.messages if isinstance(one, Notification | Response))
    calls = calls_of(received, headers)
    return Exchange(calls=calls, is_batch=True, notices=notices, revision=revision)


def calls_of(batch: Batch, headers: Headers) -> tuple[Call | ProtocolError, ...]:
    calls: list[Call | ProtocolError] = []
    envelope = Envelope(revision=legacy_revision(headers))
    for message in batch.messages:
        if isinstance(message, ProtocolError):
            calls.append(message)
        elif isinstance(message, Request) and message.method == "initialize":
            calls.append(
                ProtocolError(INVALID_REQUEST, "initialize stands alone.", request_id=message.id)
            )
        elif isinstance(message, Request):
            calls.append(Call(request=message, envelope=envelope))
    return tuple(calls)

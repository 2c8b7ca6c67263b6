"""From an HTTP request to what it asks for, and from there to the reply. Knows no server.

Refusals come in the order of the specification's ladders: strangers (Host, Origin) at once, then
whoever has no credential, and only then what is wrong with the request itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeAlias
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from mcp_django.conf import get_config
from mcp_django.principal import Principal
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
from mcp_django.protocol.jsonrpc import (
    Batch,
    Notification,
    Request,
    RequestId,
    Response,
    decode,
    encode_error,
    join_batch,
)
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.results import InputRequired
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN, Era, Revision
from mcp_django.subscriptions.events import Topic
from mcp_django.subscriptions.topics import Uris

HeaderList: TypeAlias = tuple[tuple[str, str], ...]

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?")
NO_STORE: HeaderList = (("Cache-Control", "no-store"),)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A whole HTTP response: no message, one, or those of a batch."""

    status: int = 200
    parts: tuple[bytes, ...] = ()
    is_batch: bool = False
    headers: HeaderList = ()
    #: In place of a body: a stream that stays open, or questions that the client is to answer
    #: first. Middleware sees an empty response, and its headers are those of the stream.
    opens: Opening | None = None
    asks: InputRequired | None = None

    @property
    def body(self) -> bytes:
        if self.is_batch:
            return join_batch(list(self.parts))
        return self.parts[0] if self.parts else b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """A stream that is to be opened, after everything about it was looked at."""

    #: listen, standalone, resumed or http_sse.
    kind: str
    principal: Principal
    revision: Revision
    client: str = ""
    #: What the client wants to be told of.
    lists: frozenset[Topic] = frozenset()
    uris: Uris = field(default_factory=dict)
    session: str = ""
    #: Where the client posts its messages, where that is not where it asked.
    endpoint: str = ""
    #: The request that listens, and what it is told first.
    request_id: RequestId | None = None
    first: tuple[bytes, ...] = ()
    #: Told last, where the server ends the stream.
    last: tuple[bytes, ...] = ()
    #: Where a client that comes back left off.
    log: str = ""
    after: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    request: Request
    envelope: Envelope


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """What an HTTP request asks for, before it is known who asks."""

    #: In the order of the body. A message of a batch that is none stands there as its error.
    calls: tuple[Call | ProtocolError, ...] = ()
    is_batch: bool = False
    verb: str = "POST"
    #: What needs no answer: notifications, and answers to requests of ours.
    notices: tuple[Notification | Response, ...] = ()
    #: Of the legacy era. The modern one has neither.
    session_id: str | None = None
    last_event_id: str | None = None
    #: What is wrong with the whole request. Told to callers with a credential only.
    refusal: Reply | None = None
    #: How errors about the request as a whole are written.
    revision: Revision = LATEST_LEGACY

    @cached_property
    def requests(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if isinstance(call, Call))

    @property
    def disconnect_cancels(self) -> bool:
        """2026-07-28: closing the stream cancels. Before, a lost connection says nothing."""
        return any(call.envelope.revision.features.disconnect_cancels for call in self.requests)

    @property
    def is_constant(self) -> bool:
        """The answer needs neither a thread nor the database."""
        return all(
            call.request.method in METHODS and METHODS[call.request.method].is_constant
            for call in self.requests
        )


def refuse(error: ProtocolError, *, id_optional: bool, headers: HeaderList = ()) -> Reply:
    body = encode_error(error, id_optional=id_optional)
    return Reply(status=error.status, parts=(body,), headers=headers)


def stranger(headers: Headers) -> Reply | None:
    """The refusal of a Host or an Origin that is not ours: DNS rebinding ends here."""
    host = headers.get("host") or ""
    if settings.USE_X_FORWARDED_HOST and headers.get("x-forwarded-host"):
        host = headers.get("x-forwarded-host") or ""
    is_own = is_own_host(host, tuple(settings.ALLOWED_HOSTS), settings.DEBUG)
    if not is_own or headers.count("host") > 1:
        error = ProtocolError(INVALID_REQUEST, "This host is not served here.", status=400)
        return refuse(error, id_optional=True)
    origin = headers.get("origin")
    # No browser sends two, and two readers need not look at the same one.
    is_one = headers.count("origin") == 1
    if origin is not None and not (is_one and is_own_origin(origin, host)):
        error = ProtocolError(INVALID_REQUEST, "This origin is not allowed.", status=403)
        return refuse(error, id_optional=True)
    return None


@lru_cache(maxsize=256)
def is_own_host(host: str, allowed: tuple[str, ...], debug: bool) -> bool:  # noqa: FBT001
    if debug and not allowed:
        allowed = (".localhost", *LOOPBACK)
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, allowed)


def is_own_origin(origin: str, host: str) -> bool:
    """One of ours, or any port of this machine where the site itself is asked there."""
    config = get_config()
    if origin in {origin_of(url) for url in (config.public_url, *config.allowed_origins) if url}:
        return True
    is_local = split_domain_port(host)[0] in LOOPBACK
    return is_local and LOOPBACK_ORIGIN.fullmatch(origin) is not None


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


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

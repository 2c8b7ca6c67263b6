"""From an HTTP request to what it asks for, and from there to the reply. Knows no server.

Refusals come in the order of the specification's ladders: strangers (Host, Origin) at once, then
whoever has no credential, and only then what is wrong with the request itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

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
from mcp_django.protocol.jsonrpc import (
    Batch,
    Request,
    decode,
    encode_error,
    join_batch,
)
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN, Revision

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

    @property
    def body(self) -> bytes:
        if self.is_batch:
            return join_batch(list(self.parts))
        return self.parts[0] if self.parts else b""


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


def understand(verb: str, headers: Headers, body: bytes | None) -> Exchange:
    """What is asked for. Never raises: what is wrong is in the exchange.

    `body` is None where it was longer than the limit.
    """
    revision = evidence_revision(headers)
    try:
        check_transport(verb, headers, body)
        return parse(headers, body or b"", revision)
    except ProtocolError as error:
        id_optional = revision.features.error_id_optional
        allow = (("Allow", "POST"),) if error.status == 405 else ()
        reply = refuse(error, id_optional=id_optional, headers=allow)
        return Exchange(refusal=reply, revision=revision)


def evidence_revision(headers: Headers) -> Revision:
    """The revision that errors about the whole request are written in."""
    if evidence_of(headers) is Evidence.UNKNOWN:
        return MODERN[-1]
    return Revision.parse(headers.get(names.REVISION)) or legacy_revision(headers)


def check_transport(verb: str, headers: Headers, body: bytes | None) -> None:
    """The rungs that look at HTTP only. Raises ProtocolError with the status."""
    if verb in ("GET", "DELETE") and evidence_of(headers) is Evidence.UNKNOWN:
        raise unsupported(headers.get(names.REVISION), None)
    if verb != "POST":
        raise ProtocolError(INVALID_REQUEST, "Only POST is served here.", status=405)
    if body is None:
        limit = get_config().max_body
        raise ProtocolError(INVALID_REQUEST, f"The body is longer than {limit} bytes.", status=413)
    is_plain = (headers.get("content-encoding") or "identity").lower() == "identity"
    if media_type(headers.get("content-type") or "") != JSON or not is_plain:
        raise ProtocolError(
            INVALID_REQUEST, "Send plain JSON, with Content-Type: application/json.", status=415
        )
    if not accepts(headers.joined("accept"), JSON, EVENT_STREAM):
        raise ProtocolError(
            INVALID_REQUEST, f"Accept must allow {JSON} and {EVENT_STREAM}.", status=406
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
        return Exchange(revision=revision)
    return Exchange(calls=calls_of(received, headers), is_batch=True, revision=revision)


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


def tools_called(exchange: Exchange) -> list[str]:
    """Names in tools/call, unchecked: they choose the lane."""
    found = [call.request.params.get("name") for call in exchange.requests]
    return [name for name in found if isinstance(name, str)]


def uris_named(exchange: Exchange) -> list[Any]:
    """URIs in resources/read, read_resource and completion/complete, unchecked as well."""
    params = [call.request.params for call in exchange.requests]
    parts = [part for one in params for part in (one, one.get("arguments"), one.get("ref"))]
    return [part["uri"] for part in parts if isinstance(part, dict) and "uri" in part]

"""From an HTTP request to what it asks for, for ASGI and WSGI.

Refusals come in the order of the specification: a foreign Host or Origin at once, then a missing
credential, and only then what is wrong with the request itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.template import Context, Engine, Template
from django.urls import NoReverseMatch, reverse

from mcp_django.auth.redaction import holds_credential
from mcp_django.auth.resource import endpoint_url
from mcp_django.conf import get_config
from mcp_django.exceptions import NO_CREDENTIAL
from mcp_django.protocol import headers as names
from mcp_django.protocol.errors import INVALID_REQUEST, ProtocolError
from mcp_django.protocol.headers import LONGEST_HEADERS, LONGEST_VALUE, Headers, media_type
from mcp_django.protocol.jsonrpc import Batch, Notification, Request, Response, decode
from mcp_django.protocol.negotiation import (
    Envelope,
    Evidence,
    check_without_answer,
    evidence_of,
    legacy_revision,
    open_envelope,
    unsupported,
)
from mcp_django.protocol.revisions import MODERN, Era, Revision
from mcp_django.transports.exchanges import (
    EVENT_STREAM,
    JSON,
    NO_STORE,
    Call,
    Exchange,
    HeaderList,
    Reply,
    accepted_by,
    refuse,
)

HTML = "text/html"
#: Bytes of a body that an event loop reads before it is known who sent it.
LONGEST_AT_ONCE = 64 * 1024


def understand(
    verb: str, headers: Headers, body: bytes | None, *, streams: bool = True
) -> Exchange:
    """What is asked for. Never raises: what is wrong is in the exchange.

    `body` is None where it was longer than the limit. Without `streams` there are no sessions.
    A long body is not read yet: see `Exchange.read_body`.
    """
    revision, accepted = evidence_revision(headers), accepted_by(headers.joined("accept"))
    has_sessions = streams and evidence_of(headers) is not Evidence.MODERN
    verbs = ("GET", "POST", "DELETE") if has_sessions else ("POST",)
    try:
        check_transport(verb, headers, body, verbs=verbs)
        if verb == "POST" and streams and not (accepted.json or accepted.stream):
            raise not_acceptable(f"{JSON} or {EVENT_STREAM}")
        if verb == "GET" and headers.get(names.SESSION) is None:
            # Clients ask whether there is a stream, and know this answer.
            verbs = ("POST",)
            raise ProtocolError(
                INVALID_REQUEST, "A stream belongs to a session. Send Mcp-Session-Id.", status=405
            )
        if verb != "POST":
            exchange = Exchange(verb=verb, revision=revision)
            return in_session(exchange, headers) if streams else exchange
    except ProtocolError as error:
        return refused(error, revision=revision, verbs=verbs)

    def read(body: bytes) -> Exchange:
        exchange = replace(parse(headers, body, revision), accepted=accepted)
        methods = [call.request.method for call in exchange.requests]
        if streams and not accepted.stream and "subscriptions/listen" in methods:
            raise not_acceptable(EVENT_STREAM)
        return in_session(exchange, headers) if streams else exchange

    return replace(read_soon(read, body or b"", revision=revision), accepted=accepted)


def unidentified(verb: str, *, revision: Revision) -> Exchange:
    """A request without a credential, whose body nobody asks for: see `lacks_credential`."""
    error = ProtocolError(INVALID_REQUEST, NO_CREDENTIAL, status=401)
    return replace(refused(error, revision=revision), verb=verb)


def read_soon(read: Callable[[bytes], Exchange], body: bytes, *, revision: Revision) -> Exchange:
    """What `read` makes of a body: now, or in the thread where it is long. Never raises."""

    def read_body() -> Exchange:
        try:
            return read(body)
        except ProtocolError as error:
            return refused(error, revision=revision)

    if len(body) > LONGEST_AT_ONCE:
        return Exchange(revision=revision, read_body=read_body)
    return read_body()


def refused(error: ProtocolError, *, revision: Revision, verbs: tuple[str, ...] = ()) -> Exchange:
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


def check_verb(verb: str, headers: Headers, *, verbs: tuple[str, ...]) -> None:
    if verb not in verbs:
        raise ProtocolError(
            INVALID_REQUEST, f"The verbs of this address: {', '.join(verbs)}.", status=405
        )
    if verb == "GET" and not accepted_by(headers.joined("accept")).stream:
        raise not_acceptable(EVENT_STREAM)


def not_acceptable(types: str) -> ProtocolError:
    return ProtocolError(INVALID_REQUEST, f"Accept must allow {types}.", status=406)


def check_body(headers: Headers, body: bytes | None) -> None:
    if body is None:
        limit = get_config().max_body
        raise ProtocolError(INVALID_REQUEST, f"The body is longer than {limit} bytes.", status=413)
    is_plain = (headers.get("content-encoding") or "identity").lower() == "identity"
    kind = headers.get("content-type") or ""
    if (kind != JSON and media_type(kind) != JSON) or not is_plain:
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
    return batch_exchange(received, headers, revision=revision)


def batch_exchange(batch: Batch, headers: Headers, *, revision: Revision) -> Exchange:
    calls: list[Call | ProtocolError] = []
    notices: list[Notification | Response] = []
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
        else:
            notices.append(message)
    return Exchange(calls=tuple(calls), is_batch=True, notices=tuple(notices), revision=revision)


# A Host or an Origin that is not ours: DNS rebinding ends here. And headers without an end.


#: Characters of a name that DNS may have (RFC 1035), in brackets or with a port.
LONGEST_HOST = 265
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
LOOPBACK_ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?")


def check_host_and_origin(headers: Headers, query: bytes = b"") -> Reply | None:
    """The refusal, or None for who may ask on."""
    status, sentence = wrong_with(headers, query)
    if status is None:
        return None
    return refuse(ProtocolError(INVALID_REQUEST, sentence, status=status), id_optional=True)


def wrong_with(headers: Headers, query: bytes) -> tuple[int | None, str]:
    """A status and a sentence. No status: nothing is wrong."""
    if headers.are_too_long:
        return 431, (
            f"A header has at most {LONGEST_VALUE} bytes, and all of them {LONGEST_HEADERS}."
        )
    # Before anybody looks for a credential in it, which takes time.
    if len(query) > LONGEST_VALUE:
        return 414, f"A query string has at most {LONGEST_VALUE} bytes."
    host = headers.get("host") or ""
    if settings.USE_X_FORWARDED_HOST and headers.get("x-forwarded-host"):
        host = headers.get("x-forwarded-host") or ""
    is_own = len(host) <= LONGEST_HOST and is_own_host(
        host, tuple(settings.ALLOWED_HOSTS), settings.DEBUG
    )
    if not is_own or headers.count("host") > 1:
        return 400, "This host is not served here."
    origin = headers.get("origin")
    # No browser sends two, and two readers need not look at the same one.
    is_one = headers.count("origin") == 1
    if origin is not None and not (is_one and is_own_origin(origin, host)):
        return 403, "This origin is not allowed."
    # A URI is ASCII (RFC 3986), and Django decodes this without a net.
    if not query.isascii():
        return 400, "The URL is not valid."
    if query and holds_credential(query.decode()):
        return 400, (
            "A credential belongs in the Authorization header. This one is in the logs of servers "
            "and proxies now: revoke it."
        )
    return None, ""


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


# CORS: the answers that a browser hands to pages of other origins, those of ALLOWED_ORIGINS.


#: Headers that clients of any revision send, and that no page may send without being let.
SENT = (
    "Accept",
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "MCP-Protocol-Version",
    "Mcp-Session-Id",
)
#: Headers of answers that clients read.
EXPOSED = "Mcp-Session-Id, WWW-Authenticate, Retry-After"
#: The argument of a tool. Its name is the tool's, so no list has it.
PARAM = re.compile(r"mcp-param-[a-z0-9-]+", re.IGNORECASE)
#: Seconds that a browser may go on without asking again.
PREFLIGHT_AGE = "600"
ALLOW_ORIGIN, EXPOSE = "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"


def cors_headers(headers: Headers) -> HeaderList:
    """What lets a page of ALLOWED_ORIGINS read an answer. Nothing for any other, not even ours."""
    origin = headers.get("origin")
    if origin is None:
        return ()
    if origin not in {origin_of(url) for url in get_config().allowed_origins if url}:
        return ()
    return ((ALLOW_ORIGIN, origin), (EXPOSE, EXPOSED), ("Vary", "Origin"))


def answer_to_browser(verb: str, headers: Headers) -> Reply | None:
    """Return the answer to what only browsers ask. None: it is for the endpoint."""
    return preflight(verb, headers) or page_of_endpoint(verb, headers)


def page_of_endpoint(verb: str, headers: Headers) -> Reply | None:
    """Return a page for a person who opens the address. GET of a client asks for events."""
    accept = headers.joined("accept") or ""
    if verb != "GET" or HTML not in accept or EVENT_STREAM in accept:
        return None
    try:
        connect = reverse("mcp_django_pages:connect")
    except NoReverseMatch:
        connect = ""
    words = Context({"name": get_config().name, "address": endpoint_url(), "connect": connect})
    page = endpoint_template().render(words)
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    return Reply(
        parts=(page.encode(),),
        content_type=f"{HTML}; charset=utf-8",
        headers=(*NO_STORE, ("Content-Security-Policy", policy)),
    )


@cache
def endpoint_template() -> Template:
    """Return the template of our own page, which needs no TEMPLATES of the site."""
    folder = Path(__file__).parents[1] / "templates"
    return Engine(dirs=[str(folder)]).get_template("mcp_django/endpoint.html")


def preflight(verb: str, headers: Headers) -> Reply | None:
    """The answer to what a browser asks in the name of such a page, before it sends a request."""
    if verb != "OPTIONS" or headers.get("access-control-request-method") is None:
        return None
    if not cors_headers(headers):
        return None
    wanted = (headers.joined("access-control-request-headers") or "").split(",")
    params = [name.strip() for name in wanted if PARAM.fullmatch(name.strip())]
    return Reply(
        status=204,
        headers=(
            ("Access-Control-Allow-Methods", "GET, POST, DELETE"),
            ("Access-Control-Allow-Headers", ", ".join((*SENT, *params))),
            ("Access-Control-Max-Age", PREFLIGHT_AGE),
        ),
    )


def with_cors(headers: HeaderList, cors: HeaderList) -> HeaderList:
    """The headers of an answer, and what lets a page read it. Middleware may have set some."""
    if not cors:
        return headers
    ours = {name.lower(): value for name, value in cors}
    for name, value in headers:
        lower = name.lower()
        if lower in ours and lower != ALLOW_ORIGIN.lower():
            ours[lower] = f"{value}, {ours[lower]}"
    kept = [(name, value) for name, value in headers if name.lower() not in ours]
    return (*kept, *((name, ours[name.lower()]) for name, _ in cors))

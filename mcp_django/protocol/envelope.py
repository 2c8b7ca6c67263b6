"""Which era and revision a request speaks, and whether its envelope is whole.

The routing table and the ladder of checks are data: rows and functions, in order, and the first
that matches or fails decides. The body is looked at before the header, since a request with
modern `_meta` is modern whatever else it carries.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_django.protocol import headers as names
from mcp_django.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSUPPORTED_REVISION,
    ProtocolError,
)
from mcp_django.protocol.headers import Headers, decode_value
from mcp_django.protocol.jsonrpc import Batch, Message, Notification, Request, requests_of
from mcp_django.protocol.methods import LOG_LEVELS, NAME_PARAMS, served
from mcp_django.protocol.param_headers import SentParams, sent_params
from mcp_django.protocol.revisions import ASSUMED, LATEST_LEGACY, MODERN, Era, Revision

META = "io.modelcontextprotocol/"
REVISION_KEY = META + "protocolVersion"
CAPABILITIES_KEY = META + "clientCapabilities"
CLIENT_KEY = META + "clientInfo"
LOG_LEVEL_KEY = META + "logLevel"

SUPPORTED = [revision.value for revision in MODERN]


class Evidence(enum.Enum):
    """What the header MCP-Protocol-Version says."""

    ABSENT = "absent"
    LEGACY = "legacy"
    MODERN = "modern"
    UNKNOWN = "unknown"


class Route(enum.Enum):
    MODERN = "modern"
    HANDSHAKE = "handshake"
    LEGACY = "legacy"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the routing table. None stands for any."""

    evidence: frozenset[Evidence] | None = None
    has_envelope: bool | None = None
    methods: frozenset[str] | None = None
    route: Route


QUIET = frozenset({Evidence.ABSENT, Evidence.LEGACY})
ROUTES = (
    Row(has_envelope=True, route=Route.MODERN),
    Row(
        evidence=frozenset({Evidence.MODERN}),
        methods=frozenset({"initialize"}),
        route=Route.HANDSHAKE,
    ),
    Row(evidence=frozenset({Evidence.MODERN}), route=Route.MODERN),
    Row(evidence=frozenset({Evidence.UNKNOWN}), route=Route.UNSUPPORTED),
    # These exist in the modern era only, so the ladder's answer says what is missing.
    Row(
        evidence=QUIET,
        methods=frozenset({"server/discover", "subscriptions/listen"}),
        route=Route.MODERN,
    ),
    Row(evidence=QUIET, methods=frozenset({"initialize"}), route=Route.HANDSHAKE),
    Row(evidence=QUIET, route=Route.LEGACY),
)


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """What one request says of itself and its client. Nothing of it outlives the request."""

    revision: Revision
    client: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    #: The least level of log messages that the client wants. None: it wants none.
    log_level: str | None = None
    #: The headers that repeat arguments. None where the peer has no such rule.
    sent_params: SentParams | None = None


EVIDENCE: dict[str | None, Evidence] = {
    revision.value: Evidence.MODERN if revision.era is Era.MODERN else Evidence.LEGACY
    for revision in Revision
} | {None: Evidence.ABSENT}


def evidence_of(headers: Headers) -> Evidence:
    return EVIDENCE.get(headers.get(names.REVISION), Evidence.UNKNOWN)


def meta_of(request: Request) -> dict[str, Any]:
    meta = request.params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def route(headers: Headers, request: Request) -> Route:
    """The first row of the table that fits."""
    evidence, has_envelope = evidence_of(headers), REVISION_KEY in meta_of(request)
    return next(
        row.route
        for row in ROUTES
        if (row.evidence is None or evidence in row.evidence)
        and (row.has_envelope is None or row.has_envelope is has_envelope)
        and (row.methods is None or request.method in row.methods)
    )


def open_envelope(headers: Headers, request: Request) -> Envelope:
    """Who asks in which revision. Raises ProtocolError with the status and code of the tables."""
    match route(headers, request):
        case Route.MODERN:
            return climb(headers, request)
        case Route.UNSUPPORTED:
            raise unsupported(headers.get(names.REVISION), request.id)
        case Route.HANDSHAKE:
            return Envelope(revision=LATEST_LEGACY, client=client_of(request.params))
        case Route.LEGACY:  # pragma: no branch
            return Envelope(revision=legacy_revision(headers))


def open_bare_envelope(request: Request) -> Envelope:
    """The same of a request that came without headers, by stdio. Raises ProtocolError.

    A legacy request has the revision of its session, if it is in one.
    """
    match route(NO_HEADERS, request):
        case Route.MODERN:
            return climb(NO_HEADERS, request, ladder=BARE_LADDER)
        case Route.HANDSHAKE:
            return Envelope(revision=LATEST_LEGACY, client=client_of(request.params))
        case _:
            return Envelope(revision=ASSUMED)


def legacy_revision(headers: Headers) -> Revision:
    """The revision of a legacy message. Without a session the header is the only evidence."""
    revision = Revision.parse(headers.get(names.REVISION))
    return revision if revision is not None and revision.era is Era.LEGACY else ASSUMED


def client_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    client = params.get("clientInfo")
    return client if isinstance(client, dict) else {}


# The ladder of a modern request (2026-07-28, basic/transports). First failure wins.


def routing_headers_stand_once(headers: Headers, request: Request) -> None:
    for name in names.ROUTING:
        if headers.count(name) > 1:
            raise mismatch(f"The header {name} stands more than once.", request)


def meta_is_complete(headers: Headers, request: Request) -> None:
    meta = meta_of(request)
    wanted = {REVISION_KEY: str, CAPABILITIES_KEY: dict}
    missing = [key for key, kind in wanted.items() if not isinstance(meta.get(key), kind)]
    if missing:
        raise ProtocolError(
            INVALID_PARAMS,
            f"params._meta needs {' and '.join(missing)}.",
            status=400,
            request_id=request.id,
        )


def header_names_the_revision(headers: Headers, request: Request) -> None:
    if headers.get(names.REVISION) != meta_of(request)[REVISION_KEY]:
        raise mismatch("MCP-Protocol-Version must repeat the revision of params._meta.", request)


def header_names_the_method(headers: Headers, request: Request) -> None:
    if headers.get(names.METHOD) != request.method:
        raise mismatch("Mcp-Method must repeat the method.", request)


def header_names_the_thing(headers: Headers, request: Request) -> None:
    member = NAME_PARAMS.get(request.method)
    value = request.params.get(member) if member else None
    # A missing member is a matter of the params, and -32602 says so further down.
    if not isinstance(value, str):
        return
    given = headers.get(names.NAME)
    try:
        matches = given is not None and decode_value(given) == value
    except ProtocolError as error:
        error.request_id = request.id
        raise
    if not matches:
        raise mismatch(f"Mcp-Name must repeat params.{member}.", request)


def revision_is_served(headers: Headers, request: Request) -> None:
    requested = meta_of(request)[REVISION_KEY]
    if requested not in SUPPORTED:
        raise unsupported(requested, request.id)


def method_is_served(headers: Headers, request: Request) -> None:
    try:
        served(request.method, MODERN[-1])
    except ProtocolError as error:
        error.request_id = request.id
        raise


def log_level_is_known(headers: Headers, request: Request) -> None:
    if meta_of(request).get(LOG_LEVEL_KEY, "info") not in LOG_LEVELS:
        raise ProtocolError(
            INVALID_PARAMS,
            f"{LOG_LEVEL_KEY} must be one of {', '.join(LOG_LEVELS)}.",
            status=400,
            request_id=request.id,
        )


Rung: TypeAlias = Callable[[Headers, Request], None]
LADDER: tuple[Rung, ...] = (
    routing_headers_stand_once,
    meta_is_complete,
    header_names_the_revision,
    header_names_the_method,
    header_names_the_thing,
    revision_is_served,
    method_is_served,
    log_level_is_known,
)


#: The rungs that look at the message alone.
BARE_LADDER: tuple[Rung, ...] = (
    meta_is_complete,
    revision_is_served,
    method_is_served,
    log_level_is_known,
)
NO_HEADERS = Headers(())


def climb(headers: Headers, request: Request, *, ladder: tuple[Rung, ...] = LADDER) -> Envelope:
    for rung in ladder:
        rung(headers, request)
    meta = meta_of(request)
    client = meta.get(CLIENT_KEY)
    return Envelope(
        revision=Revision(meta[REVISION_KEY]),
        client=client if isinstance(client, dict) else {},
        capabilities=meta[CAPABILITIES_KEY],
        log_level=meta.get(LOG_LEVEL_KEY),
        sent_params=None if headers is NO_HEADERS else sent_params(headers),
    )


def mismatch(sentence: str, request: Request) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, sentence, status=400, request_id=request.id)


def unsupported(requested: Any, request_id: str | int | None) -> ProtocolError:
    return ProtocolError(
        UNSUPPORTED_REVISION,
        "This protocol version is not supported.",
        {"supported": SUPPORTED, "requested": str(requested)[:80]},
        status=400,
        request_id=request_id,
    )


def check_without_answer(headers: Headers, message: Message | Batch) -> None:
    """What is no single request: notifications and responses, alone or in a batch.

    Raises ProtocolError for a revision that is not served, for a posted response of the modern
    era, and for a batch outside of the one revision that has them.
    """
    evidence = evidence_of(headers)
    if evidence is Evidence.UNKNOWN:
        raise unsupported(headers.get(names.REVISION), None)
    if isinstance(message, Notification):
        return
    if evidence is Evidence.MODERN:
        raise ProtocolError(INVALID_REQUEST, "Post one request or notification.", status=400)
    if isinstance(message, Batch):
        check_batches(legacy_revision(headers))
        if any(REVISION_KEY in meta_of(request) for request in requests_of(message)):
            raise ProtocolError(
                INVALID_REQUEST, "A request of a modern revision stands alone.", status=400
            )


def check_batches(revision: Revision) -> None:
    """Raises ProtocolError where this revision has none."""
    if not revision.features.batches:
        raise ProtocolError(INVALID_REQUEST, "This revision has no batches.", status=400)

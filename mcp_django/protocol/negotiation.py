"""Which era and revision a request speaks, and whether its envelope is complete.

The body is looked at before the header: a request with modern `_meta` is modern, whatever else it
carries.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_django.protocol import headers as names
from mcp_django.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSUPPORTED_REVISION,
    ProtocolError,
)
from mcp_django.protocol.headers import Headers, SentParams, decode_value, mismatch, sent_params
from mcp_django.protocol.jsonrpc import Batch, Message, Notification, Request, requests_of
from mcp_django.protocol.methods import LOG_LEVELS, NAME_PARAMS, served
from mcp_django.protocol.revisions import ASSUMED, LATEST_LEGACY, LEGACY, MODERN, Era, Revision

META = "io.modelcontextprotocol/"
REVISION_KEY = META + "protocolVersion"
CAPABILITIES_KEY = META + "clientCapabilities"
CLIENT_KEY = META + "clientInfo"
LOG_LEVEL_KEY = META + "logLevel"

SUPPORTED = [revision.value for revision in MODERN]
#: Of requests that come by stdio.
NO_HEADERS = Headers(())


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
    return mapping_or_empty(request.params.get("_meta"))


def mapping_or_empty(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def route(headers: Headers, request: Request) -> Route:
    """How to treat a request: by its envelope, else by the header, else by its method."""
    if REVISION_KEY in meta_of(request):
        return Route.MODERN
    evidence = evidence_of(headers)
    if evidence is Evidence.UNKNOWN:
        return Route.UNSUPPORTED
    if request.method == "initialize":
        return Route.HANDSHAKE
    # These methods exist in the modern era only, so its checks say what is missing.
    is_modern_method = request.method in ("server/discover", "subscriptions/listen")
    return Route.MODERN if evidence is Evidence.MODERN or is_modern_method else Route.LEGACY


def open_envelope(headers: Headers, request: Request) -> Envelope:
    """The client and revision of a request. Raises ProtocolError with its HTTP status.

    A request by stdio comes with NO_HEADERS. A legacy one has the revision of its session, if any.
    """
    match route(headers, request):
        case Route.MODERN:
            return modern_envelope(headers, request)
        case Route.UNSUPPORTED:
            raise unsupported(headers.get(names.REVISION), request.id)
        case Route.HANDSHAKE:
            return Envelope(
                revision=LATEST_LEGACY, client=mapping_or_empty(request.params.get("clientInfo"))
            )
        case Route.LEGACY:  # pragma: no branch
            return Envelope(revision=legacy_revision(headers))


def legacy_revision(headers: Headers) -> Revision:
    """The revision of a legacy message. Without a session the header is the only evidence."""
    revision = Revision.parse(headers.get(names.REVISION))
    return revision if revision is not None and revision.era is Era.LEGACY else ASSUMED


# The checks of a modern request, in the order of 2026-07-28, basic/transports: the first failure
# is the answer.


def modern_envelope(headers: Headers, request: Request) -> Envelope:
    meta = meta_of(request)
    if meta.get(CAPABILITIES_KEY) == []:
        meta[CAPABILITIES_KEY] = {}
    try:
        check_meta(headers, meta)
        if headers is not NO_HEADERS:
            check_routing_headers(headers, request)
        check_is_served(request.method, meta)
    except ProtocolError as error:
        error.request_id = request.id
        raise
    return Envelope(
        revision=Revision(meta[REVISION_KEY]),
        client=mapping_or_empty(meta.get(CLIENT_KEY)),
        capabilities=meta[CAPABILITIES_KEY],
        log_level=meta.get(LOG_LEVEL_KEY),
        sent_params=None if headers is NO_HEADERS else sent_params(headers),
    )


def check_meta(headers: Headers, meta: Mapping[str, Any]) -> None:
    for name in names.ROUTING if headers.has_repeated else ():
        if headers.count(name) > 1:
            raise mismatch(f"The header {name} stands more than once.")
    wanted = {REVISION_KEY: str, CAPABILITIES_KEY: dict}
    missing = [key for key, kind in wanted.items() if not isinstance(meta.get(key), kind)]
    if missing:
        sentence = f"params._meta needs {' and '.join(missing)}."
        raise ProtocolError(INVALID_PARAMS, sentence, status=400)


def check_routing_headers(headers: Headers, request: Request) -> None:
    if headers.get(names.REVISION) != meta_of(request)[REVISION_KEY]:
        raise mismatch("MCP-Protocol-Version must repeat the revision of params._meta.")
    if headers.get(names.METHOD) != request.method:
        raise mismatch("Mcp-Method must repeat the method.")
    member = NAME_PARAMS.get(request.method)
    value = request.params.get(member) if member else None
    # A missing member is a matter of the params, and -32602 says so further down.
    if isinstance(value, str):
        given = headers.get(names.NAME)
        matches = given is not None and decode_value(given) == value
        if not matches:
            raise mismatch(f"Mcp-Name must repeat params.{member}.")


def check_is_served(method: str, meta: Mapping[str, Any]) -> None:
    if meta[REVISION_KEY] not in SUPPORTED:
        raise unsupported(meta[REVISION_KEY], None)
    served(method, MODERN[-1])
    if meta.get(LOG_LEVEL_KEY, "info") not in LOG_LEVELS:
        sentence = f"{LOG_LEVEL_KEY} must be one of {', '.join(LOG_LEVELS)}."
        raise ProtocolError(INVALID_PARAMS, sentence, status=400)


def unsupported(requested: Any, request_id: str | int | None) -> ProtocolError:
    return ProtocolError(
        UNSUPPORTED_REVISION,
        f"This protocol version is not supported. Supported: {', '.join(SUPPORTED)} in each "
        f"request, and after initialize {', '.join(one.value for one in LEGACY)}.",
        {"supported": SUPPORTED, "requested": str(requested)[:80]},
        status=400,
        request_id=request_id,
    )


def check_without_answer(headers: Headers, message: Message | Batch) -> None:
    """Check what is not a single request: notifications and responses, alone or in a batch.

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


# The legacy handshake: which revision two peers agree on.


def negotiate(params: dict[str, Any]) -> Revision:
    """The revision to answer `initialize` with: the requested one, or the newest with a handshake.

    Raises ProtocolError when a required member is missing. A modern revision is never agreed on
    by handshake (2026-07-28, basic/lifecycle).
    """
    requested = params.get("protocolVersion")
    if not isinstance(requested, str):
        raise missing("protocolVersion")
    if not isinstance(params.get("capabilities"), dict):
        raise missing("capabilities")
    client = params.get("clientInfo")
    if not isinstance(client, dict):
        raise missing("clientInfo")
    for name in ("name", "version"):
        if not isinstance(client.get(name), str):
            raise missing(f"clientInfo.{name}")
    revision = Revision.parse(requested)
    if revision is None or revision.era is Era.MODERN:
        return LATEST_LEGACY
    return revision


def missing(name: str) -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, f"initialize needs {name}.")

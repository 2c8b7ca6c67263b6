"""Which threads answer an exchange, by what it asks for."""

from __future__ import annotations

from typing import Any

from mcp_django.exposure.tools import BUILT_IN, WRITES, Lane, code_uri
from mcp_django.protocol.jsonrpc import Response
from mcp_django.transports.exchanges import Exchange

BUILT_IN_READS = BUILT_IN - WRITES


def lane_of(exchange: Exchange) -> Lane:
    """Code of the project may be slow. Everything of ours is quick, or told to stop, except that
    an answer of the client is written down.
    """
    if any(isinstance(notice, Response) for notice in exchange.notices) and not exchange.calls:
        return Lane.STORE
    is_ours = all(name in BUILT_IN_READS for name in tools_called(exchange))
    if is_ours and not any(code_uri(uri) for uri in uris_named(exchange)):
        return Lane.QUERY
    return Lane.WORK


def tools_called(exchange: Exchange) -> list[str]:
    """Names in tools/call, which nobody has looked at yet."""
    found = [call.request.params.get("name") for call in exchange.requests]
    return [name for name in found if isinstance(name, str)]


def uris_named(exchange: Exchange) -> list[Any]:
    """URIs in resources/read, read_resource and completion/complete, as they came."""
    params = [call.request.params for call in exchange.requests]
    parts = [part for one in params for part in (one, one.get("arguments"), one.get("ref"))]
    return [part["uri"] for part in parts if isinstance(part, dict) and "uri" in part]

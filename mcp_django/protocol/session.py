"""The legacy handshake: which revision two peers agree on."""

from __future__ import annotations

from typing import Any

from mcp_django.protocol.errors import INVALID_PARAMS, ProtocolError
from mcp_django.protocol.revisions import LATEST_LEGACY, Era, Revision


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

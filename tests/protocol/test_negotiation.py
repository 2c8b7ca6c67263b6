"""Which era a message belongs to. The ladder of its envelope: transports/test_endpoint.py."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.negotiation import (
    Route,
    negotiate,
    open_envelope,
    route,
)
from mcp_django.protocol.revisions import Revision
from tests.spec import requirement

PREFIX = "io.modelcontextprotocol/"
MODERN, LEGACY, UNKNOWN = "2026-07-28", "2025-06-18", "2099-01-01"
META = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": {}}


def headers(version=None, **more):
    named = {"mcp-protocol-version": version, **more}
    return Headers((name.encode(), value.encode()) for name, value in named.items() if value)


def request(method="tools/list", *, meta=None, **params):
    return Request(1, method, params | ({} if meta is None else {"_meta": meta}))


# Evidence and routes


VERSIONS = (None, LEGACY, MODERN, UNKNOWN)
METHODS = ("initialize", "server/discover", "subscriptions/listen", "tools/list", "nothing")


def expected_route(version, has_envelope, method):
    """The table of the specification, as one would say it."""
    if has_envelope:
        return Route.MODERN
    if version == UNKNOWN:
        return Route.UNSUPPORTED
    if method == "initialize":
        return Route.HANDSHAKE
    if version == MODERN or method in ("server/discover", "subscriptions/listen"):
        return Route.MODERN
    return Route.LEGACY


@requirement("envelope:body-decides")
@pytest.mark.parametrize(
    ("version", "has_envelope", "method"), list(product(VERSIONS, (False, True), METHODS))
)
def test_the_body_decides_before_the_header(version, has_envelope, method):
    sent = request(method, meta=META if has_envelope else {})

    taken = route(headers(version), sent)

    assert taken is expected_route(version, has_envelope, method)


# What an envelope says


def test_an_envelope_tells_revision_client_and_capabilities():
    client = {"name": "c", "version": "1"}
    capabilities: dict[str, Any] = {"elicitation": {}}
    said = {PREFIX + "clientInfo": client, PREFIX + "clientCapabilities": capabilities}
    sent = headers(MODERN, **{"mcp-method": "tools/list"})

    found = open_envelope(sent, request(meta=META | said))

    assert found.revision is Revision.V2026_07_28
    assert (found.client, found.capabilities) == (client, capabilities)
    assert open_envelope(headers(), request("initialize", clientInfo=client)).client == client


# The handshake of the legacy era

CLIENT = {"name": "test", "version": "1"}


def params(**members):
    return {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT} | members


@requirement("lifecycle:version-agreed", "lifecycle:version-offered")
@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        *((revision.value, revision) for revision in list(Revision)[:4]),
        # The modern era has no handshake.
        *(
            (version, Revision.V2025_11_25)
            for version in ("2026-07-28", "1.0.0", "2099-01-01", "", "2025-06-18 ", "\x00")
        ),
    ],
)
def test_the_requested_revision_is_agreed_on_or_else_the_newest_with_a_handshake(
    requested, answered
):
    assert negotiate(params(protocolVersion=requested)) is answered


@requirement("lifecycle:params-required")
@pytest.mark.parametrize("member", ["protocolVersion", "capabilities", "clientInfo"])
@pytest.mark.parametrize("value", ["absent", None, 1, [], True])
def test_a_required_member_that_is_missing_or_of_another_type_is_named(member, value):
    broken = params(**{member: value})
    if value == "absent":
        del broken[member]

    with pytest.raises(ProtocolError, match=rf"needs {member}\.") as caught:
        negotiate(broken)
    assert (caught.value.code, caught.value.status) == (-32602, 200)


@pytest.mark.parametrize("member", ["name", "version"])
def test_a_client_has_a_name_and_a_version_and_what_it_says_besides_is_ignored(member):
    client = {**CLIENT, "title": "Test", "icons": []}

    with pytest.raises(ProtocolError, match=rf"needs clientInfo\.{member}\."):
        negotiate(params(clientInfo={**client, member: 1}))

    agreed = negotiate(params(clientInfo=client, capabilities={"x": 1}, more=1))
    assert agreed is Revision.V2025_06_18

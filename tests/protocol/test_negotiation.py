"""Which era a message belongs to, and the ladder that a modern request climbs."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.jsonrpc import Batch, Notification, Request, Response
from mcp_django.protocol.negotiation import (
    LOG_LEVELS,
    Route,
    check_without_answer,
    meta_of,
    negotiate,
    open_envelope,
    route,
)
from mcp_django.protocol.revisions import Revision
from tests.spec import requirement

PREFIX = "io.modelcontextprotocol/"
MODERN, LEGACY, UNKNOWN = "2026-07-28", "2025-06-18", "2099-01-01"
META = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": {}}


def envelope(**changed):
    return META | {PREFIX + name: value for name, value in changed.items()}


def headers(*pairs, **named):
    """Headers by their lower-case names with underscores."""
    both = [*pairs, *((name.replace("_", "-"), value) for name, value in named.items())]
    return Headers((name.encode(), value.encode()) for name, value in both if value is not None)


def request(method="tools/list", *, meta=None, **params):
    return Request(1, method, params | ({} if meta is None else {"_meta": meta}))


def modern_headers(method="tools/list", **changed):
    return headers(**({"mcp_protocol_version": MODERN, "mcp_method": method} | changed))


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

    taken = route(headers(mcp_protocol_version=version), sent)

    assert taken is expected_route(version, has_envelope, method)


@pytest.mark.parametrize("meta", [None, [], "x", 1, {"protocolVersion": MODERN}])
def test_meta_without_the_key_is_no_envelope(meta):
    params = {"_meta": meta}

    assert route(headers(), Request(1, "tools/list", params)) is Route.LEGACY
    assert meta_of(Request(1, "x", params)) == (meta if isinstance(meta, dict) else {})


@pytest.mark.parametrize("value", [None, 1, "", [], LEGACY, UNKNOWN])
def test_the_key_makes_an_envelope_whatever_its_value(value):
    meta = {PREFIX + "protocolVersion": value}

    assert route(headers(), request(meta=meta)) is Route.MODERN


# What an envelope says


def test_an_envelope_tells_revision_client_and_capabilities():
    client = {"name": "c", "version": "1"}
    capabilities: dict[str, Any] = {"elicitation": {}}
    meta = envelope(clientInfo=client, clientCapabilities=capabilities)

    found = open_envelope(modern_headers(), request(meta=meta))

    assert found.revision is Revision.V2026_07_28
    assert (found.client, found.capabilities) == (client, capabilities)


LIST = ("tools/list", {})
READABLE = [
    # Headers, the method with its params, and members of the envelope.
    *(({}, LIST, {PREFIX + "clientInfo": client}) for client in (None, "c", 1, [])),
    ({"mcp_session_id": "a", "last_event_id": "b", "mcp_param_x": "c"}, LIST, {}),
    ({}, LIST, {"traceparent": "00-0-0-00", "x/y": 1, "progressToken": 1}),
    # A name may be encoded, and is nobody's matter where the method names nothing.
    *(
        ({"mcp_name": header}, ("tools/call", {"name": name}), {})
        for header, name in (
            ("  a\t", "a"), ("=?base64?w6k=?=", "é"), ("=?base64?YQ==?=", "a"),
            ("=?base64??=", ""), ("", ""), ("=?base64?a", "=?base64?a"),
        )
    ),
    ({"mcp_name": "=?base64?#?="}, LIST, {}),
    # One that is no text is a matter of the params.
    *(
        ({"mcp_name": header}, (method, {member: value}), {})
        for value in (None, 1, ["a"], {}, True)
        for header in (None, "a", "=?base64?broken")
        for method, member in (("tools/call", "name"), ("resources/read", "uri"))
    ),
]  # fmt: skip


@requirement(
    "envelope:client-optional",
    "envelope:encoded-values",
    "envelope:header-whitespace",
    "envelope:no-session",
    "results:trace-accepted",
)
@pytest.mark.parametrize(("changed", "sent", "meta"), READABLE)
def test_what_a_client_need_not_say_and_what_it_says_besides_changes_nothing(changed, sent, meta):
    method, params = sent

    opened = open_envelope(
        modern_headers(method, **changed), request(method, meta={**META, **meta}, **params)
    )

    assert (opened.revision, opened.client) == (Revision.V2026_07_28, {})


@requirement("envelope:body-decides")
@pytest.mark.parametrize("version", [None, LEGACY, "2024-11-05", MODERN])
@pytest.mark.parametrize("client", [{"name": "c", "version": "1"}, 1])
def test_initialize_without_an_envelope_is_a_handshake_whatever_revision_the_header_has(
    version, client
):
    sent = request("initialize", clientInfo=client)

    opened = open_envelope(headers(mcp_protocol_version=version), sent)

    # A broken client is left to the handshake.
    assert opened.revision is Revision.V2025_11_25
    assert opened.client == ({} if client == 1 else client)


# The ladder. In which order its rungs stand: tests/transports/http/test_endpoint.py.

TWICE, OLD = (("mcp-name", "x"), ("Mcp-Name", "x")), envelope(protocolVersion=LEGACY)
RUNGS = [
    (headers(*TWICE, mcp_protocol_version=MODERN), LIST, META, -32020, "more than once"),
    *(
        (modern_headers(), LIST, meta, -32602, sentence)
        for meta, sentence in (
            (None, "protocolVersion and .*clientCapabilities"),
            (envelope(clientCapabilities=[1]), "needs .*clientCapabilities"),
            (envelope(protocolVersion=1), "protocolVersion"),
            *(
                (envelope(logLevel=level), "logLevel")
                for level in ("", "INFO", "warn", "trace", 1, None, [], {}, ["info"])
            ),
        )
    ),
    (modern_headers(mcp_protocol_version=None), LIST, META, -32020, "MCP-Protocol-Version"),
    (modern_headers("Tools/List"), LIST, META, -32020, "Mcp-Method"),
    *(
        (modern_headers(method), (method, {name: "a"}), META, -32020, f"Mcp-Name .*params.{name}")
        for method, name in (
            ("tools/call", "name"),
            ("resources/read", "uri"),
            ("tasks/get", "taskId"),
        )
    ),
    (modern_headers(mcp_protocol_version=LEGACY), LIST, OLD, -32022, "not supported"),
    (modern_headers("ping"), ("ping", {}), META, -32601, "not found"),
]


@requirement(
    "envelope:meta-required",
    "envelope:revision-header",
    "envelope:method-header",
    "envelope:method-not-found",
    "envelope:name-header",
    "envelope:headers-once",
    "envelope:removed-methods",
    "errors:id-echoed",
    "logging:unknown-level",
)
@pytest.mark.parametrize(("sent", "message", "meta", "code", "sentence"), RUNGS)
def test_a_request_that_fails_one_rung_gets_its_error_and_keeps_its_id(
    sent, message, meta, code, sentence
):
    method, params = message

    with pytest.raises(ProtocolError) as caught:
        open_envelope(sent, request(method, meta=meta, **params))

    error, status = caught.value, 404 if code == -32601 else 400
    assert (error.code, error.status, error.request_id) == (code, status, 1)
    assert re.search(sentence, error.message)


@requirement("envelope:unsupported-revision")
@pytest.mark.parametrize("version", [UNKNOWN, "x" * 200])
def test_an_unsupported_version_is_answered_with_those_that_are(version):
    meta = envelope(protocolVersion=version)

    with pytest.raises(ProtocolError) as caught:
        open_envelope(modern_headers(mcp_protocol_version=version), request(meta=meta))

    assert caught.value.data == {"supported": [MODERN], "requested": version[:80]}


@requirement("logging:unknown-level")
def test_a_log_level_is_that_of_the_call_and_who_names_none_wants_no_log_messages():
    for level in LOG_LEVELS:
        meta = envelope(logLevel=level)
        assert open_envelope(modern_headers(), request(meta=meta)).log_level == level

    assert open_envelope(modern_headers(), request(meta=META)).log_level is None
    assert open_envelope(headers(), request()).log_level is None


names = st.sampled_from(["mcp-protocol-version", "MCP-Method", "mcp-name", "accept"])
texts = st.sampled_from([MODERN, LEGACY, UNKNOWN, "tools/call", "a", "=?base64?YQ==?=", ""])
keys = st.sampled_from([PREFIX + "protocolVersion", PREFIX + "clientCapabilities", "x"])


@given(
    st.lists(st.tuples(names, texts)),
    st.sampled_from(["tools/call", "initialize", "server/discover", "ping", "x"]),
    st.none() | st.dictionaries(keys, texts | st.just({}) | st.none()),
)
def test_any_request_has_an_envelope_or_a_protocol_error_with_its_id(pairs, method, meta):
    try:
        revision = open_envelope(headers(*pairs), request(method, meta=meta, name="a")).revision
    except ProtocolError as error:
        answered = error.request_id
    else:
        answered = 1 if revision in Revision else None

    assert answered == 1


# Notifications, responses and batches

NOTIFICATION = Notification("notifications/cancelled", {"requestId": 1})
RESPONSE = Response(1)
MODERN_BATCH = Batch((request("tools/list"), request("tools/list", meta=META)))
BATCH = Batch((request("tools/list"), NOTIFICATION))


@requirement("batch:refused", "envelope:one-message")
@pytest.mark.parametrize(
    ("version", "message", "code"),
    [
        *((LEGACY, message, None) for message in (NOTIFICATION, RESPONSE)),
        (UNKNOWN, NOTIFICATION, -32022),
        (MODERN, RESPONSE, -32600),
        *((version, BATCH, None) for version in (None, "2025-03-26")),
        *((version, BATCH, -32600) for version in ("2024-11-05", "2025-06-18", MODERN)),
        ("2025-03-26", MODERN_BATCH, -32600),
    ],
)
def test_what_is_no_single_request_is_taken_by_its_era(version, message, code):
    try:
        check_without_answer(headers(mcp_protocol_version=version), message)
    except ProtocolError as error:
        answer = error.code, error.status
    else:
        answer = None, 400

    assert answer == (code, 400)


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

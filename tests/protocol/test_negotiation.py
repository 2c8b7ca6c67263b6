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
    Evidence,
    Route,
    check_without_answer,
    evidence_of,
    meta_of,
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


def refusal(headers, request):
    with pytest.raises(ProtocolError) as caught:
        open_envelope(headers, request)
    return caught.value


# Evidence and routes


@requirement("envelope:header-whitespace")
@pytest.mark.parametrize(
    ("value", "evidence"),
    [
        (None, Evidence.ABSENT),
        *((one.value, Evidence.LEGACY) for one in list(Revision)[:4]),
        (MODERN, Evidence.MODERN),
        (f" {MODERN}\t", Evidence.MODERN),
        ("", Evidence.UNKNOWN),
        (UNKNOWN, Evidence.UNKNOWN),
        (f"{MODERN},{MODERN}", Evidence.UNKNOWN),
        ("draft", Evidence.UNKNOWN),
    ],
)
def test_the_header_is_evidence_of_an_era(value, evidence):
    assert evidence_of(headers(mcp_protocol_version=value)) is evidence


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
    found = route(
        headers(mcp_protocol_version=version),
        request(method, meta=META if has_envelope else {}),
    )

    assert found is expected_route(version, has_envelope, method)


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


@requirement("envelope:client-optional")
@pytest.mark.parametrize("client", [None, "c", 1, []])
def test_a_client_need_not_say_who_it_is(client):
    silent = open_envelope(modern_headers(), request(meta=META))
    odd = open_envelope(modern_headers(), request(meta=envelope(clientInfo=client)))

    assert silent.client == odd.client == {}


@requirement("results:trace-accepted", "envelope:no-session")
def test_trace_and_session_marks_change_nothing():
    meta = META | {"traceparent": "00-0-0-00", "x/y": 1, "progressToken": 1}
    marked = modern_headers(mcp_session_id="a", last_event_id="b", mcp_param_x="c")

    assert open_envelope(marked, request(meta=meta)).revision is Revision.V2026_07_28


@requirement("http:revision-assumed")
@pytest.mark.parametrize(
    ("version", "revision"),
    [
        (None, Revision.V2025_03_26),
        ("2024-11-05", Revision.V2024_11_05),
        ("2025-03-26", Revision.V2025_03_26),
        ("2025-06-18", Revision.V2025_06_18),
        ("2025-11-25", Revision.V2025_11_25),
    ],
)
def test_a_legacy_request_has_the_revision_of_its_header(version, revision):
    found = open_envelope(headers(mcp_protocol_version=version), request())

    assert (found.revision, found.client, found.capabilities) == (revision, {}, {})


@requirement("envelope:body-decides")
@pytest.mark.parametrize("version", [None, LEGACY, "2024-11-05", MODERN])
def test_initialize_without_an_envelope_is_a_handshake_whatever_revision_the_header_has(version):
    client = {"name": "c", "version": "1"}

    found = open_envelope(
        headers(mcp_protocol_version=version), request("initialize", clientInfo=client)
    )

    assert found.revision is Revision.V2025_11_25
    assert found.client == client


def test_a_handshake_of_a_broken_client_is_left_to_the_handshake():
    assert open_envelope(headers(), request("initialize", clientInfo=1)).client == {}


# The ladder: each rung, with everything that stands above it in order.

TWICE = (("mcp-name", "x"), ("Mcp-Name", "x"))
RUNGS = [
    (headers(*TWICE, mcp_protocol_version=MODERN), request(meta=META), -32020, "more than once"),
    (modern_headers(), request(), -32602, "protocolVersion and .*clientCapabilities"),
    (
        modern_headers(),
        request(meta={PREFIX + "clientCapabilities": {}}),
        -32602,
        "needs .*protocolVersion",
    ),
    (
        modern_headers(),
        request(meta={PREFIX + "protocolVersion": MODERN}),
        -32602,
        "needs .*clientCapabilities",
    ),
    (
        modern_headers(),
        request(meta=envelope(clientCapabilities=[])),
        -32602,
        "needs .*clientCapabilities",
    ),
    (modern_headers(), request(meta=envelope(protocolVersion=1)), -32602, "protocolVersion"),
    (modern_headers(mcp_protocol_version=None), request(meta=META), -32020, "MCP-Protocol"),
    (modern_headers(mcp_protocol_version=LEGACY), request(meta=META), -32020, "MCP-Protocol"),
    (modern_headers(mcp_method=None), request(meta=META), -32020, "Mcp-Method"),
    (modern_headers("Tools/List"), request(meta=META), -32020, "Mcp-Method"),
    (
        modern_headers("tools/call"),
        request("tools/call", meta=META, name="a"),
        -32020,
        r"Mcp-Name must repeat params\.name",
    ),
    (
        modern_headers("resources/read", mcp_name="b"),
        request("resources/read", meta=META, uri="a"),
        -32020,
        r"Mcp-Name must repeat params\.uri",
    ),
    (
        modern_headers("tasks/get"),
        request("tasks/get", meta=META, taskId="a"),
        -32020,
        r"Mcp-Name must repeat params\.taskId",
    ),
    (
        modern_headers("tools/call", mcp_name="=?base64?YR==?="),
        request("tools/call", meta=META, name="a"),
        -32020,
        "base64",
    ),
    (
        modern_headers(mcp_protocol_version=LEGACY),
        request(meta=envelope(protocolVersion=LEGACY)),
        -32022,
        "not supported",
    ),
    (
        modern_headers(mcp_protocol_version=UNKNOWN),
        request(meta=envelope(protocolVersion=UNKNOWN)),
        -32022,
        "not supported",
    ),
    (modern_headers("nothing"), request("nothing", meta=META), -32601, "not found"),
    *(
        (modern_headers(method), request(method, meta=META), -32601, "not found")
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "")
    ),
    *(
        (modern_headers(), request(meta=envelope(logLevel=level)), -32602, "logLevel")
        for level in ("", "INFO", "warn", "trace", 1, None, [], {}, ["info"])
    ),
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
@pytest.mark.parametrize(("sent", "message", "code", "sentence"), RUNGS)
def test_a_request_that_fails_one_rung_gets_its_error_and_keeps_its_id(
    sent, message, code, sentence
):
    error = refusal(sent, message)

    status = 404 if code == -32601 else 400
    assert (error.code, error.status, error.request_id) == (code, status, 1)
    assert re.search(sentence, error.message)


OLD = envelope(protocolVersion=LEGACY)
OLD_HEADER = {"mcp_protocol_version": LEGACY}


@pytest.mark.parametrize(
    ("first", "given_headers", "given_request"),
    [
        # Each fails the rung named first and the one behind it.
        (-32020, headers(*TWICE, mcp_protocol_version=MODERN), request()),
        (-32602, headers(**OLD_HEADER), request(meta=envelope(clientCapabilities=1))),
        ("MCP-Protocol-Version", headers(mcp_method="x"), request(meta=META)),
        ("Mcp-Method", modern_headers("x"), request("tools/call", meta=META, name="a")),
        (
            "Mcp-Name",
            modern_headers("tools/call", **OLD_HEADER),
            request("tools/call", meta=OLD, name="a"),
        ),
        (-32022, modern_headers("nothing", **OLD_HEADER), request("nothing", meta=OLD)),
        (-32601, modern_headers("ping"), request("ping", meta=envelope(logLevel=1))),
    ],
)
def test_of_two_neighbouring_failures_the_first_is_told(first, given_headers, given_request):
    error = refusal(given_headers, given_request)

    assert first == error.code or str(first) in error.message


@requirement("envelope:unsupported-revision")
@pytest.mark.parametrize("version", [LEGACY, UNKNOWN, "x" * 200])
def test_an_unsupported_version_is_answered_with_those_that_are(version):
    meta = envelope(protocolVersion=version)

    error = refusal(modern_headers(mcp_protocol_version=version), request(meta=meta))

    assert error.data == {"supported": [MODERN], "requested": version[:80]}


@requirement("logging:unknown-level")
@pytest.mark.parametrize("level", LOG_LEVELS)
def test_each_of_the_eight_log_levels_is_known_and_kept_for_the_call(level):
    meta = envelope(logLevel=level)

    assert open_envelope(modern_headers(), request(meta=meta)).log_level == level
    assert len(set(LOG_LEVELS)) == 8


def test_who_names_no_log_level_wants_no_log_messages():
    assert open_envelope(modern_headers(), request(meta=META)).log_level is None
    assert open_envelope(headers(), request()).log_level is None


@pytest.mark.parametrize("value", [None, 1, ["a"], {}, True])
@pytest.mark.parametrize("given_name", [None, "a", "=?base64?broken"])
@pytest.mark.parametrize(("method", "member"), [("tools/call", "name"), ("resources/read", "uri")])
def test_a_name_that_is_no_string_is_a_matter_of_the_params(method, member, value, given_name):
    found = open_envelope(
        modern_headers(method, mcp_name=given_name),
        request(method, meta=META, **{member: value}),
    )

    assert found.revision is Revision.V2026_07_28


@requirement("envelope:encoded-values", "envelope:header-whitespace")
@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a", "a"),
        ("  a\t", "a"),
        ("=?base64?w6k=?=", "é"),
        ("=?base64?YQ==?=", "a"),
        ("=?base64??=", ""),
        ("", ""),
        ("=?base64?a", "=?base64?a"),
    ],
)
def test_the_name_may_be_encoded(header, name):
    found = open_envelope(
        modern_headers("tools/call", mcp_name=header),
        request("tools/call", meta=META, name=name),
    )

    assert found.revision is Revision.V2026_07_28


def test_a_name_header_is_ignored_where_no_member_is_named():
    found = open_envelope(modern_headers(mcp_name="=?base64?#?="), request(meta=META))

    assert found.revision is Revision.V2026_07_28


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
        (None, NOTIFICATION, None),
        (LEGACY, NOTIFICATION, None),
        (MODERN, NOTIFICATION, None),
        (UNKNOWN, NOTIFICATION, -32022),
        (None, RESPONSE, None),
        (LEGACY, RESPONSE, None),
        (MODERN, RESPONSE, -32600),
        (UNKNOWN, RESPONSE, -32022),
        (None, BATCH, None),
        ("2024-11-05", BATCH, -32600),
        ("2025-03-26", BATCH, None),
        ("2025-06-18", BATCH, -32600),
        ("2025-11-25", BATCH, -32600),
        (MODERN, BATCH, -32600),
        (UNKNOWN, BATCH, -32022),
        (None, MODERN_BATCH, -32600),
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

"""The ladders of an HTTP request, rung by rung: status, code, id and headers of each refusal."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.methods import LOG_LEVELS
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.endpoint import understand
from mcp_django.transports.exchanges import JSON, accepted_by
from tests.clients import CheckedClient, WSGIClient
from tests.oracle import assert_valid_message
from tests.spec import requirement

MODERN, LEGACY, UNKNOWN = "2026-07-28", "2025-06-18", "2099-01-01"
PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": MODERN, PREFIX + "clientCapabilities": {}}
ABSENT = object()
NULL = None
PLAIN = {
    "host": "testserver",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def sent(changed, *more):
    """The headers of a good POST, some changed or (None) left out, and some more lines."""
    pairs = [*(PLAIN | changed).items(), *more]
    return Headers(
        (name.encode(), value.encode("latin-1")) for name, value in pairs if value is not None
    )


def message(method: str = "tools/list", *, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def encoded(body):
    return body if isinstance(body, bytes | None) else json.dumps(body).encode()


def modern(method="tools/list", **changed):
    """The headers of a modern request."""
    return {"mcp-protocol-version": MODERN, "mcp-method": method} | {
        name.replace("_", "-"): value for name, value in changed.items()
    }


def with_meta(method="tools/list", *, changed=None, **params):
    return message(method, _meta=META | (changed or {}), **params)


def old(version):
    return {"mcp-protocol-version": version}


# What is wrong with a request: each row fails one rung only, or the first of two.


TWICE = (("Mcp-Method", "tools/list"), ("mcp-method", "tools/list"))
NAME_TWICE = (("mcp-name", "x"), ("Mcp-Name", "x"))
TWO_SESSIONS = (("mcp-session-id", "a"), ("Mcp-Session-Id", "a"))
FIRST = with_meta("tools/call", name="a")
LISTEN = with_meta("subscriptions/listen", notifications={})
OLD = {PREFIX + "protocolVersion": LEGACY}
LOUD = {PREFIX + "logLevel": "trace"}
LONG = "x" * 200
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
NEW_PING = with_meta("ping", changed={PREFIX + "protocolVersion": UNKNOWN})
LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


#: By status, code, id (ABSENT is not there) and perhaps words of the refusal: names, headers and
#: bodies of POSTs.
POSTS = {
    # 3: size
    (413, -32600, NULL): [
        ("too long", {}, None),
        ("size before content type", {"content-type": "text/plain"}, None),
    ],
    (413, -32600, ABSENT): [("too long, modern", modern(), None)],
    # 4: content type
    (415, -32600, NULL): [
        *(
            (f"type {kind!r}", {"content-type": kind}, message())
            for kind in (None, "", "text/plain", "application/jsonp", "multipart/form-data")
        ),
        *(
            (f"coding {coding}", {"content-encoding": coding}, message())
            for coding in ("gzip", "br", "identity, gzip")
        ),
    ],
    (415, -32600, ABSENT): [
        ("type before accept", modern(content_type="text/plain", accept="text/html"), message()),
    ],
    # 5: accept
    (406, -32600, NULL): [
        (f"accept {kinds!r}", {"accept": kinds}, message())
        for kinds in ("text/html", f"{JSON};q=0")
    ],
    (406, -32600, ABSENT): [
        ("accept before JSON", modern(accept="text/html"), b"{"),
        ("listening accepts", modern("subscriptions/listen", accept=JSON), LISTEN),
    ],
    # 6: JSON. Without an id that could be read: null below 2025-11-25, absent since.
    (400, -32700, NULL): [
        *((f"JSON {version}", old(version), b"{") for version in (None, *LEGACY_VERSIONS[:3])),
        ("empty", {}, b""),
    ],
    (400, -32700, ABSENT): [
        (f"JSON {version}", old(version), b"{") for version in ("2025-11-25", MODERN, UNKNOWN)
    ],
    # 7: one message, but for batches in one revision
    (400, -32600, ABSENT): [
        ("modern number", modern(), 1),
        ("modern array", modern(), [with_meta()]),
        ("modern response", modern(), {"jsonrpc": "2.0", "id": 1, "result": {}}),
        ("batch 2025-11-25", old("2025-11-25"), [message()]),
    ],
    (400, -32600, NULL): [
        *((f"array {version}", old(version), [message()]) for version in ("2024-11-05", LEGACY)),
        ("modern in a batch", old("2025-03-26"), [message(), with_meta()]),
        ("legacy null id", old(LEGACY), message(request_id=None)),
    ],
    (400, -32600, NULL, "1 to 50 messages"): [
        *((f"batch of {length}", {}, [message()] * length) for length in (0, 51)),
    ],
    (400, -32600, 0): [("array params", old(LEGACY), message(request_id=0) | {"params": [1]})],
    (400, -32600, "a"): [("no method", modern(), {"jsonrpc": "2.0", "id": "a"})],
    # 8: notifications
    (400, -32022, ABSENT): [
        ("batch, unknown", old(UNKNOWN), [message()]),
        ("notification, unknown", old(UNKNOWN), INITIALIZED),
    ],
    # 10: _meta
    (400, -32602, 1, "protocolVersion and .*clientCapabilities"): [
        ("no _meta", modern(), message()),
        ("discover, no header", {}, message("server/discover")),
    ],
    (400, -32602, 1, "needs .*clientCapabilities"): [
        ("_meta before header", {}, message(_meta={PREFIX + "protocolVersion": MODERN})),
        ("a list", modern(), with_meta(changed={PREFIX + "clientCapabilities": [1]})),
    ],
    (400, -32602, 1, "needs .*protocolVersion"): [
        (f"revision {meta}", modern(), with_meta(changed=meta))
        for meta in ({PREFIX + "protocolVersion": value} for value in (None, 1, []))
    ],
    # 11: version header
    (400, -32020, 1, "MCP-Protocol-Version"): [
        ("no version", modern(mcp_protocol_version=None), with_meta()),
        ("header before version", modern(mcp_protocol_version=UNKNOWN), with_meta()),
        ("version before method", old(LEGACY), with_meta()),
    ],
    # 12: method header
    (400, -32020, 1, "Mcp-Method"): [
        ("another case", modern("Tools/List"), with_meta()),
        ("method before name", modern("x"), FIRST),
    ],
    # 13: name header
    (400, -32020, 1, "Mcp-Name must repeat params.name"): [
        ("no name", modern("tools/call"), FIRST),
        ("another name", modern("tools/call", mcp_name="A"), FIRST),
        (
            "name before version",
            modern("tools/call", mcp_protocol_version=LEGACY),
            with_meta("tools/call", changed=OLD, name="a"),
        ),
    ],
    **{
        (400, -32020, 1, f"Mcp-Name must repeat params.{member}"): [
            (f"no {member}", modern(method), with_meta(method, **{member: "a"}))
        ]
        for method, member in (("resources/read", "uri"), ("tasks/get", "taskId"))
    },
    # 14: version
    (400, -32022, 1, "not supported"): [
        ("old", modern(mcp_protocol_version=LEGACY), with_meta(changed=OLD)),
        ("before method", modern("ping", mcp_protocol_version=UNKNOWN), NEW_PING),
        *(
            (f"{method} {version[:20]}", old(version), message(method))
            for method in ("tools/list", "server/discover", "initialize")
            for version in ("", UNKNOWN, "draft", f"{MODERN},{MODERN}", LONG)
        ),
    ],
    # 15: method
    (404, -32601, 1): [("before log level", modern("ping"), with_meta("ping", changed=LOUD))],
    # 17: log level
    (400, -32602, 1, "logLevel"): [
        (f"level {level!r}", modern(), with_meta(changed={PREFIX + "logLevel": level}))
        for level in ("", "INFO", "warn", "trace", 1, None, [], {}, ["info"])
    ],
}

#: A name, the refusal, the verb, headers, more lines of headers, and the body.
ROWS = [
    # 2: verb
    *(
        (f"{verb} {version}", (405, -32600, id), verb, old(version), (), message())
        for verb in ("OPTIONS", "HEAD", "PUT", "PATCH", "post", "get")
        for version, id in [(None, NULL), (LEGACY, NULL), ("2025-11-25", ABSENT), (MODERN, ABSENT)]
    ),
    *(
        (f"{verb} {version}", (status, code, ABSENT), verb, old(version), (), message())
        for verb in ("GET", "DELETE")
        for version, status, code in [(MODERN, 405, -32600), (UNKNOWN, 400, -32022)]
    ),
    ("PUT unknown", (405, -32600, ABSENT), "PUT", old(UNKNOWN), (), message()),
    ("verb before size", (405, -32600, NULL), "PUT", {}, (), None),
    *(
        (f"{verb} in two sessions", (400, -32600, NULL), verb, {}, TWO_SESSIONS, message())
        for verb in ("GET", "DELETE", "POST")
    ),
    # 9: routing headers twice
    ("header twice", (400, -32020, 1), "POST", old(MODERN), TWICE, with_meta()),
    ("name twice", (400, -32020, 1), "POST", old(MODERN), NAME_TWICE, with_meta()),
    ("twice before _meta", (400, -32020, 1), "POST", old(MODERN), TWICE, message()),
    *(
        (name, refusal, "POST", headers, (), body)
        for refusal, requests in POSTS.items()
        for name, headers, body in requests
    ),
]


@requirement(
    "http:refusals",
    "http:get",
    "http:unsupported-revision",
    "subscriptions:stream",
    "envelope:post-only",
    "envelope:supported-subset",
    "envelope:unsupported-revision",
    "envelope:meta-required",
    "envelope:one-message",
    "envelope:revision-header",
    "envelope:method-header",
    "envelope:method-not-found",
    "envelope:name-header",
    "envelope:headers-once",
    "envelope:removed-methods",
    "batch:length",
    "batch:refused",
    "errors:id-echoed",
    "errors:json-body",
    "errors:reserved-codes",
    "logging:unknown-level",
)
@pytest.mark.parametrize(
    ("refused", "verb", "headers", "more", "body"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_a_request_that_fails_a_rung_is_refused_in_the_words_of_that_rung(
    refused, verb, headers, more, body
):
    exchange = understand(verb, sent(headers, *more), encoded(body))
    (status, code, id, *words), version = refused, headers.get("mcp-protocol-version")

    refusal = exchange.refusal
    assert refusal is not None
    assert exchange.calls == ()
    wire = json.loads(refusal.body)
    assert (refusal.status, wire["error"]["code"], wire.get("id", ABSENT)) == (status, code, id)
    assert all(re.search(word, wire["error"]["message"]) for word in words)
    allowed = "POST" if version == MODERN else "GET, POST, DELETE"
    assert refusal.headers == ((("Allow", allowed),) if status == 405 else ())
    if code == -32022:
        assert wire["error"]["data"] == {"supported": [MODERN], "requested": version[:80]}
    # Errors of the modern ladder are modern, whatever header is missing.
    is_modern = code in (-32020, -32022) or version == UNKNOWN
    revision = Revision.V2026_07_28 if is_modern else exchange.revision
    if verb == "POST":
        assert_valid_message(revision, "tools/list", refusal.body)


# Sessions and streams


@requirement("http:get", "http:one-path")
@pytest.mark.parametrize("body", [None, b"{", encoded(message())])
@pytest.mark.parametrize("version", [None, *LEGACY_VERSIONS])
@pytest.mark.parametrize(
    ("verb", "accept", "status"),
    [
        *(("GET", accept, None) for accept in (None, "", "*/*", "text/event-stream", "text/*")),
        *(("GET", accept, 406) for accept in (JSON, "text/html", "text/event-stream;q=0")),
        *(("DELETE", accept, None) for accept in (None, JSON, "text/html")),
    ],
)
def test_a_legacy_client_has_verbs_for_its_stream_and_for_the_end_of_its_session(
    verb, accept, status, version, body
):
    headers = old(version) | {"mcp-session-id": "abc", "content-type": None, "accept": accept}

    exchange = understand(verb, sent(headers), body)

    assert (exchange.refusal and exchange.refusal.status) == status
    assert (exchange.calls, exchange.notices) == ((), ())
    assert status or (exchange.verb, exchange.session_id) == (verb, "abc")


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}},
        {"jsonrpc": "2.0", "id": "q", "error": {"code": 1, "message": "x"}},
    ],
    ids=repr,
)
def test_what_needs_no_answer_is_kept_for_the_session(body):
    alone = understand("POST", sent(old("2025-03-26")), encoded(body))
    beside = understand("POST", sent(old("2025-03-26")), encoded([body, message("ping")]))

    assert len(alone.notices) == 1
    assert alone.notices == beside.notices
    assert len(beside.calls) == 1


# What is understood


NAMED = (("tools/call", "name"), ("resources/read", "uri"))


@requirement(
    "http:accept-absent",
    "http:revision-assumed",
    "envelope:body-decides",
    "envelope:client-optional",
    "envelope:encoded-values",
    "envelope:header-whitespace",
    "envelope:no-session",
    "results:trace-accepted",
)
@pytest.mark.parametrize(
    ("headers", "body", "revision"),
    [
        *(
            (modern(**changed), with_meta(), MODERN)
            for changed in (
                *({"accept": kinds} for kinds in (None, "*/*")),
                {"content_type": "Application/JSON; charset=utf-8"},
                {"content_encoding": "identity"},
                {"mcp_session_id": "x", "last_event_id": "1", "mcp_param_x": "c"},
                # A name is nobody's matter where the method names nothing.
                {"mcp_name": "=?base64?#?="},
                *({"method": "  tools/list "}, {"mcp_protocol_version": f" {MODERN}\t"}),
            )
        ),
        *(
            (modern(), with_meta(changed=meta), MODERN)
            for meta in (
                *({PREFIX + "clientInfo": client} for client in (None, "c", 1, [])),
                *({PREFIX + "logLevel": level} for level in LOG_LEVELS),
                {"traceparent": "00-0-0-00", "x/y": 1, "progressToken": 1},
            )
        ),
        *(
            (modern("tools/call", mcp_name=value), with_meta("tools/call", name=name), MODERN)
            for value, name in (
                ("  a\t", "a"), ("=?base64?w6k=?=", "é"), ("=?base64?YQ==?=", "a"),
                ("=?base64??=", ""), ("", ""), ("=?base64?a", "=?base64?a"),
            )
        ),
        # A name that is no text is a matter of the params.
        *(
            (modern(method, mcp_name=header), with_meta(method, **{member: value}), MODERN)
            for value in (None, 1, ["a"], {}, True)
            for header in (None, "a", "=?base64?broken")
            for method, member in NAMED
        ),
        ({}, message("nothing"), "2025-03-26"),
        # What is no envelope without its key, or no object
        *(
            ({}, message(_meta=meta), "2025-03-26")
            for meta in (None, [], "x", 1, {"protocolVersion": MODERN})
        ),
        *((old(version), message(), version) for version in LEGACY_VERSIONS),
        # A modern header on a plain handshake: the client of two eras asks for the older one.
        *(
            (old(version), message("initialize", clientInfo=1), "2025-11-25")
            for version in (None, "2024-11-05", LEGACY, MODERN)
        ),
    ],
)  # fmt: skip
def test_a_whole_request_is_one_call_of_its_revision(headers, body, revision):
    exchange = understand("POST", sent(headers), encoded(body))

    assert exchange.refusal is None
    assert not exchange.is_batch
    (made,) = exchange.requests
    assert made.request.method == body["method"]
    assert made.envelope.revision.value == exchange.revision.value == revision
    assert (made.envelope.client, made.envelope.capabilities) == ({}, {})


# Batches


@requirement("batch:no-handshake")
def test_a_handshake_in_a_batch_is_refused_alone_and_accept_may_stand_in_two_lines():
    exchange = understand("POST", sent({}), encoded([message("initialize")]))

    [error] = exchange.calls
    assert isinstance(error, ProtocolError)
    assert (error.code, error.request_id) == (-32600, 1)
    assert exchange.requests == ()
    split = sent({"accept": "application/json"}, ("Accept", "text/event-stream"))
    assert understand("POST", split, encoded(message())).refusal is None


def test_the_longest_batch_and_the_deepest_body_are_settings(settings):
    settings.MCP_DJANGO = {"MAX_BATCH": 2, "MAX_DEPTH": 3, "MAX_BODY": 1000}
    deep = encoded(message(a={"b": {}}))

    for length in (1, 2):
        assert understand("POST", sent({}), encoded([message()] * length)).refusal is None
    assert understand("POST", sent({}), encoded([message()] * 3)).refusal is not None
    refusals = [understand("POST", sent({}), body).refusal for body in (deep, None)]
    assert [refusal and refusal.status for refusal in refusals] == [400, 413]
    assert refusals[1] is not None
    assert b"1000 bytes" in refusals[1].body


# What an exchange says of itself


versions = st.sampled_from([None, MODERN, LEGACY, "2025-03-26", UNKNOWN, "", "\xe9"])
bodies: list[Any] = [message(), with_meta(), [message()], FIRST, message("initialize"), {}, []]
metas = st.dictionaries(
    st.sampled_from([PREFIX + "protocolVersion", PREFIX + "clientCapabilities", "x"]),
    st.sampled_from([MODERN, LEGACY, UNKNOWN, "a", "", None, {}]),
)
methods = st.sampled_from(["tools/call", "initialize", "server/discover", "ping", "x"])
requests = st.builds(lambda method, meta: message(method, _meta=meta, name="a"), methods, metas)
messages = st.binary() | (st.sampled_from(bodies) | requests).map(encoded)


@requirement("errors:json-body")
@given(
    st.sampled_from(["POST", "POST", "GET", "DELETE", "X"]),
    st.dictionaries(
        st.sampled_from(["accept", "mcp-method", "mcp-name"]),
        st.text("ab=?*/") | st.sampled_from(["tools/call", "initialize", "=?base64?YQ==?="]),
    ),
    versions,
    st.none() | messages,
)
def test_any_request_is_understood_or_refused(verb, changed, version, body):
    exchange = understand(verb, sent(changed | old(version)), body)

    if exchange.refusal is not None:
        assert exchange.refusal.status in (400, 404, 405, 406, 413, 415)
        assert json.loads(exchange.refusal.body)["error"]["message"]


# What an answer may be

SSE = "text/event-stream"
BOTH = f"{JSON}, {SSE}"
#: By Accept: whether JSON is allowed, whether a stream is, and whether it is named.
ACCEPTED = {
    **dict.fromkeys(
        (BOTH, f"{JSON.upper()};q=0.5, {SSE} ; q=0.001", f"{BOTH}, */*;q=0"), (True, True, True)
    ),
    **dict.fromkeys(
        (None, "", "*/*", "application/*, text/*", f"text/html, */*;q=0.1, {JSON};q=1.0"),
        (True, True, False),
    ),
    **dict.fromkeys(
        (JSON, "application/*", f"{BOTH};q=0", f"{BOTH}; Q = 0.000", f"*/*, text/*;q=0, {JSON}"),
        (True, False, False),
    ),
    SSE: (False, True, True),
    **dict.fromkeys(("text/*", f"*/*, {JSON};q=0"), (False, True, False)),
    **dict.fromkeys(("application/json+x, text/event-stream+x", "text/html"), (False,) * 3),
}


@requirement("http:accept-absent")
@pytest.mark.parametrize(("header", "accepted"), ACCEPTED.items())
def test_accept_says_what_an_answer_may_be_and_names_a_stream(header, accepted):
    assert accepted_by(header) == accepted


@given(st.text())
def test_any_accept_is_answered(header):
    assert {*accepted_by(header)} <= {True, False}


# A person who opens the address

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient], ids=["asgi", "wsgi"])
@pytest.mark.parametrize(
    ("verb", "accept", "status"),
    [
        ("GET", BROWSER, 200),
        ("GET", "text/event-stream", 401),
        ("GET", f"text/event-stream, {BROWSER}", 401),
        ("POST", BROWSER, 401),
    ],
)
def test_a_browser_and_no_client_gets_a_page_that_says_what_this_is(
    kind, configure, verb, accept, status
):
    configure(NAME="<b>Shop", PUBLIC_URL="https://shop.example.com")

    answer = kind().http(verb, headers={"Accept": accept})

    assert answer.status == status
    if status == 401:
        assert answer.headers["content-type"] == "application/json"
    else:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert b"&lt;b&gt;Shop" in answer.body
        assert re.search(rb"<code>https://shop\.example\.com/\S*</code>", answer.body)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")

"""The ladders of an HTTP request, rung by rung: status, code, id and headers of each refusal."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.protocol.errors import ProtocolError
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.calls.lanes import tools_called
from mcp_django.transports.exchanges import Call, Exchange, Reply, refuse
from mcp_django.transports.http.endpoint import understand
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


def call(method: str = "tools/list", *, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def encoded(body):
    return body if isinstance(body, bytes | None) else json.dumps(body).encode()


def modern(method="tools/list", **changed):
    """The headers of a modern request."""
    return {"mcp-protocol-version": MODERN, "mcp-method": method} | {
        name.replace("_", "-"): value for name, value in changed.items()
    }


def with_meta(method="tools/list", *, changed=None, **params):
    return call(method, _meta=META | (changed or {}), **params)


def old(version):
    return {"mcp-protocol-version": version}


# What is wrong with a request: each row fails one rung only, or the first of two.


@dataclass(frozen=True)
class Row:
    """A request, and what its refusal looks like. An id of ABSENT is not there, NULL is null."""

    name: str
    status: int
    code: int
    id: Any
    verb: str = "POST"
    headers: dict[str, Any] = field(default_factory=dict)
    more: tuple[tuple[str, str], ...] = ()
    body: Any = field(default_factory=call)
    requested: str | None = None


TWICE = (("Mcp-Method", "tools/list"), ("mcp-method", "tools/list"))
FIRST = with_meta("tools/call", name="a")
OLD_META = {PREFIX + "protocolVersion": LEGACY}
NEW_META = {PREFIX + "protocolVersion": UNKNOWN}

ROWS = [
    # 2: verb
    *(
        Row(f"{verb} {version}", 405, -32600, ident, verb=verb, headers=head)
        for verb in ("OPTIONS", "HEAD", "PUT", "PATCH", "post", "get")
        for version, head, ident in [
            ("absent", {}, NULL),
            ("legacy", old(LEGACY), NULL),
            ("newest legacy", old("2025-11-25"), ABSENT),
            ("modern", old(MODERN), ABSENT),
        ]
    ),
    *(
        Row(f"{verb} modern", 405, -32600, ABSENT, verb=verb, headers=old(MODERN))
        for verb in ("GET", "DELETE")
    ),
    *(
        Row(
            f"{verb} unknown",
            400,
            -32022,
            ABSENT,
            verb=verb,
            headers=old(UNKNOWN),
            requested=UNKNOWN,
        )
        for verb in ("GET", "DELETE")
    ),
    Row("PUT unknown", 405, -32600, ABSENT, verb="PUT", headers=old(UNKNOWN)),
    Row("verb before size", 405, -32600, NULL, verb="PUT", body=None),
    # 3: size
    Row("too long", 413, -32600, NULL, body=None),
    Row("too long, modern", 413, -32600, ABSENT, headers=modern(), body=None),
    Row(
        "size before content type",
        413,
        -32600,
        NULL,
        headers={"content-type": "text/plain"},
        body=None,
    ),
    # 4: content type
    *(
        Row(f"type {given!r}", 415, -32600, NULL, headers={"content-type": given})
        for given in (
            None,
            "",
            "text/plain",
            "application/jsonp",
            "application/x-www-form-urlencoded",
        )
    ),
    *(
        Row(f"coding {given}", 415, -32600, NULL, headers={"content-encoding": given})
        for given in ("gzip", "br", "identity, gzip")
    ),
    Row(
        "content type before accept",
        415,
        -32600,
        ABSENT,
        headers=modern(content_type="text/plain", accept="text/html"),
    ),
    # 5: accept
    *(
        Row(f"accept {given!r}", 406, -32600, NULL, headers={"accept": given})
        for given in (
            "",
            "application/json",
            "text/event-stream",
            "text/html",
            "application/json, text/event-stream;q=0",
            "*/*, application/json;q=0",
        )
    ),
    *(
        Row(
            f"listening accepts {given!r}",
            406,
            -32600,
            ABSENT,
            headers=modern("subscriptions/listen", accept=given),
            body=with_meta("subscriptions/listen", notifications={}),
        )
        for given in ("application/json", "*/*, text/event-stream;q=0")
    ),
    Row(
        "accept before JSON",
        406,
        -32600,
        ABSENT,
        headers=modern(accept="text/html"),
        body=b"{",
    ),
    # 6: JSON. Without an id that could be read: null below 2025-11-25, absent since.
    *(
        Row(f"JSON {version}", 400, -32700, ident, headers=old(version), body=b"{")
        for version, ident in [
            (None, NULL),
            ("2024-11-05", NULL),
            ("2025-03-26", NULL),
            ("2025-06-18", NULL),
            ("2025-11-25", ABSENT),
            (MODERN, ABSENT),
            (UNKNOWN, ABSENT),
        ]
    ),
    Row("empty", 400, -32700, NULL, body=b""),
    Row("deep", 400, -32700, NULL, body=b"[" * 60_000),
    Row("same key twice", 400, -32700, NULL, body=b'{"id": 1, "id": 2}'),
    # 7: one message
    *(
        Row(f"modern {name}", 400, -32600, ident, headers=modern(), body=body)
        for name, body, ident in [
            ("number", 1, ABSENT),
            ("string", "x", ABSENT),
            ("empty array", [], ABSENT),
            ("array", [call()], ABSENT),
            ("array of its own", [with_meta()], ABSENT),
            ("response", {"jsonrpc": "2.0", "id": 1, "result": {}}, ABSENT),
            ("null id", call(request_id=None), ABSENT),
            ("float id", call(request_id=1.5), ABSENT),
            ("bool id", call(request_id=True), ABSENT),
            ("object id", call(request_id={}), ABSENT),
            ("huge id", call(request_id=2**63), ABSENT),
            ("other jsonrpc", with_meta() | {"jsonrpc": "1.0"}, 1),
            ("array params", with_meta() | {"params": []}, 1),
            ("string params", with_meta() | {"params": "x"}, 1),
            ("number for a method", with_meta() | {"method": 1}, 1),
            ("no method", {"jsonrpc": "2.0", "id": "a"}, "a"),
        ]
    ),
    *(
        Row(f"legacy {name}", 400, -32600, ident, headers=old(LEGACY), body=body)
        for name, body, ident in [
            ("empty array", [], NULL),
            ("array", [call()], NULL),
            ("null id", call(request_id=None), NULL),
            ("array params", call(request_id=0) | {"params": []}, 0),
            ("other jsonrpc", call(request_id="") | {"jsonrpc": 2}, ""),
        ]
    ),
    # Batches exist in one revision.
    *(
        Row(f"batch {version}", 400, -32600, ident, headers=old(version), body=[call()])
        for version, ident in [("2024-11-05", NULL), ("2025-11-25", ABSENT)]
    ),
    Row("batch, empty", 400, -32600, NULL, body=[]),
    Row("batch, too long", 400, -32600, NULL, body=[call()] * 51),
    Row("batch, modern", 400, -32600, NULL, body=[call(), with_meta()]),
    Row(
        "batch, unknown",
        400,
        -32022,
        ABSENT,
        headers=old(UNKNOWN),
        body=[call()],
        requested=UNKNOWN,
    ),
    # 8: notifications
    Row(
        "notification, unknown",
        400,
        -32022,
        ABSENT,
        headers=old(UNKNOWN),
        body={"jsonrpc": "2.0", "method": "notifications/initialized"},
        requested=UNKNOWN,
    ),
    # 9: routing headers twice
    Row("header twice", 400, -32020, 1, more=TWICE, headers=old(MODERN), body=with_meta()),
    Row("twice before _meta", 400, -32020, 1, more=TWICE, headers=old(MODERN)),
    # 10: _meta
    Row("no _meta", 400, -32602, 1, headers=modern()),
    Row("_meta null", 400, -32602, 1, headers=modern(), body=call(_meta=None)),
    Row("params null", 400, -32602, 1, headers=modern(), body=call() | {"params": None}),
    Row(
        "_meta before header",
        400,
        -32602,
        1,
        body=call(_meta={PREFIX + "protocolVersion": MODERN}),
    ),
    Row("discover, no header", 400, -32602, 1, body=call("server/discover")),
    Row(
        "listen, legacy header",
        400,
        -32602,
        1,
        headers=old(LEGACY),
        body=call("subscriptions/listen"),
    ),
    # 11: version header
    Row("no header", 400, -32020, 1, body=with_meta()),
    Row(
        "legacy header",
        400,
        -32020,
        1,
        headers=modern(mcp_protocol_version=LEGACY),
        body=with_meta(),
    ),
    Row(
        "unknown header",
        400,
        -32020,
        1,
        headers=modern(mcp_protocol_version=UNKNOWN),
        body=with_meta(),
    ),
    Row("version before method", 400, -32020, 1, headers=old(LEGACY), body=with_meta()),
    # 12: method header
    Row("no method header", 400, -32020, 1, headers=old(MODERN), body=with_meta()),
    Row("another case", 400, -32020, 1, headers=modern("Tools/list"), body=with_meta()),
    Row("method before name", 400, -32020, 1, headers=modern("x"), body=FIRST),
    # 13: name header
    Row("no name header", 400, -32020, 1, headers=modern("tools/call"), body=FIRST),
    Row("another name", 400, -32020, 1, headers=modern("tools/call", mcp_name="A"), body=FIRST),
    Row(
        "bad sentinel",
        400,
        -32020,
        1,
        headers=modern("tools/call", mcp_name="=?base64?YR==?="),
        body=FIRST,
    ),
    Row(
        "half sentinel",
        400,
        -32020,
        1,
        headers=modern("tools/call", mcp_name="=?base64?YQ=="),
        body=FIRST,
    ),
    Row(
        "beyond ASCII",
        400,
        -32020,
        1,
        headers=modern("tools/call", mcp_name="\xe9"),
        body=with_meta("tools/call", name="\xe9"),
    ),
    Row(
        "unserved method with a name",
        400,
        -32020,
        1,
        headers=modern("tasks/get"),
        body=with_meta("tasks/get", taskId="a"),
    ),
    Row(
        "name before version",
        400,
        -32020,
        1,
        headers=modern("tools/call", mcp_protocol_version=LEGACY),
        body=with_meta("tools/call", changed=OLD_META, name="a"),
    ),
    # 14: version
    Row(
        "legacy version in an envelope",
        400,
        -32022,
        1,
        headers=modern(mcp_protocol_version=LEGACY),
        body=with_meta(changed=OLD_META),
        requested=LEGACY,
    ),
    Row(
        "version before method served",
        400,
        -32022,
        1,
        headers=modern("ping", mcp_protocol_version=UNKNOWN),
        body=with_meta("ping", changed=NEW_META),
        requested=UNKNOWN,
    ),
    *(
        Row(
            f"{method} {UNKNOWN}",
            400,
            -32022,
            1,
            headers=old(UNKNOWN),
            body=call(method),
            requested=UNKNOWN,
        )
        for method in ("tools/list", "server/discover", "initialize", "ping")
    ),
    Row("empty header", 400, -32022, 1, headers=old(""), requested=""),
    # 15: method
    *(
        Row(f"{method} unserved", 404, -32601, 1, headers=modern(method), body=with_meta(method))
        for method in (
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
            "tools/List",
        )
    ),
    Row(
        "method before log level",
        404,
        -32601,
        1,
        headers=modern("ping"),
        body=with_meta("ping", changed={PREFIX + "logLevel": "trace"}),
    ),
    # 17: log level
    Row(
        "log level",
        400,
        -32602,
        1,
        headers=modern(),
        body=with_meta(changed={PREFIX + "logLevel": "trace"}),
    ),
]


def version_of(row):
    return row.headers.get("mcp-protocol-version")


def understood(row):
    return understand(row.verb, sent(row.headers, *row.more), encoded(row.body))


@requirement(
    "http:refusals",
    "http:get",
    "http:unsupported-revision",
    "subscriptions:stream",
    "envelope:post-only",
    "envelope:unsupported-revision",
    "envelope:method-not-found",
    "errors:json-body",
)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_request_that_fails_a_rung_is_refused_in_the_words_of_that_rung(row):
    exchange = understood(row)

    refusal = exchange.refusal
    assert refusal is not None
    assert exchange.calls == ()
    wire = json.loads(refusal.body)
    assert (refusal.status, wire["error"]["code"]) == (row.status, row.code)
    assert wire.get("id", ABSENT) == row.id
    allowed = "POST" if version_of(row) == MODERN else "GET, POST, DELETE"
    assert refusal.headers == ((("Allow", allowed),) if row.status == 405 else ())
    if row.requested is not None:
        assert wire["error"]["data"] == {"supported": [MODERN], "requested": row.requested}


@requirement("errors:reserved-codes")
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.verb == "POST"], ids=lambda row: row.name
)
def test_a_refusal_is_valid_in_the_revision_that_it_is_written_for(row):
    exchange = understood(row)

    assert exchange.refusal is not None
    # Errors of the modern ladder are modern, whatever header is missing.
    is_modern = row.code in (-32020, -32022) or version_of(row) == UNKNOWN
    revision = Revision.V2026_07_28 if is_modern else exchange.revision
    assert_valid_message(revision, "tools/list", exchange.refusal.body)


def test_a_version_that_nobody_serves_is_refused_in_the_newest_words():
    exchange = understand("POST", sent(old(UNKNOWN)), encoded(call()))

    assert exchange.revision is Revision.V2026_07_28


# Sessions and streams


@requirement("http:get", "http:one-path")
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_legacy_client_has_verbs_for_its_stream_and_for_the_end_of_its_session(verb, version):
    headers = old(version) | {"mcp-session-id": "abc", "content-type": None}

    exchange = understand(verb, sent(headers), b"")

    assert exchange.refusal is None
    assert (exchange.verb, exchange.calls, exchange.notices) == (verb, (), ())
    assert exchange.session_id == "abc"


@pytest.mark.parametrize("accept", ["application/json", "text/html", "", "text/event-stream;q=0"])
def test_a_stream_is_refused_to_who_takes_none(accept):
    exchange = understand("GET", sent({"accept": accept}), b"")

    assert exchange.refusal is not None
    assert (exchange.refusal.status, exchange.refusal.headers) == (406, ())


@pytest.mark.parametrize("accept", [None, "*/*", "text/event-stream", "text/*"])
def test_a_stream_is_for_who_takes_one(accept):
    assert understand("GET", sent({"accept": accept}), b"").refusal is None


@pytest.mark.parametrize("accept", [None, "text/html", "application/json"])
def test_the_end_of_a_session_has_no_body_that_somebody_must_accept(accept):
    assert understand("DELETE", sent({"accept": accept}), b"").refusal is None


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
def test_the_body_of_a_verb_that_has_none_is_not_looked_at(verb):
    for body in (None, b"{", encoded(call())):
        assert understand(verb, sent({}), body).calls == ()
        assert understand(verb, sent({}), body).refusal is None


def test_where_a_client_left_off_is_what_it_says():
    headers = {"mcp-session-id": "abc", "last-event-id": "stream.7"}

    assert understand("GET", sent(headers), b"").last_event_id == "stream.7"
    assert understand("GET", sent({}), b"").last_event_id is None


@pytest.mark.parametrize("body", [call(), [call()], {"jsonrpc": "2.0", "method": "x"}], ids=repr)
def test_whatever_a_legacy_client_posts_belongs_to_the_session_that_it_names(body):
    assert understand("POST", sent({"mcp-session-id": "abc"}), encoded(body)).session_id == "abc"
    assert understand("POST", sent({}), encoded(body)).session_id is None


@requirement("sessions:fresh")
def test_a_handshake_belongs_to_no_session_whatever_it_names():
    body = encoded(call("initialize"))

    for version in (None, LEGACY, MODERN):
        headers = old(version) | {"mcp-session-id": "abc"}
        assert understand("POST", sent(headers), body).session_id is None


@requirement("envelope:no-session")
def test_the_modern_era_has_no_sessions_and_nothing_to_go_on_with():
    headers = modern(mcp_session_id="abc", last_event_id="stream.7")
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled"}

    for body in (with_meta(), notification):
        exchange = understand("POST", sent(headers), encoded(body))
        assert (exchange.session_id, exchange.last_event_id) == (None, None)


@pytest.mark.parametrize("verb", ["GET", "POST", "DELETE"])
def test_two_sessions_at_once_are_refused(verb):
    twice = sent({"mcp-session-id": "a"}, ("Mcp-Session-Id", "a"))

    refusal = understand(verb, twice, encoded(call())).refusal

    assert refusal is not None
    assert refusal.status == 400


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT"])
@pytest.mark.parametrize("version", [None, LEGACY, MODERN])
def test_without_streams_one_verb_is_left(verb, version):
    headers = old(version) | {"mcp-session-id": "abc", "last-event-id": "stream.7"}

    refusal = understand(verb, sent(headers), b"", streams=False).refusal

    assert refusal is not None
    assert (refusal.status, refusal.headers) == (405, (("Allow", "POST"),))


def test_without_streams_the_headers_of_a_session_say_nothing():
    headers = {"mcp-session-id": "abc", "last-event-id": "stream.7"}

    for more in ((), (("Mcp-Session-Id", "def"),)):
        exchange = understand("POST", sent(headers, *more), encoded(call()), streams=False)
        assert exchange.refusal is None
        assert (exchange.session_id, exchange.last_event_id) == (None, None)


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
    beside = understand("POST", sent(old("2025-03-26")), encoded([body, call("ping")]))

    assert len(alone.notices) == 1
    assert alone.notices == beside.notices
    assert len(beside.calls) == 1


# What is understood


@requirement("http:accept-absent", "envelope:header-whitespace")
@pytest.mark.parametrize(
    ("headers", "body", "revision"),
    [
        (modern(), with_meta(), MODERN),
        (modern(accept=None), with_meta(), MODERN),
        (modern(accept="*/*"), with_meta(), MODERN),
        (modern(accept="text/*;q=0.1, application/*"), with_meta(), MODERN),
        (modern(content_type="application/json; charset=utf-8"), with_meta(), MODERN),
        (modern(content_type="Application/JSON"), with_meta(), MODERN),
        (modern(content_encoding="identity"), with_meta(), MODERN),
        (modern(mcp_session_id="x", last_event_id="1"), with_meta(), MODERN),
        (modern("  tools/list "), with_meta(), MODERN),
        (modern("server/discover"), with_meta("server/discover"), MODERN),
        (modern("tools/call", mcp_name="a"), FIRST, MODERN),
        (modern("tools/call", mcp_name="=?base64?YQ==?="), FIRST, MODERN),
        (modern("tools/call"), with_meta("tools/call"), MODERN),
        (modern("tools/call"), with_meta("tools/call", name=1), MODERN),
        (modern("resources/read"), with_meta("resources/read", uri=None), MODERN),
        (modern(), with_meta(changed={PREFIX + "logLevel": "debug"}), MODERN),
        ({}, call(), "2025-03-26"),
        ({}, call("nothing"), "2025-03-26"),
        (old("2024-11-05"), call(), "2024-11-05"),
        (old("2025-03-26"), call(), "2025-03-26"),
        (old("2025-06-18"), call("ping"), "2025-06-18"),
        (old("2025-11-25"), call("logging/setLevel"), "2025-11-25"),
        ({}, call() | {"params": None}, "2025-03-26"),
        ({}, call("initialize", protocolVersion="2024-11-05"), "2025-11-25"),
        (old(LEGACY), call("initialize"), "2025-11-25"),
        # A modern header on a plain handshake: the client of two eras asks for the older one.
        (old(MODERN), call("initialize"), "2025-11-25"),
    ],
)
def test_a_whole_request_is_one_call_of_its_revision(headers, body, revision):
    exchange = understand("POST", sent(headers), encoded(body))

    assert exchange.refusal is None
    assert not exchange.is_batch
    (made,) = exchange.requests
    assert made.request.method == body["method"]
    assert made.envelope.revision.value == exchange.revision.value == revision


def test_accept_may_stand_in_two_lines():
    split = sent({"accept": "application/json"}, ("Accept", "text/event-stream"))

    assert understand("POST", split, encoded(call())).refusal is None


@requirement(
    "jsonrpc:notification-unanswered",
    "jsonrpc:unknown-notification",
    "envelope:notification-accepted",
)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        old("2024-11-05"),
        old("2025-03-26"),
        old("2025-06-18"),
        old("2025-11-25"),
        old(MODERN),
        modern("x", mcp_name="=?base64?#?="),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "nothing", "params": {"_meta": META}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "a"}},
        {"jsonrpc": "2.0", "method": "initialize"},
    ],
    ids=lambda body: body["method"],
)
def test_a_notification_asks_for_nothing_and_gets_no_message(headers, body):
    exchange = understand("POST", sent(headers), encoded(body))

    assert (exchange.refusal, exchange.calls, exchange.is_batch) == (None, (), False)


@requirement("http:unknown-response")
@pytest.mark.parametrize("version", [None, "2024-11-05", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}},
    ],
    ids=repr,
)
def test_a_response_of_a_legacy_client_is_accepted(version, body):
    exchange = understand("POST", sent(old(version)), encoded(body))

    assert (exchange.refusal, exchange.calls) == (None, ())


# Batches


@pytest.mark.parametrize("version", [None, "2025-03-26"])
def test_a_batch_is_its_requests_and_errors_in_order(version):
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = {"jsonrpc": "2.0", "id": 9, "result": {}}
    body = [
        call("ping", request_id=1),
        notification,
        call("initialize", request_id=2),
        3,
        response,
        call("tools/call", request_id="4", name="a") | {"jsonrpc": "1.0"},
        call("tools/call", request_id=5, name="b"),
    ]

    exchange = understand("POST", sent(old(version)), encoded(body))

    assert exchange.refusal is None
    assert exchange.is_batch
    told = [
        one.request.id if isinstance(one, Call) else (one.code, one.request_id)
        for one in exchange.calls
    ]
    assert told == [1, (-32600, 2), (-32600, None), (-32600, "4"), 5]
    assert all(one.envelope.revision is Revision.V2025_03_26 for one in exchange.requests)
    assert tools_called(exchange) == ["b"]


def test_a_batch_of_notifications_and_responses_asks_for_nothing():
    body = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
    ]

    exchange = understand("POST", sent({}), encoded(body))

    assert (exchange.refusal, exchange.calls) == (None, ())


@requirement("batch:no-handshake")
def test_a_handshake_in_a_batch_is_refused_alone():
    exchange = understand("POST", sent({}), encoded([call("initialize")]))

    [error] = exchange.calls
    assert isinstance(error, ProtocolError)
    assert (error.code, error.request_id) == (-32600, 1)
    assert exchange.requests == ()


def test_the_longest_batch_and_the_deepest_body_are_settings(settings):
    settings.MCP_DJANGO = {"MAX_BATCH": 2, "MAX_DEPTH": 3, "MAX_BODY": 1000}
    deep = encoded(call(a={"b": {}}))

    assert understand("POST", sent({}), encoded([call()] * 2)).refusal is None
    assert understand("POST", sent({}), encoded([call()] * 3)).refusal is not None
    refusals = [understand("POST", sent({}), body).refusal for body in (deep, None)]
    assert [one and one.status for one in refusals] == [400, 413]
    assert refusals[1] is not None
    assert b"1000 bytes" in refusals[1].body


# What an exchange says of itself


def exchange_of(headers, body):
    return understand("POST", sent(headers), encoded(body))


@requirement("envelope:disconnect-cancels", "http:disconnect-is-no-cancel")
def test_a_lost_connection_cancels_modern_calls_only():
    assert exchange_of(modern(), with_meta()).disconnect_cancels
    assert not exchange_of(old("2025-11-25"), call()).disconnect_cancels
    assert not Exchange().disconnect_cancels


@pytest.mark.parametrize(
    ("body", "is_constant"),
    [
        (call("ping"), True),
        # A session begins, and is kept.
        (call("initialize"), False),
        (call("tools/list"), False),
        (call("nothing"), False),
        ([call("ping"), call("ping")], True),
        ([call("ping"), call("tools/list")], False),
        ([{"jsonrpc": "2.0", "method": "notifications/initialized"}], True),
    ],
    ids=repr,
)
def test_an_exchange_is_constant_where_no_call_needs_the_database(body, is_constant):
    assert exchange_of({}, body).is_constant is is_constant


def test_only_strings_name_a_tool():
    assert tools_called(exchange_of({}, call("tools/call", name=1))) == []
    assert tools_called(exchange_of({}, call("tools/call", name="a"))) == ["a"]


def test_the_body_of_a_reply_is_its_message_or_an_array_of_them():
    assert Reply().body == b""
    assert Reply(parts=(b"{}",)).body == b"{}"
    assert Reply(parts=(b"{}",), is_batch=True).body == b"[{}]"
    assert Reply(parts=(b"1", b"2"), is_batch=True).body == b"[1,2]"


def test_a_refusal_carries_the_status_and_the_headers_it_was_given():
    error = ProtocolError(-32600, "No.", status=503, request_id="a")

    reply = refuse(error, id_optional=True, headers=(("Retry-After", "1"),))

    assert (reply.status, reply.headers) == (503, (("Retry-After", "1"),))
    assert json.loads(reply.body)["id"] == "a"


versions = st.sampled_from([None, MODERN, LEGACY, "2025-03-26", UNKNOWN, "", "\xe9"])
bodies: list[Any] = [call(), with_meta(), [call()], FIRST, call("initialize"), {}, []]
messages = st.binary() | st.sampled_from([encoded(one) for one in bodies])


@requirement("errors:json-body")
@given(
    st.sampled_from(["POST", "POST", "GET", "DELETE", "X"]),
    st.dictionaries(st.sampled_from(["accept", "mcp-method", "mcp-name"]), st.text("ab=?*/")),
    versions,
    st.none() | messages,
)
def test_any_request_is_understood_or_refused(verb, changed, version, body):
    exchange = understand(verb, sent(changed | old(version)), body)

    if exchange.refusal is not None:
        assert exchange.refusal.status in (400, 404, 405, 406, 413, 415)
        assert json.loads(exchange.refusal.body)["error"]["message"]


# A person who opens the address

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient], ids=["asgi", "wsgi"])
def test_a_browser_gets_a_page_that_says_what_this_is(kind, settings):
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO, "NAME": "<b>Shop", "PUBLIC_URL": "https://shop.example.com",
    }  # fmt: skip

    page = kind().http("GET", headers={"Accept": BROWSER})

    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"&lt;b&gt;Shop" in page.body
    assert re.search(rb"<code>https://shop\.example\.com/\S*</code>", page.body)
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient], ids=["asgi", "wsgi"])
@pytest.mark.parametrize(
    ("verb", "accept"),
    [("GET", "text/event-stream"), ("GET", f"text/event-stream, {BROWSER}"), ("POST", BROWSER)],
)
def test_a_client_gets_no_page(kind, verb, accept):
    answer = kind().http(verb, headers={"Accept": accept})

    assert answer.status == 401
    assert answer.headers["content-type"] == "application/json"

from __future__ import annotations

import itertools
import time

import msgspec
import pytest

from mcp_django.protocol.revisions import Revision
from mcp_django.stores.cache_version import generations
from mcp_django.transports.streamable_http import MCPApplication
from mcp_django.transports.threads import Lane, lanes
from tests.clients import CheckedClient
from tests.spec import requirement
from tests.transports.wire import PING, Connection, counting, finished, hello, speaking

pytestmark = pytest.mark.django_db
LATEST = Revision.V2025_11_25


# One URL, all revisions


@requirement("http:one-path", "envelope:both-eras", "envelope:nothing-remembered")
def test_requests_of_all_revisions_may_follow_each_other_in_any_order(client):
    speakers = [speaking(client, revision) for revision in Revision]

    for first, second in itertools.permutations(speakers, 2):
        assert "echo" in first.tools()
        assert '"staff"' in second.call_tool("echo", text="a").text


@requirement("sessions:fresh")
def test_each_handshake_begins_a_session_of_its_own_and_one_that_is_refused_none(client):
    client = speaking(client, LATEST)
    client.initialize()
    headers = client.session_headers()

    within = client.post_request("initialize", hello(LATEST), headers=headers)
    refused = client.post_request("initialize", headers=headers)

    assert within.headers["mcp-session-id"] != client.session
    assert client.request("ping") == {}
    assert refused.messages[0]["error"]["code"] == -32602
    assert "mcp-session-id" not in refused.headers


@requirement("http:answer-type")
def test_an_answer_is_json_that_no_cache_may_keep(client):
    answer = client.post_request("tools/list")

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["cache-control"] == "no-store"


NOTIFICATIONS = [
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","method":"nothing","params":{"_meta":{}}}',
    b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}',
    b'{"jsonrpc":"2.0","method":"initialize"}',
]
VERSIONS = [{}, *({"MCP-Protocol-Version": revision.value} for revision in Revision)]


@requirement(
    "http:accepted",
    "http:unknown-response",
    "lifecycle:initialized",
    "jsonrpc:notification-unanswered",
    "jsonrpc:unknown-notification",
    "envelope:notification-accepted",
)
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        *itertools.product(VERSIONS, NOTIFICATIONS),
        ({**VERSIONS[-1], "Mcp-Method": "x", "Mcp-Name": "=?base64?#?="}, NOTIFICATIONS[0]),
        ({}, b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        ({}, b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}'),
        ({}, b"[" + NOTIFICATIONS[0] + b"]"),
    ],
)
def test_what_needs_no_answer_gets_202_and_an_empty_body(client, headers, body):
    answer = client.post(body, headers=headers)

    assert answer.status == 202
    assert answer.body == b""
    assert "content-type" not in answer.headers


# The body


CHUNK = PING.ljust(8192)


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("chunks", "declared", "status"),
    [
        # Bodies that fill the buffers of servers.
        ([CHUNK], None, 200),
        ([CHUNK, b""], None, 200),
        ([CHUNK, b" " * 8192], None, 200),
        # Exactly the limit, and one byte more.
        ([PING.ljust(20_000)], "20000", 200),
        ([PING.ljust(20_001)], "20001", 413),
        ([PING.ljust(20_001)], None, 413),
        # Longer than declared.
        *(([b" " * 12_000] * 2, declared, 413) for declared in (None, "5", "-1", "many")),
        # Unread.
        ([], "20001", 413),
        ([], "9" * 5000, 413),
    ],
)
async def test_a_body_is_read_whole_up_to_the_limit(client, configure, chunks, declared, status):
    configure(MAX_BODY=20_000)
    call = Connection(client, *chunks, headers={"Content-Length": declared})

    call.start()
    start, body = [await call.next() for _ in range(2)]
    call.hang_up()
    await call.end()

    assert start["status"] == status
    assert (b"20000 bytes" if status == 413 else b'"id":7') in body["body"]
    assert call.is_whole()


@pytest.mark.asyncio
async def test_a_client_that_leaves_in_the_middle_of_its_body_ends_the_request_quietly(caplog):
    call = Connection(CheckedClient(token="x"), b'{"jsonrpc"', b"never sent")
    call.inbox.get_nowait()
    call.inbox.get_nowait()
    call.inbox.put_nowait({"type": "http.request", "body": b'{"json', "more_body": True})
    call.hang_up()

    await call.whole()

    assert call.sent == []
    assert caplog.records == []


@pytest.mark.asyncio
async def test_only_http_is_spoken():
    with pytest.raises(ValueError, match="HTTP only"):
        await MCPApplication.as_asgi()({"type": "websocket"}, None, None)


# Batches


BATCHES = Revision.V2025_03_26


@requirement("batch:answered")
def test_a_batch_is_answered_by_an_array_without_entries_for_notifications(client):
    client = speaking(client, BATCHES)
    batch = [
        client.message("ping"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        client.message("tools/call", {"name": "echo_later", "arguments": {"text": "x"}}),
        client.message("nonsense"),
        {"jsonrpc": "1.0", "id": 9},
    ]

    answer = client.post(batch, headers={"MCP-Protocol-Version": BATCHES.value})
    rubbish = client.post([1, {"jsonrpc": "1.0", "id": 9}])

    assert answer.status == 200
    assert msgspec.json.decode(answer.body) == answer.messages
    assert [message.get("id") for message in answer.messages] == [1, 2, 3, 9]
    assert ["result" in message for message in answer.messages] == [True, True, False, False]
    # Nothing but rubbish is a bad request.
    assert rubbish.status == 400
    assert [message["id"] for message in rubbish.messages] == [None, 9]


def test_a_batch_in_which_a_tool_reports_progress_is_a_stream_with_an_event_per_answer(client):
    client = speaking(client, BATCHES)
    batch = [client.message("ping"), client.message("tools/call", counting("t"))]

    answer = client.post(batch, headers={"MCP-Protocol-Version": BATCHES.value})

    assert answer.is_stream
    *progress, first, second = answer.messages
    assert progress
    assert {message["method"] for message in progress} == {"notifications/progress"}
    assert [first["id"], second["id"]] == [1, 2]
    assert answer.body.count(b"event: message") == len(answer.messages)


# What goes wrong in here


@pytest.mark.asyncio
async def test_a_bug_of_ours_is_an_answer_and_a_number_in_the_log(client_without_database, caplog):
    call = Connection(client_without_database, PING)
    call.scope["method"] = None

    await call.whole()

    assert call.status == 500
    assert call.is_whole()
    assert call.json["error"]["message"] == "Internal error"
    assert call.json["error"]["data"]["id"] in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "is_told"), [(RuntimeError("broken server"), True), (ConnectionResetError(), False)]
)
async def test_a_server_that_cannot_send_is_left_alone_and_a_client_that_left_is_no_error(
    client_without_database, caplog, error, is_told
):
    call = Connection(client_without_database, PING, headers={"Host": "evil.example"})
    attempts = []

    async def send(event):
        attempts.append(event)
        raise error

    await call.application(call.scope, call.inbox.get, send)

    assert len(attempts) == 1
    assert ("broken server" in caplog.text) is bool(caplog.records) is is_told


@pytest.fixture
def client_without_database():
    return CheckedClient(token="x")


# Answers that need no thread


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_ping_of_a_caller_known_a_moment_ago_needs_no_thread(client, fresh_lanes):
    legacy = speaking(client, LATEST)
    first = await Connection.asking(legacy, "ping").whole()
    await finished(Lane.QUERY)
    lanes.close()

    second = await Connection.asking(legacy, "ping").whole()

    assert first.json["result"] == second.json["result"] == {}
    assert lanes._lanes == {}


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("questions", range(5))
async def test_discovery_is_answered_however_soon_the_second_ends(
    client, fresh_lanes, monkeypatch, questions
):
    first = await Connection.asking(client, "server/discover").whole()
    await finished(Lane.QUERY)
    now, asked = time.monotonic(), itertools.count()
    clock = lambda: now if next(asked) < questions else now + 5  # noqa: E731
    monkeypatch.setattr(generations, "clock", clock)

    second = await Connection.asking(client, "server/discover").whole()

    assert second.json["result"] == first.json["result"]

from __future__ import annotations

import asyncio
import itertools
import re
import time

import msgspec
import pytest

from mcp_django.exposure.generation import generations
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.transports.calls.lanes import lanes
from mcp_django.transports.http.streamable_http import MCPApplication
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.cases import IN_SESSIONS, PING, REFUSED, STRANGERS, Case
from tests.transports.wire import Connection, finished, speaking
from tests.waiting import PATIENCE

LATEST = Revision.V2025_11_25
MODERN = Revision.V2026_07_28


@pytest.fixture
def eve(make_user):
    return CheckedClient(user=make_user("eve", is_staff=True))


def handshake(client, **changed):
    params = {
        "protocolVersion": client.revision.value,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    return client.message("initialize", params | changed)


# One URL, all revisions


@requirement("http:one-path", "envelope:both-eras")
@pytest.mark.django_db
def test_every_revision_lists_and_calls_at_the_same_url(client, revision):
    client = speaking(client, revision)

    assert "echo" in {tool["name"] for tool in client.list_tools()}
    assert '"staff"' in client.call_tool("echo", text="hello").text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "revision", [one for one in Revision if one.era is Era.LEGACY], ids=lambda one: one.value
)
def test_the_legacy_handshake_agrees_on_the_revision_and_begins_a_session(client, revision):
    client = speaking(client, revision)
    message = handshake(client)

    answer = client.post(message)

    client.check(message, answer)
    assert answer.messages[0]["result"]["protocolVersion"] == revision.value
    assert re.fullmatch(r"[!-~]{43}", answer.headers["mcp-session-id"])


@requirement("sessions:fresh")
@pytest.mark.django_db
def test_each_handshake_begins_a_session_of_its_own(client):
    client = speaking(client, LATEST)
    headers = {}
    ids = []

    for _ in range(3):
        answer = client.post(handshake(client), headers=headers)
        ids.append(answer.headers["mcp-session-id"])
        headers = {"Mcp-Session-Id": ids[-1]}

    assert len(set(ids)) == 3
    for one in ids:
        answer = client.post(client.message("ping"), headers={"Mcp-Session-Id": one})
        assert (answer.status, answer.messages[0]["result"]) == (200, {})


@pytest.mark.django_db
def test_a_handshake_that_is_refused_begins_no_session(client):
    client = speaking(client, LATEST)

    answer = client.post(handshake(client, protocolVersion=None))

    assert answer.messages[0]["error"]["code"] == -32602
    assert "mcp-session-id" not in answer.headers


@requirement("envelope:no-session")
@pytest.mark.django_db
def test_a_modern_request_has_no_session_whatever_its_headers_say(client):
    headers = {"Mcp-Session-Id": "x", "Last-Event-ID": "x"}

    answer = client.post_request("server/discover", headers=headers)

    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


@requirement("envelope:both-eras", "envelope:nothing-remembered")
@pytest.mark.django_db
def test_requests_of_all_revisions_may_follow_each_other_in_any_order(client):
    speakers = [speaking(client, revision) for revision in Revision]

    for first, second in itertools.permutations(speakers, 2):
        assert first.call_tool("echo", text="a").text == second.call_tool("echo", text="a").text


@requirement("http:answer-type")
@pytest.mark.django_db
def test_an_answer_is_json_that_no_cache_may_keep(client):

    answer = client.post_request("tools/list")

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["cache-control"] == "no-store"


@requirement("security:equal-ids")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_two_clients_with_the_same_id_get_their_own_answers(client, eve, add_tool):
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()

    def meet(request) -> str:
        """Wait until another call is here."""
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        return request.user.username

    add_tool(meet)
    first, second = Connection.calling(client, "meet"), Connection.calling(eve, "meet")

    await asyncio.gather(first.whole(), second.whole())

    assert first.json["id"] == second.json["id"] == 1
    assert first.json["result"]["content"][0]["text"] == "staff"
    assert second.json["result"]["content"][0]["text"] == "eve"


@requirement("http:accepted", "lifecycle:initialized", "http:unknown-response")
@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]',
    ],
)
def test_what_needs_no_answer_gets_202_and_an_empty_body(client, body):
    answer = client.post(body)

    assert answer.status == 202
    assert answer.body == b""
    assert "content-type" not in answer.headers


@requirement("http:refusals")
@pytest.mark.django_db
@pytest.mark.parametrize("case", [*REFUSED, *IN_SESSIONS], ids=lambda case: case.name)
def test_a_known_caller_is_told_what_is_wrong_with_the_request(client, configure, case: Case):
    configure(**case.settings)

    answer = client.http(case.verb, case.body, headers=case.headers)

    assert answer.status == case.status
    assert answer.headers.items() >= case.answered.items()
    assert "error" in answer.messages[0]


@requirement("authorization:401")
@pytest.mark.django_db
@pytest.mark.parametrize(
    "case",
    [case for case in (*REFUSED, *IN_SESSIONS) if case.name not in STRANGERS],
    ids=lambda case: case.name,
)
def test_nothing_about_the_request_is_told_before_a_credential(configure, case: Case):
    configure(**case.settings)
    body = PING if case.body == PING else b""

    answer = CheckedClient().http(case.verb, case.body, headers=case.headers)

    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.messages[0]["error"]["code"] == -32600
    assert "Authorization: Bearer <personal token>" in answer.messages[0]["error"]["message"]
    assert body or "id" not in answer.messages[0] or answer.messages[0]["id"] is None


@pytest.mark.django_db
def test_a_refused_caller_gets_the_id_of_the_request_back():
    answer = CheckedClient(token="x").post(PING)

    assert answer.status == 401
    assert answer.messages[0]["id"] == 7


# The body


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("length", [8192, 16384])
@pytest.mark.parametrize("has_empty_end", [False, True])
async def test_bodies_that_fill_the_servers_buffers_are_read_whole(client, length, has_empty_end):
    body = PING.ljust(length)
    chunks = [body[at : at + 8192] for at in range(0, length, 8192)]

    call = await Connection(client, *chunks, *([b""] if has_empty_end else [])).whole()

    assert call.json == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_body_of_exactly_the_limit_passes_and_one_byte_more_does_not(client, configure):
    configure(MAX_BODY=100)

    fitting = await Connection(client, PING.ljust(100), headers={"Content-Length": "100"}).whole()
    longer = await Connection(client, PING.ljust(101), headers={"Content-Length": "101"}).whole()
    undeclared = await Connection(client, PING.ljust(101)).whole()

    assert fitting.status == 200
    assert longer.status == undeclared.status == 413
    assert longer.is_whole()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("declared", [None, "5", "-1", "many"])
async def test_a_body_longer_than_declared_is_refused_by_its_chunks(client, configure, declared):
    configure(MAX_BODY=100)

    call = Connection(client, headers={"Content-Length": declared})
    for _ in range(2):
        call.inbox.put_nowait({"type": "http.request", "body": b" " * 60, "more_body": True})
    call.start()
    answer = [await call.next() for _ in range(2)]
    call.hang_up()
    await call.end()

    assert answer[0]["status"] == 413, "what comes after the limit is not waited for"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("declared", ["101", "9" * 5000])
async def test_a_declared_length_over_the_limit_is_refused_unread(client, configure, declared):
    configure(MAX_BODY=100)

    call = Connection(client, headers={"Content-Length": declared})
    call.start()
    answer = [await call.next() for _ in range(2)]
    call.hang_up()
    await call.end()

    assert answer[0]["status"] == 413
    assert b"100 bytes" in answer[1]["body"]


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


def batch_of(client, *calls):
    return [client.message(method, params) for method, params in calls]


@requirement("batch:answered")
@pytest.mark.django_db
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

    assert answer.status == 200
    assert msgspec.json.decode(answer.body) == answer.messages
    assert [message.get("id") for message in answer.messages] == [1, 2, 3, 9]
    assert ["result" in message for message in answer.messages] == [True, True, False, False]


@pytest.mark.django_db
def test_a_batch_of_nothing_but_rubbish_is_a_bad_request(client):
    answer = client.post([1, {"jsonrpc": "1.0", "id": 9}])

    assert answer.status == 400
    assert [message["id"] for message in answer.messages] == [None, 9]


@pytest.mark.django_db
def test_a_batch_in_which_a_tool_reports_progress_is_a_stream_with_an_event_per_answer(client):
    client = speaking(client, BATCHES)
    params = {"name": "count_to", "arguments": {"number": 2}, "_meta": {"progressToken": "t"}}
    batch = batch_of(client, ("ping", {}), ("tools/call", params))

    answer = client.post(batch, headers={"MCP-Protocol-Version": BATCHES.value})

    assert answer.is_stream
    *progress, first, second = answer.messages
    assert progress
    assert {message["method"] for message in progress} == {"notifications/progress"}
    assert [first["id"], second["id"]] == [1, 2]
    assert answer.body.count(b"event: message") == len(answer.messages)


@pytest.mark.django_db
def test_a_tool_inside_a_tests_transaction_sees_the_tests_data(client):
    order = Order.objects.create(number="A1", total=5)

    found = client.call_tool("get_record", model="shop.order", pk=order.pk)

    assert found.data["number"] == "A1"


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


@pytest.fixture
def client_without_database():
    return CheckedClient(token="x")


@pytest.mark.asyncio
async def test_a_server_that_cannot_send_is_left_alone(client_without_database, caplog):
    call = Connection(client_without_database, PING, headers={"Host": "evil.example"})
    attempts = []

    async def send(event):
        attempts.append(event)
        raise RuntimeError("broken server")

    await call.application(call.scope, call.inbox.get, send)

    assert len(attempts) == 1
    assert "broken server" in caplog.text


@pytest.mark.asyncio
async def test_a_client_that_leaves_while_it_is_answered_is_no_error(
    client_without_database, caplog
):
    call = Connection(client_without_database, PING, headers={"Host": "evil.example"})

    async def send(event):
        raise ConnectionResetError

    await call.application(call.scope, call.inbox.get, send)

    assert caplog.records == []


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


def test_discovery_says_that_answers_may_stream(client, db):
    assert "experimental" not in client.discover()["capabilities"]

from __future__ import annotations

import asyncio
import itertools
from threading import Event

import msgspec
import pytest
from django.db import connection

import mcp_django as mcp
from mcp_django.exceptions import Cancelled
from mcp_django.exposure.tools import Lane
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.transports import streamable_http
from mcp_django.transports.executor import lanes
from mcp_django.transports.streamable_http import MCPApplication
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.transports.cases import PING, REFUSED, STRANGERS, Case
from tests.transports.wire import PATIENCE, Connection, Gate

LATEST = Revision.V2025_11_25
MODERN = Revision.V2026_07_28


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def eve(make_user):
    return CheckedClient(user=make_user("eve", is_staff=True))


@pytest.fixture
def configure(settings):
    def set_some(**changes):
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, **changes}

    return set_some


@pytest.fixture
def fresh_lanes():
    """Lanes of a size that the test sets, ended behind it."""
    lanes.close()
    yield lanes
    lanes.close()


def speaking(client, revision):
    return CheckedClient(token=client.token, revision=revision)


# One URL, all revisions


@pytest.mark.django_db
def test_every_revision_lists_and_calls_at_the_same_url(client, revision):
    client = speaking(client, revision)

    assert "echo" in {tool["name"] for tool in client.list_tools()}
    assert '"staff"' in client.call_tool("echo", text="hello").text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "revision", [one for one in Revision if one.era is Era.LEGACY], ids=lambda one: one.value
)
def test_the_legacy_handshake_agrees_on_the_revision_and_opens_no_session(client, revision):
    client = speaking(client, revision)
    message = client.message(
        "initialize",
        {
            "protocolVersion": revision.value,
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    )

    answer = client.post(message)

    client.check(message, answer)
    assert answer.messages[0]["result"]["protocolVersion"] == revision.value
    assert "mcp-session-id" not in answer.headers


@pytest.mark.django_db
def test_requests_of_all_revisions_may_follow_each_other_in_any_order(client):
    speakers = [speaking(client, revision) for revision in Revision]

    for first, second in itertools.permutations(speakers, 2):
        assert first.call_tool("echo", text="a").text == second.call_tool("echo", text="a").text


@pytest.mark.django_db
def test_an_answer_is_json_that_no_cache_may_keep(client):
    message = client.message("tools/list")

    answer = client.post(message, headers=client.routing_headers(message))

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["cache-control"] == "no-store"
    assert "Authorization" in answer.headers["vary"]


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


@pytest.mark.django_db
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_known_caller_is_told_what_is_wrong_with_the_request(client, configure, case: Case):
    configure(**case.settings)

    answer = client.http(case.verb, case.body, headers=case.headers)

    assert answer.status == case.status
    assert answer.headers.items() >= case.answered.items()
    assert "error" in answer.messages[0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "case", [case for case in REFUSED if case.name not in STRANGERS], ids=lambda case: case.name
)
def test_nothing_about_the_request_is_told_before_a_credential(configure, case: Case):
    configure(**case.settings)
    body = PING if case.body == PING else b""

    answer = CheckedClient().http(case.verb, case.body, headers=case.headers)

    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.messages[0]["error"]["code"] == -32600
    assert "Present a credential" in answer.messages[0]["error"]["message"]
    assert body or "id" not in answer.messages[0] or answer.messages[0]["id"] is None


@pytest.mark.django_db
def test_a_refused_caller_gets_the_id_of_the_request_back():
    answer = CheckedClient().post(PING)

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

    assert fitting.status == 200
    assert longer.status == 413
    assert longer.is_whole()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("declared", [None, "5", "-1", "many"])
async def test_a_body_longer_than_declared_is_refused_by_its_chunks(client, configure, declared):
    configure(MAX_BODY=100)

    call = Connection(client, b" " * 60, b" " * 60, b"x", headers={"Content-Length": declared})
    await call.whole()

    assert call.status == 413
    assert call.inbox.qsize() == 1, "what comes after the limit is not even read"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("declared", ["101", "9" * 5000])
async def test_a_declared_length_over_the_limit_is_refused_unread(client, configure, declared):
    configure(MAX_BODY=100)

    call = await Connection(client, PING, headers={"Content-Length": declared}).whole()

    assert call.status == 413
    assert call.inbox.qsize() == 1


@pytest.mark.asyncio
async def test_a_client_that_leaves_in_the_middle_of_its_body_ends_the_request_quietly(caplog):
    call = Connection(CheckedClient(), b'{"jsonrpc"', b"never sent")
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


# A client that leaves


def watcher(seen):
    """A tool that works until it is cancelled, and takes effect if it is not."""
    started = Event()
    release = Event()

    def work(ctx: mcp.Context) -> str:
        """Work, and look whether anybody waits."""
        started.set()
        release.wait(PATIENCE)
        seen["cancelled"] = ctx.cancelled.is_set()
        try:
            ctx.check()
        except Cancelled:
            seen["raised"] = True
            raise
        Order.objects.create(number="done")
        return "done"

    return work, started, release


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_modern_client_that_leaves_cancels_its_call(client, add_tool):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(client, "work")

    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)
    # What no server should say then.
    call.inbox.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    call.hang_up()
    await call.end()
    release.set()
    await finished(Lane.WORK)

    assert seen == {"cancelled": True, "raised": True}
    assert call.sent == []
    assert not await Order.objects.filter(number="done").aexists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_legacy_client_that_leaves_does_not_cancel_its_call(client, add_tool):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(speaking(client, LATEST), "work")

    call.start()
    await asyncio.to_thread(started.wait, PATIENCE)
    call.hang_up()
    await call.end()
    release.set()
    await finished(Lane.WORK)

    assert seen == {"cancelled": False}
    assert call.sent == []
    assert await Order.objects.filter(number="done").aexists()


async def finished(lane):
    """Until every job that a lane has now is done: one more per thread, all at once."""
    threads = lanes[lane].size
    together = asyncio.Barrier(threads + 1)
    loop = asyncio.get_running_loop()

    def meet():
        asyncio.run_coroutine_threadsafe(together.wait(), loop).result(PATIENCE)

    jobs = [lanes[lane].start(meet, seconds=PATIENCE, cancelled=Event()) for _ in range(threads)]
    async with asyncio.timeout(PATIENCE):
        await together.wait()
        await asyncio.gather(*jobs)


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_call_whose_client_left_while_it_waited_never_starts(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1)
    started = Event()

    def block() -> str:
        """Hold the only thread."""
        gate.wait()
        return ""

    def late() -> str:
        """Say that it started."""
        started.set()
        return ""

    add_tool(block)
    add_tool(late)
    first, second = Connection.calling(client, "block"), Connection.calling(client, "late")
    first.start()
    await gate.until_reached()
    second.start()
    second.hang_up()
    await second.end()

    gate.open()
    await first.end()
    await finished(Lane.WORK)

    assert first.status == 200
    assert second.sent == []
    assert not started.is_set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_of_a_modern_client_that_leaves_is_cancelled(client, add_tool):
    started, ended = asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.set()
            raise
        return ""

    add_tool(sleep)
    call = Connection.calling(client, "sleep")
    call.start()

    async with asyncio.timeout(PATIENCE):
        await started.wait()
        call.hang_up()
        await call.end()
        await ended.wait()

    assert call.sent == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_of_a_legacy_client_that_leaves_goes_on_to_its_end(client, add_tool):
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        """Wait until released."""
        started.set()
        await release.wait()
        ended.set()
        return ""

    add_tool(sleep)
    call = Connection.calling(speaking(client, LATEST), "sleep")
    call.start()

    async with asyncio.timeout(PATIENCE):
        await started.wait()
        call.hang_up()
        await call.end()
        release.set()
        await ended.wait()
        await asyncio.gather(*streamable_http.async_calls)

    assert call.sent == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_call_that_is_over_when_its_client_leaves_tells_nobody(client, add_tool, gate):
    def block(ctx: mcp.Context) -> str:
        """Report, then wait."""
        ctx.progress(1)
        gate.wait()
        return ""

    add_tool(block)
    call = Connection.calling(client, "block", token=1)
    call.start()
    await call.next()
    await call.next()
    call.hang_up()
    await call.end()

    events = list(call.sent)
    gate.open()
    await finished(Lane.WORK)

    assert call.sent == events
    assert call.is_whole()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_server_that_stops_the_application_cancels_a_modern_call(client, add_tool):
    seen = {}
    work, started, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(client, "work")
    task = call.start()
    await asyncio.to_thread(started.wait, PATIENCE)

    task.cancel()
    await asyncio.wait({task}, timeout=PATIENCE)
    release.set()
    await finished(Lane.WORK)

    assert task.cancelled()
    assert seen["cancelled"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_server_whose_receive_fails_has_lost_the_client(client, add_tool, caplog):
    seen = {}
    work, _, release = watcher(seen)
    add_tool(work)
    call = Connection.calling(client, "work")
    message = call.inbox.get_nowait()
    answers = iter([message])

    async def receive():
        for answer in answers:
            return answer
        raise ConnectionResetError

    task = asyncio.create_task(call.application(call.scope, receive, call.send))
    async with asyncio.timeout(PATIENCE):
        await task
    release.set()
    await finished(Lane.WORK)

    assert seen["cancelled"]
    assert call.sent == []
    assert caplog.records == []


# Lanes and limits


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_slow_tools_of_the_project_hold_up_neither_queries_nor_ping(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1)

    def block() -> str:
        """Hold the only thread."""
        gate.wait()
        return ""

    add_tool(block)
    slow = Connection.calling(client, "block")
    slow.start()
    await gate.until_reached()

    found = await Connection.calling(client, "find_records", model="shop.order").whole()
    ping = await Connection.asking(speaking(client, LATEST), "ping").whole()

    assert found.status == ping.status == 200
    assert not slow.task.done()
    gate.open()
    await slow.end()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_full_queue_answers_503_with_the_id_and_when_to_come_back(
    client, add_tool, gate, configure, fresh_lanes
):
    configure(WORK_THREADS=1, MAX_WAITING=0)

    call = await Connection.calling(client, "echo", text="x").whole()

    assert call.status == 503
    assert call.headers["retry-after"] == "1"
    assert call.json["id"] == 1
    assert call.json["error"]["code"] == -32603
    assert "busy" in call.json["error"]["message"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_tool_that_runs_for_too_long_is_an_error_that_the_model_reads(
    client, add_tool, gate, configure
):
    configure(TOOL_TIMEOUT=0.05)

    def block() -> str:
        """Never end."""
        gate.wait()
        return ""

    add_tool(block)

    call = await Connection.calling(client, "block").whole()
    gate.open()
    await finished(Lane.WORK)

    assert call.status == 200
    assert call.json["result"]["isError"]
    assert "0.05 seconds" in call.json["result"]["content"][0]["text"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_that_runs_for_too_long_is_an_error_that_the_model_reads(
    client, add_tool, configure, caplog
):
    configure(TOOL_TIMEOUT=0.05)

    async def sleep() -> str:
        """Never end."""
        await asyncio.get_running_loop().create_future()
        return ""

    add_tool(sleep)

    call = await Connection.calling(client, "sleep").whole()

    assert call.json["result"]["isError"]
    assert "0.05 seconds" in call.json["result"]["content"][0]["text"]
    assert caplog.records == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_as_many_async_tools_run_at_once_as_calls_may_wait(client, add_tool, configure):
    configure(MAX_WAITING=1)
    started, release = asyncio.Event(), asyncio.Event()

    async def sleep() -> str:
        """Wait until released."""
        started.set()
        await release.wait()
        return ""

    add_tool(sleep)
    first = Connection.calling(client, "sleep")
    first.start()
    async with asyncio.timeout(PATIENCE):
        await started.wait()

    second = await Connection.calling(client, "sleep").whole()
    release.set()
    await first.end()

    assert (first.status, second.status) == (200, 503)
    assert second.headers["retry-after"] == "1"


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "error", [ValueError, TimeoutError, StopAsyncIteration, SystemExit, asyncio.CancelledError]
)
async def test_whatever_an_async_tool_raises_is_an_internal_error(client, add_tool, error):
    async def burst() -> str:
        """Raise."""
        raise error("secret")

    add_tool(burst)

    call = await Connection.calling(client, "burst").whole()

    assert call.json["error"]["message"] == "Internal error"
    assert b"secret" not in call.body


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_can_say_what_to_do_next(client, add_tool):
    async def refuse() -> str:
        """Refuse."""
        raise mcp.ToolError("Ask for tomorrow.")

    add_tool(refuse)

    call = await Connection.calling(client, "refuse").whole()

    assert call.json["result"]["content"][0]["text"] == "Ask for tomorrow."
    assert call.json["result"]["isError"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_async_tools_run_on_the_servers_loop_and_leave_no_connection_open(client, add_tool):
    loop = asyncio.get_running_loop()
    raw = []

    async def look(request) -> bool:
        """Use the database, on this very loop."""
        from asgiref.sync import sync_to_async

        await Order.objects.acount()
        raw.append(await sync_to_async(lambda: connection.connection)())
        assert (await request.auser()).username == "staff"
        return asyncio.get_running_loop() is loop

    add_tool(look)

    call = await Connection.calling(client, "look").whole()

    assert call.json["result"]["structuredContent"] == {"result": True}
    with pytest.raises(Exception, match="closed"):
        raw[0].cursor()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="Only PostgreSQL counts them.")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_many_calls_hold_no_more_connections_than_there_are_threads(
    client, configure, fresh_lanes
):
    configure(QUERY_THREADS=2, WORK_THREADS=2)
    names = ["echo", "echo_later", "echo", "echo_later"] * 5
    calls = [Connection.calling(client, name, text="x") for name in names]
    calls += [Connection.calling(client, "find_records", model="shop.order") for _ in range(20)]

    await asyncio.gather(*(call.whole() for call in calls))

    assert {call.status for call in calls} == {200}
    # The lanes', that of the test itself, asgiref's and the one that asks. The server may take a
    # moment to see that one was closed.
    async with asyncio.timeout(PATIENCE):
        while await asyncio.to_thread(count_connections) > 2 + 2 + 3:
            continue


def count_connections():
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            )
            return cursor.fetchone()[0]
    finally:
        connection.close()


@pytest.mark.django_db
def test_a_tool_inside_a_tests_transaction_sees_the_tests_data(client):
    order = Order.objects.create(number="A1", total=5)

    found = client.call_tool("get_record", model="shop.order", pk=order.pk)

    assert found.structured["number"] == "A1"


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


def test_discovery_says_that_answers_may_stream(client, db):
    assert "experimental" not in client.discover()["capabilities"]

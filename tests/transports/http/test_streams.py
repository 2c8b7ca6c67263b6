from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

import mcp_django as mcp
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import LATEST_LEGACY, LEGACY, Revision
from mcp_django.transports.calls import running
from mcp_django.transports.exchanges import Reply
from mcp_django.transports.http.responses import ResponseStream
from tests.clients import CheckedClient
from tests.spec import requirement
from tests.transports.event_stream import Event
from tests.transports.wire import Connection, Gate, finished
from tests.waiting import PATIENCE

MODERN = Revision.V2026_07_28
CLIENT = {"name": "x", "version": "1"}


def calling(client, token, number=3):
    params = {"name": "count_to", "arguments": {"number": number}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return client.message("tools/call", params)


def post(client, message):
    return client.post(message, headers=client.routing_headers(message))


# A tool that reports progress


@requirement("http:answer-type", "envelope:stream-messages", "envelope:stream-headers")
@pytest.mark.django_db
@pytest.mark.parametrize("token", ["t", 0, 7])
def test_a_tool_that_reports_progress_is_answered_by_a_stream(client, revision, token):
    client = CheckedClient(token=client.token, revision=revision)

    answer = post(client, calling(client, token))

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "no-store" in answer.headers["cache-control"]
    assert "no-transform" in answer.headers["cache-control"]
    assert "content-length" not in answer.headers
    *progress, final = answer.messages
    assert progress
    assert {message["params"]["progressToken"] for message in progress} == {token}
    assert final["id"] == 1
    assert final["result"]["content"][0]["text"] == "Counted to 3."


@pytest.mark.django_db
def test_progress_says_in_words_where_a_revision_can(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    first = post(client, calling(client, "t")).messages[0]

    assert ("message" in first["params"]) == (revision is not Revision.V2024_11_05)


@requirement("envelope:stream-headers")
@pytest.mark.django_db
def test_without_a_session_events_have_no_ids_since_nothing_can_be_resumed(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    lines = post(client, calling(client, "t")).body.split(b"\n")

    assert not [line for line in lines if line.startswith(b"id")]


# In a session


@pytest.fixture
def in_session(client):
    """Events of a call in a session of a legacy revision, and what came behind one of them."""

    class InSession:
        def __init__(self, revision):
            self.client = CheckedClient(token=client.token, revision=revision)
            hello = {"protocolVersion": revision.value, "capabilities": {}, "clientInfo": CLIENT}
            answer = self.client.post(self.client.message("initialize", hello))
            self.headers = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}

        def call(self, token):
            answer = self.client.post(calling(self.client, token), headers=self.headers)
            return events(answer)

        def later(self, event_id):
            headers = {**self.headers, "Last-Event-ID": event_id}
            return events(self.client.http("GET", headers=headers))

    return InSession


def events(answer):
    frames = answer.body.decode().split("\n\n")[:-1]
    return [one for one in map(Event, frames) if not one.is_comment]


@requirement("resumption:event-ids")
@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_no_two_events_of_a_session_have_the_same_id(in_session, revision):
    session = in_session(revision)

    ids = [event.id for token in range(3) for event in session.call(token)]

    assert len(ids) >= 6
    assert all(ids)
    assert len(set(ids)) == len(ids)


@requirement("resumption:priming-event")
@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_a_stream_begins_with_an_event_without_a_message_where_clients_take_one(
    in_session, revision
):
    first, *others = in_session(revision).call("t")

    assert (first.data == "") is revision.features.priming_events
    assert first.id
    assert all(event.data for event in others)


@requirement("resumption:same-stream")
@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
def test_the_last_id_brings_back_later_events_of_the_same_stream_only(in_session, revision):
    session = in_session(revision)
    first, second = session.call("first"), session.call("second")

    for seen in (first, second):
        for index, event in enumerate(seen):
            brought = [one.message for one in session.later(event.id)]
            assert brought == [one.message for one in seen[index + 1 :]]


@requirement("resumption:same-stream")
@pytest.mark.django_db
def test_a_stream_of_another_session_is_not_there(in_session):
    [*_, last] = in_session(LATEST_LEGACY).call("t")
    other = in_session(LATEST_LEGACY)

    answer = other.client.http("GET", headers={**other.headers, "Last-Event-ID": last.id})

    assert answer.status == 404


# How events go out


@requirement("progress:token")
@pytest.mark.django_db
@pytest.mark.parametrize("token", [None, True, 1.5, {}, []])
def test_without_a_token_that_can_be_one_progress_is_dropped(client, token):
    answer = post(client, calling(client, token))

    assert not answer.is_stream
    assert len(answer.messages) == 1


@requirement("progress:token", "http:stream-ends")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_each_report_goes_out_when_it_is_made_and_values_rise(client, add_tool):
    gates = [Gate() for _ in range(3)]

    def climb(ctx: mcp.Context) -> str:
        """Report between gates; one report does not rise."""
        for step, gate in zip((1, 2, 5), gates, strict=True):
            ctx.progress(step)
            ctx.progress(step - 1)
            gate.wait()
        return "top"

    add_tool(climb)
    call = Connection.calling(client, "climb", token="t")
    call.start()
    await call.next()
    seen = []
    for gate in gates:
        event = await call.next()
        seen.append(msgspec.json.decode(event["body"].split(b"data: ")[1]))
        gate.open()
    await call.end()

    assert [one["params"]["progress"] for one in seen] == [1, 2, 5]
    assert call.messages[-1]["result"]["content"][0]["text"] == "top"
    assert call.is_whole()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_of_many_reports_at_once_the_last_arrives(client):
    call = Connection.asking(
        client,
        "tools/call",
        {
            "name": "count_to",
            "arguments": {"number": 5000},
            "_meta": {"progressToken": "t"},
        },
    )

    await call.whole()

    values = [one["params"]["progress"] for one in call.messages[:-1]]
    assert values[-1] == 5000
    assert values == sorted(set(values))
    assert len(values) < 5000


@pytest.mark.thorough
@requirement("progress:token")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_nothing_follows_the_answer(client, add_tool, gate, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "TOOL_TIMEOUT": 0.5}
    refused = threading.Event()

    def linger(ctx: mcp.Context) -> str:
        """Report, outlive the limit, report again."""
        ctx.progress(1)
        gate.wait()
        try:
            ctx.progress(2)
        finally:
            refused.set()
        return ""

    add_tool(linger)
    call = await Connection.calling(client, "linger", token="t").whole()
    gate.open()
    await asyncio.to_thread(refused.wait, PATIENCE)

    assert [message.get("method") for message in call.messages] == [
        "notifications/progress",
        None,
    ]
    assert call.messages[-1]["result"]["isError"]
    assert call.is_whole()


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_async_tool_reports_progress_as_well(client, add_tool):
    go_on = asyncio.Event()

    async def stroll(ctx: mcp.Context) -> str:
        """Report and wait."""
        ctx.progress(1, total=2)
        await go_on.wait()
        return "there"

    add_tool(stroll)
    call = Connection.calling(client, "stroll", token="t")
    call.start()
    await call.next()
    await call.next()
    go_on.set()
    await call.end()

    assert [message.get("method") for message in call.messages] == [
        "notifications/progress",
        None,
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_the_last_report_is_sent_even_if_the_answer_is_ready_with_it(client, add_tool, gate):
    def climb(ctx: mcp.Context) -> str:
        """Report before and after the gate."""
        ctx.progress(1)
        gate.wait()
        ctx.progress(2)
        return "top"

    add_tool(climb)
    call = Connection.calling(client, "climb", token="t")
    send = call.send

    async def slow_send(event):
        await send(event)
        if b"progress" in event.get("body", b"") and not gate.opened.is_set():
            gate.open()
            await finished(Lane.WORK)

    call.send = slow_send
    await call.whole()

    values = [message["params"]["progress"] for message in call.messages[:-1]]
    assert values == [1, 2]


# Errors before and after the first event


@requirement("envelope:error-before-stream")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_error_before_the_first_report_is_json_with_its_status(client):
    call = await Connection.asking(
        client, "tools/nonsense", {"_meta": {"progressToken": "t"}}
    ).whole()

    assert call.status == 404
    assert call.headers["content-type"] == "application/json"
    assert call.json["error"]["code"] == -32601


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_an_error_after_the_first_report_rides_in_the_stream(client, add_tool):
    def burst(ctx: mcp.Context) -> str:
        """Report, then fail."""
        ctx.progress(1)
        raise ValueError("secret")

    add_tool(burst)

    call = await Connection.calling(client, "burst", token="t").whole()

    assert call.status == 200
    assert call.messages[-1]["error"]["code"] == -32603
    assert b"secret" not in call.body
    assert call.is_whole()


# Signs of life


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_slow_answer_becomes_a_stream_that_shows_signs_of_life(
    client, add_tool, gate, monkeypatch
):
    monkeypatch.setattr(running, "QUICK", 0.01)
    monkeypatch.setattr(running, "GRACE", 0.01)
    monkeypatch.setattr(running, "KEEP_ALIVE", 0.01)

    def block() -> str:
        """Wait."""
        gate.wait()
        return "late"

    add_tool(block)
    call = Connection.calling(client, "block")
    call.start()
    start, first, second = [await call.next() for _ in range(3)]
    gate.open()
    await call.end()

    assert start["type"] == "http.response.start"
    assert call.headers["content-type"] == "text/event-stream"
    assert first["body"] == second["body"] == b": keep-alive\n\n"
    assert call.messages[-1]["result"]["content"][0]["text"] == "late"
    assert call.is_whole()


@pytest.mark.thorough
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_before_the_grace_time_is_over_nothing_is_sent(client, add_tool, gate, monkeypatch):
    monkeypatch.setattr(running, "QUICK", 0.01)

    def block() -> str:
        """Wait."""
        gate.wait()
        return "in time"

    add_tool(block)
    call = Connection.calling(client, "block")
    call.start()
    await gate.until_reached()
    await asyncio.wait({call.task}, timeout=0.05)
    before = list(call.sent)
    gate.open()
    await call.end()

    assert before == []
    assert call.headers["content-type"] == "application/json"


# The stream by itself


class Server:
    def __init__(self, fails_at=None, error=OSError):
        self.sent = []
        self.fails_at = fails_at
        self.error = error

    async def send(self, event):
        if len(self.sent) == self.fails_at:
            raise self.error
        self.sent.append(event)


@pytest.mark.asyncio
async def test_an_unstarted_response_has_no_end():
    server = Server()

    await ResponseStream(server.send).end()

    assert server.sent == []


@pytest.mark.asyncio
async def test_a_response_ends_once():
    server = Server()
    stream = ResponseStream(server.send)

    await stream.reply(Reply(parts=(b"{}",)))
    await stream.reply(Reply(parts=(b"{}",)))
    await stream.events([b"{}"])
    await stream.keep_alive()
    await stream.end()

    assert [event["type"] for event in server.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert not server.sent[-1]["more_body"]


@pytest.mark.asyncio
async def test_a_begun_stream_is_ended_without_an_answer():
    server = Server()
    stream = ResponseStream(server.send)

    await stream.keep_alive()
    await stream.end()

    assert server.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.mark.asyncio
@pytest.mark.parametrize("fails_at", [0, 1, 2])
async def test_after_the_client_has_left_nothing_is_sent_and_nothing_raised(fails_at):
    server = Server(fails_at)
    stream = ResponseStream(server.send)

    await stream.events([b"1"])
    await stream.events([b"2"])
    await stream.reply(Reply(parts=(b"3",)))

    assert len(server.sent) == fails_at
    assert stream.has_ended


@pytest.mark.asyncio
async def test_a_header_that_http_cannot_say_leaves_the_response_unstarted():
    server = Server()
    stream = ResponseStream(server.send)

    with pytest.raises(UnicodeEncodeError):
        await stream.reply(Reply(headers=(("X-Name", "\u0142"),)))
    await stream.reply(Reply(parts=(b"{}",), status=500))

    assert [event.get("status") for event in server.sent] == [500, None]

from __future__ import annotations

import msgspec
import pytest

import mcp_django as mcp
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports import call as running
from mcp_django.transports.exchanges import Reply
from mcp_django.transports.responses import ResponseStream
from tests.spec import requirement
from tests.transports.event_stream import Event
from tests.transports.wire import Connection, Gate, counting

pytestmark = pytest.mark.django_db

MODERN = Revision.V2026_07_28


# A tool that reports progress


@requirement("http:answer-type", "envelope:stream-messages", "envelope:stream-headers")
@pytest.mark.parametrize("token", ["t", 0, 7])
def test_a_tool_that_reports_progress_is_answered_by_a_stream(client, revision, token):
    answer = client.post_request("tools/call", counting(token))

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "no-store" in answer.headers["cache-control"]
    assert "no-transform" in answer.headers["cache-control"]
    assert "content-length" not in answer.headers
    # Without a session nothing can be resumed.
    assert b"\nid" not in answer.body
    *progress, final = answer.messages
    assert progress
    assert {message["params"]["progressToken"] for message in progress} == {token}
    assert final["id"] == 1
    assert final["result"]["content"][0]["text"] == "Counted to 3."


# In a session


@requirement("resumption:event-ids", "resumption:same-stream")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
def test_the_last_id_brings_back_later_events_of_the_same_stream_only(client, revision):
    client.initialize()
    calls = [events(client.post_request("tools/call", counting(token))) for token in range(3)]
    ids = [event.id for call in calls for event in call]

    assert len(ids) >= 6
    assert all(ids)
    assert len(set(ids)) == len(ids)
    for call in calls:
        for index, event in enumerate(call):
            headers = {"Mcp-Session-Id": client.session, "Last-Event-ID": event.id}
            later = events(client.http("GET", headers=headers))
            assert [event.message for event in later] == [
                event.message for event in call[index + 1 :]
            ]


def events(answer):
    frames = answer.body.decode().split("\n\n")[:-1]
    return [event for event in map(Event, frames) if not event.is_comment]


# How events go out


@requirement("progress:token")
@pytest.mark.parametrize("token", [None, True, 1.5, {}, []])
def test_without_a_token_that_can_be_one_progress_is_dropped(client, token):
    answer = client.post_request("tools/call", counting(token))

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

    assert [message["params"]["progress"] for message in seen] == [1, 2, 5]
    assert call.messages[-1]["result"]["content"][0]["text"] == "top"
    assert call.is_whole()


# Errors before and after the first event


@requirement("envelope:error-before-stream")
@pytest.mark.parametrize(
    ("method", "status", "kind", "code"),
    [
        ("tools/nonsense", 404, "application/json", -32601),
        ("tools/call", 200, "text/event-stream", -32603),
    ],
)
def test_an_error_has_a_status_before_the_first_report_and_rides_in_the_stream_after_it(
    client, add_tool, method, status, kind, code
):
    def burst(ctx: mcp.Context) -> str:
        """Report, then fail."""
        ctx.progress(1)
        raise ValueError("secret")

    add_tool(burst)

    answer = client.post_request(method, {**counting("t"), "name": "burst", "arguments": {}})

    assert (answer.status, answer.headers["content-type"]) == (status, kind)
    assert answer.messages[-1]["error"]["code"] == code
    assert b"secret" not in answer.body


# Signs of life


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("grace", [0.01, 30])
async def test_an_answer_becomes_a_stream_that_shows_signs_of_life_after_a_grace_time(
    client, patient, gate, monkeypatch, grace
):
    monkeypatch.setattr(running, "QUICK", 0.01)
    monkeypatch.setattr(running, "GRACE", grace)
    monkeypatch.setattr(running, "KEEP_ALIVE", 0.01)

    call = await gate.held(Connection.calling(client, "patient"))
    first = [(await call.next()).get("body") for _ in range(3)] if grace < 1 else []
    gate.open()
    await call.end()

    assert first in ([None, b": keep-alive\n\n", b": keep-alive\n\n"], [])
    assert call.headers["content-type"] == ("text/event-stream" if first else "application/json")
    assert call.messages[-1]["result"]["content"][0]["text"] == "done"
    assert call.is_whole()


# The stream by itself


def takes(events):
    async def send(event):
        events.append(event)

    return send


@pytest.mark.asyncio
async def test_a_response_ends_once():
    sent = []
    stream = ResponseStream(takes(sent))

    await stream.reply(Reply(parts=(b"{}",)))
    await stream.reply(Reply(parts=(b"{}",)))
    await stream.events([b"{}"])
    await stream.keep_alive()
    await stream.end()

    assert [event["type"] for event in sent] == ["http.response.start", "http.response.body"]
    assert not sent[-1]["more_body"]


@pytest.mark.asyncio
async def test_a_header_that_http_cannot_say_leaves_the_response_unstarted():
    sent = []
    stream = ResponseStream(takes(sent))

    with pytest.raises(UnicodeEncodeError):
        await stream.reply(Reply(headers=(("X-Name", "\u0142"),)))
    await stream.reply(Reply(parts=(b"{}",), status=500))

    assert [event.get("status") for event in sent] == [500, None]

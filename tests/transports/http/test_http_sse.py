from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django import forms
from django.utils import timezone

import mcp_django as mcp
from mcp_django.asgi import get_mcp_application
from mcp_django.exposure.primitives import Lane
from mcp_django.models import PersonalToken
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.stores.interface import get_store
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import CLOSE, TOOLS, Change, control_topic
from mcp_django.transports.http import http_sse
from mcp_django.transports.http.http_sse import stream_here
from mcp_django.transports.sessions import end_session, key_of
from mcp_django.transports.streams.hub import KEEP_ALIVE, get_hub
from tests.clients import CheckedClient, WSGIClient
from tests.oracle import assert_valid_message
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.http_sse_client import HTTPSSEClient, settled
from tests.transports.middlewares import seen
from tests.transports.wire import PATIENT, finished

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
LEGACY = [one for one in Revision if one.era is Era.LEGACY]
MIDDLEWARES = "tests.transports.middlewares"
HELLO = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "old", "version": "1"},
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def other(make_user):
    return CheckedClient(user=make_user("eve", is_staff=True))


def turn_the_wheel():
    """As long as it takes for a sign of life on each stream."""
    for _ in range(KEEP_ALIVE):
        get_hub()._turn()


# The stream


@requirement("http-sse:event-stream", "http-sse:endpoint-unguessable")
async def test_the_first_event_names_an_unguessable_address_of_the_same_origin(client):
    one = await HTTPSSEClient(client).open()
    two = await HTTPSSEClient(client).open()

    assert one.stream.status == 200
    assert one.stream.headers["content-type"] == "text/event-stream"
    assert re.fullmatch(r"/mcp/messages\?session_id=[A-Za-z0-9_-]{43}", one.endpoint)
    assert one.endpoint != two.endpoint
    await one.leave()
    await two.leave()


@requirement("http-sse:endpoint-event")
@pytest.mark.parametrize(
    ("root_path", "path", "base"),
    [
        ("", "/mcp", "/mcp"),
        ("/app", "/app/mcp", "/app/mcp"),
        ("/app", "/mcp", "/app/mcp"),
        ("/app/", "/app/mcp", "/app/mcp"),
        ("//evil.example", "/mcp", "/evil.example/mcp"),
        ("/caf\u00e9\ndata: x", "/mcp", "/caf%C3%A9%0Adata%3A%20x/mcp"),
    ],
)
async def test_the_address_has_the_prefix_that_the_site_is_mounted_at(
    client, root_path, path, base
):
    session = HTTPSSEClient(client, application=get_mcp_application(), path=path)

    await session.open(root_path=root_path)

    assert session.endpoint == f"{base}/messages?session_id={session.id}"
    await session.leave()


@requirement("http-sse:endpoint-event")
async def test_a_forced_script_name_is_part_of_the_address(client, settings):
    settings.FORCE_SCRIPT_NAME = "/forced"
    session = HTTPSSEClient(client, application=get_mcp_application(), path="/forced/mcp")

    await session.open()

    assert session.endpoint.startswith("/forced/mcp/messages?")
    await session.leave()


async def test_the_endpoint_may_stand_at_the_root(client):
    session = await HTTPSSEClient(client, application=get_mcp_application(path=""), path="").open()

    assert session.endpoint.startswith("/messages?")
    assert (await session.post(PING)).status == 202
    await session.leave()


# Messages


@requirement("http-sse:accepted", "http-sse:message-event")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_any_revision_with_a_handshake_is_spoken(client, revision):
    session = await HTTPSSEClient(client).begin(revision.value)

    listed = await session.ask("tools/list")
    text = await session.call("list_models")

    assert session.hello["protocolVersion"] == revision.value
    assert_valid_message(revision, "tools/list", listed)
    assert "shop.order" in text
    await session.leave()


async def test_a_revision_without_a_handshake_is_answered_with_the_newest_that_has_one(client):
    session = await HTTPSSEClient(client).begin("2026-07-28")

    assert session.hello["protocolVersion"] == LEGACY[-1].value
    await session.leave()


async def test_headers_and_meta_of_other_revisions_say_nothing(client):
    session = await HTTPSSEClient(client).begin("2025-06-18")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

    number = await session.send(
        "tools/list", {"_meta": meta}, **{"MCP-Protocol-Version": "1.0", "Accept": "text/html"}
    )

    assert "resultType" not in (await session.answer_to(number))["result"]
    await session.leave()


async def test_before_the_handshake_there_are_only_it_and_pings(client):
    session = await HTTPSSEClient(client).open()

    assert (await session.ask("ping"))["result"] == {}
    assert (await session.ask("tools/list"))["error"]["code"] == -32600
    assert (await session.ask("server/discover"))["error"]["code"] == -32601
    assert (await session.ask("initialize"))["error"]["code"] == -32602
    await session.leave()


async def test_there_is_one_handshake(client):
    session = await HTTPSSEClient(client).begin("2024-11-05")
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }

    again = await session.ask("initialize", params)

    assert again["error"]["code"] == -32600
    kept = await sync_to_async(get_store().session)(key_of(session.id))
    assert (kept.revision, kept.client["name"]) == ("2024-11-05", "old")
    await session.leave()


async def test_a_post_is_answered_before_its_tool_is_done(client, patient, gate):
    session = await HTTPSSEClient(client).begin()

    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()
    assert (await session.ask("ping"))["result"] == {}
    gate.open()

    assert (await session.answer_to(number))["result"]["content"][0]["text"] == "done"
    await session.leave()


async def test_a_client_that_does_not_wait_for_202_has_its_answer_all_the_same(client):
    session = await HTTPSSEClient(client).begin()
    post = session.posting({**PING, "id": 99, "method": "tools/list"})

    post.hang_up()
    post.start()

    assert "tools" in (await session.answer_to(99))["result"]
    await post.end()
    await session.leave()


async def test_a_post_whose_connection_is_given_up_runs_on(client, patient, gate):
    session = await HTTPSSEClient(client).begin()
    many = [session.posting({**PING, "id": f"p{n}", "method": "tools/list"}) for n in range(3)]

    tasks = [post.start() for post in many]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    answers = [await session.response() for _ in many]
    assert {one["id"] for one in answers} == {"p0", "p1", "p2"}
    await session.leave()


async def test_progress_and_the_answer_come_in_order(client, add_tool, gate):
    def work(ctx: mcp.Context) -> str:
        """Report."""
        ctx.progress(1)
        gate.wait()
        ctx.progress(2)
        return "done"

    add_tool(work)
    session = await HTTPSSEClient(client).begin()
    params = {"name": "work", "arguments": {}, "_meta": {"progressToken": "t"}}

    number = await session.send("tools/call", params)
    first = await session.message("notifications/progress")
    gate.open()
    await session.answer_to(number)

    assert first["params"] == {"progressToken": "t", "progress": 1}
    assert [one["params"]["progress"] for one in session.heard("notifications/progress")] == [2]
    await session.leave()


async def test_an_async_tool_answers_on_the_stream(client, add_tool):
    async def later() -> str:
        """Answer."""
        await asyncio.sleep(0)
        return "later"

    add_tool(later)
    session = await HTTPSSEClient(client).begin()

    assert await session.call("later") == "later"
    await session.leave()


async def test_a_question_is_asked_on_the_stream_and_answered_by_a_post(client, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        return f"Hello {ctx.ask('who', Name, 'Who are you?')['name']}"

    add_tool(greet, asks=True)
    session = await HTTPSSEClient(client).begin("2025-06-18", elicitation={})

    number = await session.send("tools/call", {"name": "greet", "arguments": {}})
    question = await session.message("elicitation/create")
    said = {"action": "accept", "content": {"name": "Ada"}}
    posted = await session.post({"jsonrpc": "2.0", "id": question["id"], "result": said})

    assert posted.status == 202
    answer = await session.answer_to(number)
    assert answer["result"]["content"][0]["text"] == "Hello Ada"
    await session.leave()


async def test_a_call_that_the_client_takes_back_is_not_answered(client, patient, gate):
    session = await HTTPSSEClient(client).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    await session.tell("notifications/cancelled", requestId=number)
    # The same id is free again once the call is gone.
    await settled()
    gate.open()

    answer = await session.ask("ping")
    assert answer["result"] == {}
    assert session.heard(None) == []
    await session.leave()


async def test_an_id_whose_request_still_runs_is_refused(client, patient, gate):
    session = await HTTPSSEClient(client).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    again = await session.post({**PING, "id": number})

    assert (again.status, again.json["id"]) == (400, number)
    gate.open()
    await session.answer_to(number)
    await session.leave()


async def test_a_bug_of_ours_is_answered_on_the_stream(client, add_tool):
    def broken() -> str:
        """Fail."""
        raise ValueError("secret")

    add_tool(broken)
    session = await HTTPSSEClient(client).begin()

    answer = await session.ask("tools/call", {"name": "broken", "arguments": {}})

    assert answer["error"]["message"] == "Internal error"
    assert "secret" not in str(answer)
    await session.leave()


# Changes


async def test_a_subscribed_client_hears_of_a_change_on_the_same_stream(client):
    order = await sync_to_async(Order.objects.create)(number="1")
    uri = f"django://objects/shop.order/{order.pk}"
    session = await HTTPSSEClient(client).begin()
    assert (await session.ask("resources/subscribe", {"uri": uri}))["result"] == {}
    await settled()

    publish({Change(topic=uri)})

    told = await session.message("notifications/resources/updated")
    assert told["params"] == {"uri": uri}
    assert (await session.ask("resources/unsubscribe", {"uri": uri}))["result"] == {}
    await session.leave()


async def test_changes_of_lists_are_told(client):
    session = await HTTPSSEClient(client).begin()

    publish({Change(topic=TOOLS, server=DEFAULT_SERVER)})

    assert (await session.message("notifications/tools/list_changed"))["params"] == {}
    await session.leave()


async def test_a_change_before_the_handshake_is_told_after_it(client):
    session = await HTTPSSEClient(client).open()
    publish({Change(topic=TOOLS, server=DEFAULT_SERVER)})
    await settled()

    await session.send("initialize", HELLO)

    assert (await session.message())["id"] == 1
    assert (await session.message())["method"] == "notifications/tools/list_changed"
    await session.leave()


async def test_the_level_of_log_messages_is_kept(client):
    session = await HTTPSSEClient(client).begin()

    assert (await session.ask("logging/setLevel", {"level": "error"}))["result"] == {}

    kept = await sync_to_async(get_store().session)(key_of(session.id))
    assert kept.log_level == "error"
    await session.leave()


async def test_an_open_stream_keeps_its_session_alive(client, configure):
    configure(STORE="memory")
    store, now = get_store(), timezone.now()
    session = await HTTPSSEClient(client).begin()

    for minutes in (20, 40):
        store.clock = partial(now.__add__, timedelta(minutes=minutes))
        turn_the_wheel()
        assert (await session.stream.frame()).is_comment
        await settled()

    assert store.session(key_of(session.id)) is not None
    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


# The end


@requirement("http-sse:close")
async def test_the_end_of_the_stream_ends_the_session_and_the_work_for_it(client, patient, gate):
    session = await HTTPSSEClient(client).begin()
    await session.send("tools/call", PATIENT)
    await gate.until_reached()
    assert len(await sync_to_async(get_store().streams)()) == 1

    await session.leave()
    gate.open()

    assert (await session.post(PING)).status == 404
    assert await sync_to_async(get_store().session)(key_of(session.id)) is None
    assert await sync_to_async(get_store().streams)() == []
    assert not get_hub().streams
    await finished(Lane.WORK)
    assert patient == [True]


async def test_the_admin_sees_the_stream_and_what_was_agreed(client):
    session = await HTTPSSEClient(client).begin("2025-06-18")
    await settled()

    (shown,) = await sync_to_async(get_store().streams)()

    assert (shown.kind, shown.revision, shown.client) == ("http_sse", "2025-06-18", "old")
    assert shown.session == key_of(session.id)
    await session.leave()


async def test_a_stream_that_is_over_is_not_shown_again(client):
    session = await HTTPSSEClient(client).open()
    stream = stream_here(get_hub(), key_of(session.id))
    kept = await sync_to_async(get_store().session)(key_of(session.id))
    await session.leave()

    # As if the handshake was heard of at the last moment.
    await stream._follow(kept)

    assert await sync_to_async(get_store().streams)() == []


async def test_a_session_that_is_ended_elsewhere_ends_its_stream(client):
    session = await HTTPSSEClient(client).begin()

    await sync_to_async(end_session)(key_of(session.id))

    assert await session.stream.rest() == []
    await session.stream.end()
    await settled()


async def test_the_admin_closes_streams_of_a_user(client, staff):
    session = await HTTPSSEClient(client).begin()

    publish({Change(topic=control_topic(CLOSE, "user", "default", str(staff.pk)))})

    assert await session.stream.rest() == []
    await settled()
    assert (await session.post(PING)).status == 404


async def test_the_end_of_the_server_ends_streams_in_good_order(client):
    session = await HTTPSSEClient(client).begin()

    get_hub().close()

    assert await session.stream.rest() == []
    assert session.stream.is_whole()
    await settled()


async def test_a_credential_that_is_revoked_ends_the_stream(client):
    session = await HTTPSSEClient(client).begin()

    await sync_to_async(PersonalToken.objects.all().delete)()
    turn_the_wheel()

    assert await session.stream.rest() == []
    await session.stream.end()
    await settled()


# Refusals


@requirement("http-sse:refusals")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("session_id=", 400),
        ("other=1", 400),
        ("session_id=a&session_id=a", 400),
        ("session_id=" + "x" * 129, 400),
        ("session_id=" + "x" * 100_000, 414),
        ("session_id=%C3%A9", 400),
        ("session_id=%ff%00", 400),
        ("session_id=a%0Ab", 400),
        ("&".join(["session_id=a"] + ["x=1"] * 100), 400),
        ("session_id=\u00e9", 400),
        ("session_id=" + "x" * 43, 404),
        ("session_id=6f1f0a1de05e4b0c8f0c3b1f6b8d2d11", 404),
    ],
)
async def test_a_session_id_is_malformed_or_unknown(client, query, status):
    session = await HTTPSSEClient(client).open()

    posted = await session.post(PING, endpoint=f"/mcp/messages?{query}")

    assert posted.status == status
    assert posted.json["error"]["code"] == -32600
    await session.leave()


@requirement("http-sse:refusals")
@pytest.mark.parametrize(
    ("body", "options", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        (b"", {}, 400, -32700),
        (b"\xff", {}, 400, -32700),
        (b"[" * 4_000, {}, 400, -32700),
        (b"[]", {}, 400, -32600),
        ([PING], {}, 400, -32600),
        ({**PING, "id": None}, {}, 400, -32600),
        ({**PING, "jsonrpc": "1.0"}, {}, 400, -32600),
        (PING, {"Content-Type": "text/plain"}, 415, -32600),
        (PING, {"Content-Encoding": "gzip"}, 415, -32600),
        (b"[" + b" " * 10_000 + b"]", {}, 413, -32600),
        (PING, {"verb": "GET"}, 405, -32600),
        (PING, {"verb": "PUT"}, 405, -32600),
        (PING, {"Origin": "https://evil.example"}, 403, -32600),
        (PING, {"Host": "evil.example"}, 400, -32600),
        (PING, {"Authorization": "Bearer nobody"}, 401, -32600),
    ],
)
async def test_a_post_that_cannot_be_accepted_is_told_why(
    client, configure, body, options, status, code
):
    configure(MAX_BODY=5_000)
    session = await HTTPSSEClient(client).begin()

    posted = await session.post(body, **options)

    assert (posted.status, posted.json["error"]["code"]) == (status, code)
    assert posted.headers.get("allow") == ("POST" if status == 405 else None)
    assert ("www-authenticate" in posted.headers) == (status == 401)
    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


@requirement("http-sse:origin")
@pytest.mark.parametrize(
    ("verb", "headers", "status"),
    [
        ("GET", {"Origin": "https://evil.example"}, 403),
        ("GET", {"Host": "evil.example"}, 400),
        ("GET", {"Accept": "application/json"}, 406),
        ("GET", {"Authorization": "Bearer nobody"}, 401),
        ("POST", {}, 405),
        ("DELETE", {}, 405),
        ("HEAD", {}, 405),
    ],
)
async def test_a_stream_that_is_not_opened_leaves_no_session(client, verb, headers, status):
    session = HTTPSSEClient(client)

    refused = await session.post(b"", verb=verb, endpoint="/mcp/sse", **headers)

    assert refused.status == status
    assert refused.headers.get("allow") == ("GET" if status == 405 else None)
    assert await sync_to_async(get_store().sessions)() == []


@requirement("http-sse:origin")
async def test_an_origin_of_ours_opens_a_stream(client):
    session = await HTTPSSEClient(client).open(Origin="http://testserver")

    assert session.stream.status == 200
    assert (await session.post(PING, Origin="http://testserver")).status == 202
    await session.leave()


@requirement("http-sse:foreign")
async def test_a_session_of_somebody_else_does_not_exist(client, other):
    own, foreign = await HTTPSSEClient(client).begin(), await HTTPSSEClient(other).begin()
    stranger = {"Authorization": f"Bearer {other.token}"}

    at_foreign = await own.post(PING, endpoint=own.endpoint, **stranger)
    nowhere = await own.post(PING, endpoint="/mcp/messages?session_id=nobody", **stranger)

    assert (at_foreign.status, at_foreign.body) == (404, nowhere.body)
    assert (await own.ask("ping"))["result"] == {}
    assert own.heard(None) == []
    await own.leave()
    await foreign.leave()


async def test_sessions_of_the_two_http_transports_do_not_mix(client):
    session = await HTTPSSEClient(client).begin()
    headers = {"Mcp-Session-Id": session.id, "MCP-Protocol-Version": "2025-11-25"}

    reply = await sync_to_async(client.post)(PING, headers=headers)

    assert reply.status == 404
    await session.leave()


async def test_a_store_that_is_gone_fails_the_post_and_not_the_stream(
    client, configure, monkeypatch, caplog
):
    configure(STORE="memory")
    session = await HTTPSSEClient(client).begin()

    def fail(key):
        raise OSError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(get_store(), "session", fail)
        posted = await session.post(PING)

    assert (posted.status, posted.json["error"]["message"]) == (500, "Internal error")
    assert posted.json["error"]["data"]["id"] in caplog.text
    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


@pytest.mark.parametrize(("name", "status"), [("Page", 503), ("Forbidding", 403), ("Login", 403)])
async def test_middleware_may_refuse_both(client, settings, name, status):
    session = await HTTPSSEClient(client).begin()
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{MIDDLEWARES}.{name}"]

    posted = await session.post(PING)
    opened = await HTTPSSEClient(client).open()

    assert posted.status == opened.stream.status
    assert 400 <= posted.status < 600
    await session.leave()


async def test_middleware_runs_round_both_and_its_late_failure_is_told_on_the_stream(
    client, settings, caplog
):
    session = await HTTPSSEClient(client).begin()
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{MIDDLEWARES}.function"]
    seen.clear()
    other = await HTTPSSEClient(client).begin()
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{MIDDLEWARES}.RaisingAfterwards"]

    answer = await session.ask("ping")

    assert seen[:4] == ["function in", "function out"] * 2
    assert answer["error"]["code"] == -32603
    await session.leave()
    await other.leave()


@pytest.mark.parametrize(("verb", "path"), [("GET", "sse"), ("POST", "messages")])
async def test_a_wsgi_site_does_not_serve_it(client, verb, path):
    web = WSGIClient(token=client.token, path=f"/mcp/{path}")

    assert (await sync_to_async(web.http)(verb)).status == 404


async def test_a_principal_has_only_so_many_streams(client, configure):
    configure(MAX_STREAMS_PER_PRINCIPAL=1)
    one = await HTTPSSEClient(client).open()

    two = await HTTPSSEClient(client).open()

    assert (two.stream.status, two.stream.headers["retry-after"]) == (503, "1")
    await two.stream.end()
    await settled()
    assert len(await sync_to_async(get_store().sessions)()) == 1
    await one.leave()


async def test_a_flood_of_posts_is_held_up_before_it_is_accepted(
    client, patient, gate, monkeypatch
):
    monkeypatch.setattr(http_sse, "MOST_CALLS", 2)
    session = await HTTPSSEClient(client).begin()
    numbers = [await session.send("tools/call", PATIENT) for _ in range(2)]

    refused = await session.post({**PING, "id": "more"})
    gate.open()

    assert (refused.status, refused.json["id"]) == (503, "more")
    assert {(await session.response())["id"] for _ in numbers} == set(numbers)
    assert (await session.ask("ping"))["result"] == {}
    await session.leave()


async def test_too_many_calls_are_refused_by_the_post(client, configure):
    session = await HTTPSSEClient(client).begin()
    configure(CALLS_PER_MINUTE=1)

    statuses = [(await session.post({**PING, "id": f"x{n}"})).status for n in range(3)]

    assert statuses[-1] == 429
    await session.leave()


async def test_a_server_without_a_free_thread_refuses_either(client, configure, fresh_lanes):
    session = await HTTPSSEClient(client).begin()
    configure(MAX_WAITING=0)
    await asyncio.to_thread(fresh_lanes.close)

    posted = await session.post(PING)
    opened = await HTTPSSEClient(client).open()

    assert (posted.status, opened.stream.status) == (503, 503)
    configure(MAX_WAITING=200)
    await asyncio.to_thread(fresh_lanes.close)
    await session.leave()

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from functools import partial

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django import forms
from django.utils import timezone

import mcp_django as mcp
from mcp_django.asgi import get_mcp_application
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.stores.sessions import get_store
from mcp_django.subscriptions.topics import TOOLS
from mcp_django.transports import http_sse
from mcp_django.transports.call_log import log_topic
from mcp_django.transports.http_sse import index_of
from mcp_django.transports.hub import get_hub
from mcp_django.transports.sessions import key_of
from mcp_django.transports.threads import Lane
from tests.oracle import assert_valid_message
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.event_stream import changed, turn_the_wheel
from tests.transports.http_sse_client import HTTPSSEClient, settled
from tests.transports.middlewares import seen
from tests.transports.wire import PATIENT, PINGING, finished, hello

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=[None, "elsewhere"], ids=["here", "elsewhere"])
def place(request):
    """Where messages are posted: to the process of the stream (None), or to another one."""
    return request.param and request.getfixturevalue(request.param)


async def settled_in(place):
    await settled()
    if place is not None:
        await place.settled()


@pytest_asyncio.fixture
async def session(sse):
    return await sse().begin()


# The stream


@requirement("http-sse:event-stream", "http-sse:endpoint-unguessable", "http-sse:endpoint-event")
@pytest.mark.parametrize(
    ("root_path", "path", "base"),
    [
        ("", "/mcp", "/mcp"),
        ("/app", "/app/mcp", "/app/mcp"),
        ("/app", "/mcp", "/app/mcp"),
        ("/app/", "/app/mcp", "/app/mcp"),
        ("//evil.example", "/mcp", "/evil.example/mcp"),
        ("/caf\u00e9\ndata: x", "/mcp", "/caf%C3%A9%0Adata%3A%20x/mcp"),
        (None, "/forced/mcp", "/forced/mcp"),
        # The endpoint stands at the root.
        ("", "", ""),
    ],
)
async def test_the_first_event_names_an_unguessable_address_below_the_prefix_of_the_site(
    sse, settings, root_path, path, base
):
    if root_path is None:
        settings.FORCE_SCRIPT_NAME = "/forced"
    application = get_mcp_application(path="mcp" if path else "")
    session = sse(application=application, path=path)
    other = sse(application=application, path=path)

    await session.open(root_path=root_path or "", Origin="http://testserver")
    await other.open(root_path=root_path or "")

    assert session.stream.headers["content-type"] == "text/event-stream"
    assert session.endpoint == f"{base}/messages?session_id={session.id}"
    assert re.fullmatch("[A-Za-z0-9_-]{43}", session.id)
    assert session.id != other.id


# Messages


@requirement("http-sse:accepted", "http-sse:message-event")
@pytest.mark.parametrize(
    "asked", [*LEGACY, Revision.V2026_07_28], ids=lambda revision: revision.value
)
async def test_any_revision_with_a_handshake_is_spoken(place, sse, asked):
    session = await sse(posts=place).begin(asked.value)
    agreed = asked if asked in LEGACY else LEGACY[-1]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

    # Headers and _meta of other revisions say nothing. Pages of the site may ask.
    headers = {"MCP-Protocol-Version": "1.0", "Origin": "http://testserver"}
    number = await session.send("tools/list", {"_meta": meta}, **headers)
    listed = await session.answer_to(number)

    assert session.hello["protocolVersion"] == agreed.value
    assert_valid_message(agreed, "tools/list", listed)
    assert "shop.order" in await session.call("list_models")


async def test_progress_questions_and_changes_come_on_the_stream(place, sse, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        ctx.progress(1)
        return f"Hello {ctx.ask('who', Name, 'Who are you?')['name']}"

    order = await sync_to_async(Order.objects.create)(number="1")
    uri = f"django://objects/shop.order/{order.pk}"
    add_tool(greet, asks=True)
    session = await sse(posts=place).begin(elicitation={})
    params = {"name": "greet", "arguments": {}, "_meta": {"progressToken": "t"}}

    assert (await session.ask("resources/subscribe", {"uri": uri}))["result"] == {}
    number = await session.send("tools/call", params)
    progress = await session.message("notifications/progress")
    question = await session.message("elicitation/create")
    said = {"action": "accept", "content": {"name": "Ada"}}
    posted = await session.post({"jsonrpc": "2.0", "id": question["id"], "result": said})
    answer = await session.answer_to(number)
    await settled()
    changed(uri, TOOLS)

    assert progress["params"] == {"progressToken": "t", "progress": 1}
    assert posted.status == 202
    assert answer["result"]["content"][0]["text"] == "Hello Ada"
    assert (await session.message("notifications/resources/updated"))["params"] == {"uri": uri}
    assert (await session.ask("resources/unsubscribe", {"uri": uri}))["result"] == {}


async def test_a_call_that_the_client_takes_back_is_not_answered(place, sse, patient, gate):
    session = await sse(posts=place).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    await session.tell("notifications/cancelled", requestId=number)
    await settled_in(place)
    gate.open()

    assert (await session.ask("ping"))["result"] == {}
    assert session.heard(None) == []


async def test_there_is_one_handshake_and_before_it_are_only_pings(sse):
    session = await sse().open()

    assert (await session.ask("ping"))["result"] == {}
    assert (await session.ask("tools/list"))["error"]["code"] == -32600
    assert (await session.ask("server/discover"))["error"]["code"] == -32601
    assert (await session.ask("initialize"))["error"]["code"] == -32602
    assert (await session.ask("initialize", hello(LEGACY[0], "old")))["result"]
    assert (await session.ask("initialize", hello(LEGACY[-1])))["error"]["code"] == -32600
    kept = await sync_to_async(get_store().session)(key_of(session.id))
    assert (kept.revision, kept.client["name"]) == ("2024-11-05", "old")


async def test_a_change_before_the_handshake_is_told_after_it(sse):
    session = await sse().open()
    changed(TOOLS)
    await settled()

    await session.send("initialize", hello(LEGACY[0]))

    assert (await session.message())["id"] == 1
    assert (await session.message())["method"] == "notifications/tools/list_changed"


async def test_a_post_whose_connection_is_given_up_runs_on(session, patient, gate):
    many = [session.posting({**PINGING, "id": f"p{n}", "method": "tools/list"}) for n in range(3)]

    tasks = [post.start() for post in many]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    answers = [await session.response() for _ in many]
    assert {answer["id"] for answer in answers} == {"p0", "p1", "p2"}


# The end


@requirement("http-sse:close")
async def test_the_end_of_the_stream_ends_the_session_and_the_work_for_it(
    place, sse, patient, gate
):
    session = await sse(posts=place).begin("2025-06-18")
    await settled()
    await session.send("tools/call", PATIENT)
    await gate.until_reached()
    store, key = get_store(), key_of(session.id)
    (stream,) = await sync_to_async(store.streams)()

    await session.leave()
    await settled_in(place)
    gate.open()

    agreed = ("http_sse", "2025-06-18", "old", key)
    assert (stream.kind, stream.revision, stream.client, stream.session) == agreed
    assert (await session.post(PINGING)).status == 404
    assert await sync_to_async(store.session)(key) is None
    assert await sync_to_async(store.streams)() == []
    assert not get_hub().streams
    await finished(Lane.WORK)
    assert patient == [True]


@pytest.mark.parametrize("is_revoked", [True, False])
async def test_a_stream_that_the_server_ends_ends_its_session(sse, is_revoked):
    """What staff end: tests/transports/test_switches.py."""
    session = await sse().begin()

    if is_revoked:
        await PersonalToken.objects.all().adelete()
        turn_the_wheel()
    else:
        # The end of the server.
        get_hub().close()

    assert await session.stream.rest() == []
    assert session.stream.is_whole()
    await settled()
    assert await sync_to_async(get_store().session)(key_of(session.id)) is None


async def test_a_stream_that_is_over_is_not_shown_again(sse):
    session = await sse().open()
    stream = get_hub().find(key_of(session.id))
    kept = await sync_to_async(get_store().session)(key_of(session.id))
    await session.leave()

    # As if the handshake was heard of at the last moment.
    await stream._follow(kept)

    assert await sync_to_async(get_store().streams)() == []


# Refusals


MALFORMED = [
    "", "session_id=", "other=1", "session_id=a&session_id=a", "session_id=" + "x" * 129,
    "session_id=%C3%A9", "session_id=%ff%00", "session_id=a%0Ab",
    "&".join(["session_id=a"] + ["x=1"] * 100), "session_id=\u00e9",
]  # fmt: skip


@requirement("http-sse:refusals")
@pytest.mark.parametrize(
    ("body", "options", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        (b"[" * 4_000, {}, 400, -32700),
        ([PINGING], {}, 400, -32600),
        ({**PINGING, "id": None}, {}, 400, -32600),
        (PINGING, {"Content-Type": "text/plain"}, 415, -32600),
        (PINGING, {"Content-Encoding": "gzip"}, 415, -32600),
        (b"[" + b" " * 10_000 + b"]", {}, 413, -32600),
        (PINGING, {"verb": "GET"}, 405, -32600),
        (PINGING, {"verb": "PUT"}, 405, -32600),
        (PINGING, {"Origin": "https://evil.example"}, 403, -32600),
        (PINGING, {"Host": "evil.example"}, 400, -32600),
        (PINGING, {"Authorization": "Bearer nobody"}, 401, -32600),
        *((PINGING, {"query": query}, 400, -32600) for query in MALFORMED),
        (PINGING, {"query": "session_id=" + "x" * 100_000}, 414, -32600),
        (PINGING, {"query": "session_id=" + "x" * 43}, 404, -32600),
        (PINGING, {"query": "session_id=6f1f0a1de05e4b0c8f0c3b1f6b8d2d11"}, 404, -32600),
    ],
)
async def test_a_post_that_cannot_be_accepted_is_told_why(
    session, configure, body, options, status, code
):
    configure(MAX_BODY=5_000)
    query = options.get("query", f"session_id={session.id}")
    headers = {name: value for name, value in options.items() if name != "query"}

    posted = await session.post(body, endpoint=f"/mcp/messages?{query}", **headers)

    assert (posted.status, posted.json["error"]["code"]) == (status, code)
    assert posted.headers.get("allow") == ("POST" if status == 405 else None)
    assert ("www-authenticate" in posted.headers) == (status == 401)
    assert (await session.ask("ping"))["result"] == {}


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


@requirement("http-sse:foreign")
async def test_a_session_of_somebody_else_does_not_exist(sse, eve):
    own = await sse().begin()
    foreign = await sse(eve).begin()
    stranger = {"Authorization": f"Bearer {eve.token}"}

    at_foreign = await foreign.post(PINGING, endpoint=own.endpoint, **stranger)
    nowhere = await own.post(PINGING, endpoint="/mcp/messages?session_id=nobody", **stranger)

    assert (at_foreign.status, at_foreign.body) == (404, nowhere.body)
    assert (await own.ask("ping"))["result"] == {}
    assert own.heard(None) == []


async def test_sessions_of_the_two_http_transports_do_not_mix(client, session):
    headers = {"Mcp-Session-Id": session.id, "MCP-Protocol-Version": "2025-11-25"}

    reply = await sync_to_async(client.post)(PINGING, headers=headers)

    assert reply.status == 404


async def test_middleware_runs_round_both_and_its_late_failure_is_told_on_the_stream(
    sse, run, caplog
):
    session = await sse().begin()
    run("function")
    await sse().begin()
    run("RaisingAfterwards")

    answer = await session.ask("ping")

    assert seen[:4] == ["function in", "function out"] * 2
    assert answer["error"]["code"] == -32603


async def test_a_flood_of_posts_is_held_up_before_it_is_accepted(
    session, patient, gate, monkeypatch
):
    monkeypatch.setattr(http_sse, "MOST_CALLS", 2)
    numbers = [await session.send("tools/call", PATIENT) for _ in range(2)]

    refused = await session.post({**PINGING, "id": "more"})
    gate.open()

    assert (refused.status, refused.json["id"]) == (503, "more")
    assert {(await session.response())["id"] for _ in numbers} == set(numbers)
    assert (await session.ask("ping"))["result"] == {}


# What the POST is refused with


async def test_a_store_that_is_gone_fails_the_post_and_not_the_stream(sse, monkeypatch, caplog):
    session = await sse().begin()

    def fail(key):
        raise OSError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(get_store(), "session", fail)
        posted = await session.post(PINGING)

    assert (posted.status, posted.json["error"]["message"]) == (500, "Internal error")
    assert posted.json["error"]["data"]["id"] in caplog.text
    assert (await session.ask("ping"))["result"] == {}


async def test_too_many_calls_are_refused_by_the_post(session, configure):
    configure(CALLS_PER_MINUTE=1)

    statuses = [(await session.post({**PINGING, "id": f"x{n}"})).status for n in range(3)]

    assert statuses[-1] == 429


async def test_a_server_without_a_free_thread_refuses_post_and_stream(
    sse, session, configure, fresh_lanes
):
    configure(MAX_WAITING=0)
    await asyncio.to_thread(fresh_lanes.close)

    posted = await session.post(PINGING)
    opened = await sse().open()

    assert (posted.status, opened.stream.status) == (503, 503)
    configure(MAX_WAITING=200)
    await asyncio.to_thread(fresh_lanes.close)


# A stream in one process, and its messages posted to another


@pytest.fixture
def store():
    return get_store()


def stream_of(session):
    return get_hub().find(key_of(session.id))


@pytest.mark.thorough
async def test_answers_are_not_dropped_while_nobody_reads_them(store, elsewhere, sse):
    session = await sse(posts=elsewhere).begin()
    stream = stream_of(session)
    # As if it still waited for its turn to be written.
    stream._is_waiting = True

    accepted = []
    while (posted := await session.post({**PINGING, "id": f"p{len(accepted)}"})).status == 202:
        accepted.append(f"p{len(accepted)}")
    await elsewhere.settled()
    await stream.write()

    assert (posted.status, len(accepted)) == (503, 63)
    assert {(await session.response())["id"] for _ in accepted} == set(accepted)
    # Their places are free again.
    assert (await session.ask("ping"))["result"] == {}


async def test_a_call_of_a_process_that_was_killed_ends_with_an_error(
    store, elsewhere, sse, patient, gate
):
    session = await sse(posts=elsewhere).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()

    elsewhere.die()
    store.clock = partial(timezone.now().__add__, timedelta(seconds=20))
    store.renew(get_hub().key)
    stream_of(session).nudge()

    error = (await session.answer_to(number))["error"]
    assert (error["code"], "gone" in error["message"]) == (-32603, True)
    gate.open()


async def test_a_session_whose_process_was_killed_is_not_found(store, elsewhere, sse, monkeypatch):
    session = await sse().begin()
    monkeypatch.setattr(store, "renew", bool)
    store.clock = partial(timezone.now().__add__, timedelta(seconds=20))
    session.posts = elsewhere

    posted = await session.post(PINGING)

    assert posted.status == 404
    assert store.session(key_of(session.id)) is None
    assert await session.stream.rest() == []
    await settled()


async def test_a_stream_that_missed_what_calls_there_were_ends(store, elsewhere, sse):
    session = await sse(posts=elsewhere).begin()
    index = index_of(key_of(session.id))
    store.append(index, [b"unknown"] * 300)

    changed(log_topic(index))

    assert await session.stream.rest() == []
    await settled()


@pytest.mark.parametrize(("times", "is_lost"), [(1, False), (2, True)])
async def test_a_store_that_fails_is_asked_again_for_a_while(
    store, elsewhere, sse, patient, gate, monkeypatch, caplog, times, is_lost
):
    monkeypatch.setattr(http_sse, "PAUSES", (0,))
    session = await sse(posts=elsewhere).begin()
    number = await session.send("tools/call", PATIENT)
    await gate.until_reached()
    append, failures = store.append, [OSError("gone")] * times

    def fail_at_first(*args, **options):
        if failures:
            raise failures.pop()
        return append(*args, **options)

    monkeypatch.setattr(store, "append", fail_at_first)
    gate.open()
    await elsewhere.settled()

    assert caplog.text.count("does not reach the stream") == times
    assert (await session.ask("ping"))["result"] == {}
    await settled()
    assert (number in [message["id"] for message in session.heard(None)]) is not is_lost

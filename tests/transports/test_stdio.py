from __future__ import annotations

import asyncio
from threading import Event

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django import forms

import mcp_django as mcp
from mcp_django.auth.authenticate import NamedUser
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.protocol.render import progress
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.stores.sessions import get_store
from mcp_django.subscriptions.outbox import flush, publish
from mcp_django.subscriptions.topics import Change
from mcp_django.transports.stdio import Caller
from tests.changed import list_changed
from tests.spec import requirement
from tests.transports.event_stream import changed
from tests.transports.pipes import talking
from tests.transports.session_client import text_of
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

MODERN = Revision.V2026_07_28
LATEST = LEGACY[-1]
BATCHES = Revision.V2025_03_26
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture
def caller(staff):
    return Caller(recognize=NamedUser(staff.get_username()).authenticate)


@pytest_asyncio.fixture
async def peer(caller):
    """The client at the other end of the pipes."""
    async with talking(caller) as peer:
        yield peer


@pytest.fixture
def wait_here(add_tool, gate):
    def wait_here(ctx: mcp.Context) -> str:
        """Wait, then report."""
        gate.wait()
        ctx.notify(progress("late", 1))
        return "done"

    add_tool(wait_here)


# Eras


@requirement("stdio:discover-first")
async def test_before_a_handshake_that_succeeds_there_are_only_discovery_and_ping(peer):
    discovery = (await peer.answer(peer.ask("server/discover")))["result"]
    peer.revision = LATEST
    failed = await peer.answer(peer.ask("initialize", protocolVersion="2025-11-25"))
    refused = await peer.answer(peer.ask("tools/list"))
    peer.notify("notifications/initialized")
    peer.send({"jsonrpc": "2.0", "id": "x", "result": {}})
    ping = await peer.answer(peer.ask("ping"))

    assert discovery["supportedVersions"] == ["2026-07-28"]
    assert discovery["capabilities"]["resources"]["subscribe"]
    assert failed["error"]["code"] == -32602
    assert refused["error"]["code"] == -32600
    assert ping["result"] == {}


@requirement("stdio:both-eras")
async def test_both_eras_follow_each_other_message_by_message(peer):
    await peer.answer(peer.call("echo", text="modern"))
    await peer.initialize(LATEST)
    legacy = await peer.answer(peer.call("echo", LATEST, text="legacy"))
    peer.revision = MODERN
    modern = await peer.answer(peer.call("echo", MODERN, text="modern"))
    peer.revision = LATEST
    again = await peer.answer(peer.ask("ping", LATEST))

    assert "resultType" not in legacy["result"]
    assert modern["result"]["resultType"] == "complete"
    assert again["result"] == {}


@pytest.mark.parametrize("is_complete", [True, False])
async def test_a_second_handshake_ends_the_session_before_it(peer, uri, is_complete):
    await peer.initialize(LATEST, is_complete=is_complete)
    await peer.answer(peer.ask("resources/subscribe", uri=uri))
    await peer.answer(peer.handshake(LEGACY[0]))
    changed(uri)
    await sync_to_async(flush)()
    answer = await peer.answer(peer.call("echo", text="x"))

    assert "structuredContent" not in answer["result"]
    assert len(get_store().sessions()) == 1


@requirement("stdio:batches")
async def test_batches_are_served_once_their_revision_was_agreed_on(peer):
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}},
        7,
        {"jsonrpc": "2.0", "id": "b", "method": "tools/list"},
    ]
    peer.revision = BATCHES
    peer.send(batch)
    refused = [await peer.message()]
    await peer.initialize(BATCHES)
    peer.send(batch)
    answers = await peer.message()
    peer.send([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}])
    peer.send([peer.request("c", "tools/list", MODERN)])
    refused.append(await peer.message())
    await peer.initialize(LATEST)
    peer.send(batch)
    refused.append(await peer.message())

    assert {answer["error"]["code"] for answer in refused} == {-32600}
    assert [answer.get("id") for answer in answers] == ["a", None, "b"]
    assert answers[2]["result"]["tools"]


# Lines


@requirement("stdio:malformed-line", "stdio:lines")
@pytest.mark.parametrize(
    ("line", "refused"),
    [
        *((line, (None, -32700)) for line in (b"nonsense", b"\xff\xfe", b'{"a": "\xed\xa0\x80"}')),
        (b'{"jsonrpc": "1.0", "id": 9, "method": "ping"}', (9, -32600)),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_read(peer, line, refused):
    # It may come in pieces, end as Windows ends it, and have blank ones behind it.
    peer.write(line[:1])
    peer.write(line[1:] + b"\r\n\n  \n")
    error = await peer.message()
    answer = await peer.answer(peer.call("echo", text="a\nb\u2028c"))

    assert (error["id"], error["error"]["code"]) == refused
    assert answer["result"]["structuredContent"]["text"] == "a\nb\u2028c"


async def test_a_line_that_is_too_long_is_refused_and_not_kept(caller, configure):
    configure(MAX_BODY=200_000)
    async with talking(caller) as peer:
        await asyncio.to_thread(peer.write, b"x" * 3_000_000 + b"\n" + b" " * 200_001 + b"\n")
        refused, too_blank = await peer.message(), await peer.message()
        answer = await peer.answer(peer.ask("server/discover"))

    assert refused["error"] == too_blank["error"]
    assert refused["error"] == {"code": -32700, "message": "The line is longer than 200000 bytes."}
    assert answer["result"]


# Calls


async def test_an_id_whose_request_still_runs_is_refused_and_others_are_answered(
    peer, wait_here, gate
):
    key = peer.call("wait_here")
    await gate.until_reached()
    peer.send(peer.request(key, "tools/call", MODERN, name="echo"))
    refused = await peer.answer(key)
    peer.send(peer.request(str(key), "server/discover", MODERN))
    other = await peer.answer(str(key))
    gate.open()
    await peer.message()
    answer = await peer.answer(key)

    assert refused["error"]["code"] == -32600
    assert other["result"]
    assert text_of(answer) == "done"


@requirement("stdio:cancelled")
@pytest.mark.parametrize("era", ["modern", "legacy", "alias"])
async def test_after_a_cancellation_nothing_more_is_written_for_that_request(
    peer, wait_here, gate, era
):
    if era != "modern":
        await peer.initialize(LATEST)
    key = peer.call("wait_here")
    await gate.until_reached()
    if era == "alias":
        peer.notify("$/cancelRequest", id=key)
    else:
        peer.take_back(key)
    peer.take_back("unknown")
    peer.take_back(None)
    await peer.answer(peer.ask("tools/list"))
    gate.open()
    await peer.answer(peer.ask("tools/list"))

    rest = await peer.rest()

    assert not [said for said in rest if "progress" in said.get("method", "") or "id" in said]


async def test_a_bug_of_ours_is_told_by_a_number(peer, caller, monkeypatch, caplog):
    def break_down(body):
        raise RuntimeError("secret")

    with monkeypatch.context() as patched:
        patched.setattr(caller, "request", break_down)
        broken = await peer.answer(peer.ask("tools/list"))
    answer = await peer.answer(peer.ask("tools/list"))

    assert broken["error"]["code"] == -32603
    assert broken["error"]["data"]["id"] in caplog.text
    assert "secret" not in str(broken)
    assert answer["result"]


# Questions


@requirement("stdio:no-requests")
async def test_a_modern_call_asks_in_its_result_also_beside_a_session(peer, add_tool):
    class Name(forms.Form):
        name = forms.CharField()

    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        return f"Hello {ctx.ask('who', Name, 'Who are you?')['name']}"

    add_tool(greet, asks=True)
    peer.capabilities = {"elicitation": {}}
    await peer.initialize(LATEST)
    peer.revision = MODERN
    asked = (await peer.answer(peer.call("greet")))["result"]
    again = peer.ask(
        "tools/call",
        name="greet",
        arguments={},
        requestState=asked["requestState"],
        inputResponses={"who": {"action": "accept", "content": {"name": "Ada"}}},
    )

    assert asked["resultType"] == "input_required"
    assert text_of(await peer.answer(again)) == "Hello Ada"


# Subscriptions


async def listening(peer, *uris, **wishes):
    """The id of a subscription, and its acknowledgment."""
    if uris:
        wishes["resourceSubscriptions"] = list(uris)
    key = peer.ask("subscriptions/listen", notifications=wishes)
    return key, (await peer.message())["params"]


@requirement("stdio:subscriptions")
async def test_a_subscription_that_is_taken_back_is_silent_and_others_end_with_an_answer(
    peer, uri, configure
):
    configure(MAX_STREAMS_PER_PRINCIPAL=2)
    first, _ = await listening(peer, uri, toolsListChanged=True)
    second, acknowledged = await listening(peer, uri, "django://objects/auth.user/1")
    third = peer.ask("subscriptions/listen", notifications={"toolsListChanged": True})
    # More than are allowed.
    assert (await peer.answer(third))["error"]["code"] == -32603

    peer.take_back(first)
    await peer.answer(peer.ask("server/discover"))
    publish({list_changed("tools"), Change(topic=uri)})

    event = await peer.message()
    answer, cancelled = await peer.rest()
    assert acknowledged["notifications"] == {"resourceSubscriptions": [uri]}
    assert acknowledged["_meta"][SUBSCRIPTION] == event["params"]["_meta"][SUBSCRIPTION] == second
    assert event["method"] == "notifications/resources/updated"
    assert answer["id"] == answer["result"]["_meta"][SUBSCRIPTION] == second
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == second


async def test_a_session_hears_of_nothing_before_it_is_initialized_and_then_once(peer):
    await peer.initialize(LATEST, is_complete=False)
    publish({Change(topic="tools", server=DEFAULT_SERVER)})
    await asyncio.to_thread(flush)
    await peer.answer(peer.ask("ping"))
    peer.notify("notifications/initialized")
    peer.notify("notifications/initialized")
    await peer.answer(peer.ask("tools/list"))
    publish({list_changed("prompts")})

    event = await peer.message()

    assert event["method"] == "notifications/prompts/list_changed"
    assert await peer.rest() == []


# Whoever is at the other end


async def test_a_notification_is_never_answered_not_even_with_a_refusal(peer, staff):
    await peer.initialize(LATEST)
    staff.is_active = False
    await sync_to_async(staff.save)()
    peer.notify("notifications/initialized")
    peer.notify("notifications/roots/list_changed")

    assert await peer.rest() == []


@pytest.mark.parametrize(
    ("public_url", "hosts", "origin"),
    [
        ("https://shop.example", ["*"], "https://shop.example"),
        ("", ["*"], "http://localhost"),
        ("", [".shop.example"], "http://shop.example"),
        ("", [], "http://localhost"),
    ],
)
async def test_tools_get_a_request_that_belongs_to_the_site(settings, public_url, hosts, origin):
    settings.MCP_DJANGO = {"PUBLIC_URL": public_url} if public_url else {}
    settings.ALLOWED_HOSTS = hosts

    request = Caller().request(b"")

    assert request.method == "POST"
    assert f"{request.scheme}://{request.META['HTTP_HOST']}{request.path}" == f"{origin}/mcp"


# The end


@pytest.mark.thorough
@requirement("stdio:end-of-input")
async def test_the_end_of_input_cancels_what_runs(peer, add_tool, gate):
    cancelled = Event()

    def wait_for_the_end(ctx: mcp.Context) -> str:
        """Wait until nobody waits any more."""
        gate.reached.set()
        if ctx.cancelled.wait(PATIENCE):
            cancelled.set()
        return "done"

    add_tool(wait_for_the_end)
    peer.call("wait_for_the_end")
    await gate.until_reached()

    assert await peer.rest() == []
    assert await asyncio.to_thread(cancelled.wait, PATIENCE)


@pytest.mark.thorough
async def test_a_client_that_never_reads_does_not_keep_it_from_ending(peer, add_tool):
    def flood() -> str:
        """Say a lot."""
        return "x" * 900_000

    add_tool(flood)
    await listening(peer, toolsListChanged=True)
    peer.reading.pause_reading()
    for _ in range(8):
        peer.call("flood")
    peer.end()

    await peer.ended()

    peer.reading.resume_reading()

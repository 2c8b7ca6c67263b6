from __future__ import annotations

import asyncio
from threading import Event

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django import forms
from django.contrib.auth import get_user_model

import mcp_django as mcp
from mcp_django.auth.authenticate import NamedUser
from mcp_django.models import PersonalToken
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.protocol.render import progress
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.subscriptions.outbox import flush, publish
from mcp_django.subscriptions.topics import Change
from mcp_django.transports.stdio.conversation import Caller
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.pipes import talking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

MODERN = Revision.V2026_07_28
LEGACY = [one for one in Revision if one.era is Era.LEGACY]
LATEST = LEGACY[-1]
BATCHES = Revision.V2025_03_26
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture(autouse=True)
def _told():
    """What tests before this one changed is not told of in this one."""
    flush()


@pytest.fixture
def add_tool(add_tool):
    """And have told those who hear of tools, of whom there is nobody yet."""

    def add(function, **options):
        add_tool(function, **options)
        flush()

    return add


@pytest.fixture
def caller(staff):
    return Caller(recognize=NamedUser(staff.get_username()).authenticate)


async def make_order(number="1"):
    order = await sync_to_async(Order.objects.create)(number=number)
    # That it is new is news to nobody who subscribes later.
    await sync_to_async(flush)()
    return f"django://objects/shop.order/{order.pk}"


def text_of(answer):
    return answer["result"]["content"][0]["text"]


class Name(forms.Form):
    name = forms.CharField()


def greet(ctx: mcp.Context) -> str:
    """Greet somebody by name."""
    return f"Hello {ctx.ask('who', Name, 'Who are you?')['name']}"


def waiting(gate):
    def wait_here(ctx: mcp.Context) -> str:
        """Wait, then report."""
        gate.wait()
        ctx.notify(progress("late", 1))
        return "done"

    return wait_here


# Eras


@requirement("stdio:discover-first")
async def test_discovery_is_answered_without_a_handshake(caller):
    async with talking(caller) as peer:
        answer = await peer.answer(peer.ask("server/discover"))

    assert answer["result"]["supportedVersions"] == ["2026-07-28"]
    assert answer["result"]["capabilities"]["resources"]["subscribe"]


async def test_a_modern_request_needs_no_headers(caller):
    async with talking(caller) as peer:
        called = await peer.answer(peer.call("echo", text="hi"))
        read = await peer.answer(peer.ask("resources/read", uri="django://site"))

    assert called["result"]["structuredContent"] == {"text": "hi", "user": "staff"}
    assert read["result"]["contents"]


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
async def test_what_is_modern_only_is_told_what_its_envelope_lacks(caller, method):
    async with talking(caller) as peer:
        peer.send({"jsonrpc": "2.0", "id": 1, "method": method})
        answer = await peer.message()

    assert answer["id"] == 1
    assert answer["error"]["code"] == -32602


async def test_an_unknown_modern_revision_is_refused_with_those_that_are_served(caller):
    async with talking(caller) as peer:
        request = peer.request(1, "tools/list", MODERN)
        request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2030-01-01"
        peer.send(request)
        answer = await peer.answer(1)

    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}


@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_a_handshake_agrees_on_a_revision_for_what_follows(caller, revision):
    async with talking(caller) as peer:
        hello = await peer.initialize(revision)
        answer = await peer.answer(peer.call("echo", text="hi"))

    assert hello["result"]["protocolVersion"] == revision.value
    assert ("structuredContent" in answer["result"]) == revision.features.structured_content


async def test_a_script_need_not_wait_for_the_handshake(caller):
    async with talking(caller) as peer:
        hello = peer.request(
            1,
            "initialize",
            LATEST,
            protocolVersion=LATEST.value,
            capabilities={},
            clientInfo={"name": "sh", "version": "1"},
        )
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        peer.write(b"".join(msgspec.json.encode(one) + b"\n" for one in (hello, initialized)))
        peer.write(msgspec.json.encode(listing))

        first, second = await peer.rest()

    assert first["result"]["protocolVersion"] == LATEST.value
    assert second["result"]["tools"]


async def test_before_the_handshake_there_is_only_ping(caller):
    async with talking(caller) as peer:
        peer.revision = LATEST
        ping = await peer.answer(peer.ask("ping"))
        refused = await peer.answer(peer.ask("tools/list"))
        peer.notify("notifications/initialized")
        again = await peer.answer(peer.ask("ping"))

    assert ping["result"] == again["result"] == {}
    assert refused["error"]["code"] == -32600


async def test_a_handshake_that_fails_agrees_on_nothing(caller):
    async with talking(caller) as peer:
        peer.revision = LATEST
        failed = await peer.answer(peer.ask("initialize", protocolVersion="2025-11-25"))
        refused = await peer.answer(peer.ask("tools/list"))

    assert failed["error"]["code"] == -32602
    assert refused["error"]["code"] == -32600


@requirement("stdio:both-eras")
async def test_both_eras_follow_each_other_message_by_message(caller):
    async with talking(caller) as peer:
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
async def test_a_second_handshake_begins_a_second_session(caller, is_complete):
    async with talking(caller) as peer:
        uri = await make_order()
        await peer.initialize(LATEST, is_complete=is_complete)
        await peer.answer(peer.ask("resources/subscribe", uri=uri))
        # The creation of the order may be told first. After the handshake nothing may.
        key = peer.handshake(LEGACY[0])
        while (await peer.message()).get("id") != key:
            continue
        publish({Change(topic=uri)})
        await sync_to_async(flush)()
        answer = await peer.answer(peer.call("echo", text="x"))

    assert "structuredContent" not in answer["result"]


@requirement("stdio:batches")
async def test_batches_are_served_once_their_revision_was_agreed_on(caller):
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}},
        7,
        {"jsonrpc": "2.0", "id": "b", "method": "tools/list"},
    ]
    async with talking(caller) as peer:
        peer.revision = BATCHES
        peer.send(batch)
        before = await peer.message()
        await peer.initialize(BATCHES)
        peer.send(batch)
        after = await peer.message()
        peer.send([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}])
        peer.send([peer.request("c", "tools/list", MODERN)])
        modern = await peer.message()
        await peer.initialize(LATEST)
        peer.send(batch)
        newer = await peer.message()

    assert before["error"]["code"] == modern["error"]["code"] == newer["error"]["code"] == -32600
    assert [one.get("id") for one in after] == ["a", None, "b"]
    assert after[2]["result"]["tools"]


# Lines


@requirement("stdio:malformed-line", "stdio:lines")
@pytest.mark.parametrize(
    "line", [b"{", b"nonsense", b"\xff\xfe", b'{"a": "\xed\xa0\x80"}', b"\x00", b"[" * 500]
)
async def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_read(caller, line):
    async with talking(caller) as peer:
        peer.write(line + b"\n")
        refused = await peer.message()
        answer = await peer.answer(peer.call("echo", text="a\nb\u2028c"))

    assert refused == {"jsonrpc": "2.0", "id": None, "error": refused["error"]}
    assert refused["error"]["code"] == -32700
    assert answer["result"]["structuredContent"]["text"] == "a\nb\u2028c"


async def test_what_is_json_but_no_message_is_refused_with_its_id(caller):
    async with talking(caller) as peer:
        peer.send({"jsonrpc": "1.0", "id": 9, "method": "ping"})
        answer = await peer.message()

    assert (answer["id"], answer["error"]["code"]) == (9, -32600)


async def test_the_session_decides_how_an_error_without_an_id_is_written(caller):
    async with talking(caller) as peer:
        await peer.initialize(LATEST)
        peer.write(b"{\n")
        answer = await peer.message()

    assert "id" not in answer


async def test_a_line_that_is_too_long_is_refused_and_not_kept(caller, configure):
    configure(MAX_BODY=200_000)
    async with talking(caller) as peer:
        await asyncio.to_thread(peer.write, b"x" * 3_000_000)
        peer.write(b"\n")
        refused = await peer.message()
        await asyncio.to_thread(peer.write, b" " * 200_001 + b"\n")
        too_blank = await peer.message()
        answer = await peer.answer(peer.ask("server/discover"))

    assert refused["error"] == too_blank["error"]
    assert refused["error"] == {"code": -32700, "message": "The line is longer than 200000 bytes."}
    assert answer["result"]


async def test_a_line_may_end_as_windows_ends_it_come_in_pieces_or_be_blank(caller):
    async with talking(caller) as peer:
        request = msgspec.json.encode(peer.request(1, "server/discover", MODERN))
        peer.write(b"\r\n\n  \n" + request[:40])
        peer.write(request[40:] + b"\r\n")
        answer = await peer.answer(1)

    assert answer["result"]


async def test_an_id_whose_request_still_runs_is_refused(caller, add_tool, gate):
    add_tool(waiting(gate))
    async with talking(caller) as peer:
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
    assert text_of(answer)


# Calls


async def test_calls_run_beside_each_other(caller, add_tool, gate):
    add_tool(waiting(gate))
    async with talking(caller) as peer:
        slow = peer.call("wait_here")
        await gate.until_reached()
        quick = await peer.answer(peer.ask("tools/list"))
        gate.open()
        await peer.message()
        answer = await peer.answer(slow)

    assert quick["result"]["tools"]
    assert text_of(answer) == "done"


async def test_an_async_tool_answers(caller):
    async with talking(caller) as peer:
        answer = await peer.answer(peer.call("echo_later", text="x"))

    assert answer["result"]["structuredContent"]["text"] == "x"


@pytest.mark.parametrize("revision", [*LEGACY, MODERN], ids=lambda one: one.value)
async def test_progress_comes_before_the_answer(caller, revision):
    async with talking(caller) as peer:
        if revision.era is Era.LEGACY:
            await peer.initialize(revision)
        key = peer.ask(
            "tools/call", name="count_to", arguments={"number": 3}, _meta={"progressToken": "t"}
        )
        found = [await peer.message()]
        while "id" not in found[-1]:
            found.append(await peer.message())

    values = [one["params"]["progress"] for one in found[:-1]]
    assert values[-1] == 3
    assert values == sorted(set(values))
    assert found[-1]["id"] == key


@requirement("stdio:cancelled")
@pytest.mark.parametrize("era", ["modern", "legacy", "alias"])
async def test_after_a_cancellation_nothing_more_is_written_for_that_request(
    caller, add_tool, gate, era
):
    add_tool(waiting(gate))
    async with talking(caller) as peer:
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

    assert not [one for one in rest if "progress" in one.get("method", "") or "id" in one]


async def test_a_busy_server_says_so(caller, configure, fresh_lanes, add_tool, gate):
    configure(WORK_THREADS=1, MAX_WAITING=0)
    add_tool(waiting(gate))
    async with talking(caller) as peer:
        key = peer.call("wait_here")
        refused = await peer.answer(key)

    assert refused["error"]["code"] == -32603


async def test_a_bug_of_ours_is_told_by_a_number(caller, monkeypatch, caplog):
    def break_down(body):
        raise RuntimeError("secret")

    async with talking(caller) as peer:
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
async def test_a_modern_call_asks_in_its_result_also_beside_a_session(caller, add_tool):
    add_tool(greet, asks=True)
    async with talking(caller) as peer:
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
        answer = await peer.answer(again)

    assert asked["resultType"] == "input_required"
    assert text_of(answer) == "Hello Ada"


async def test_a_legacy_call_asks_by_a_request_and_goes_on_with_the_answer(caller, add_tool):
    add_tool(greet, asks=True)
    async with talking(caller) as peer:
        peer.capabilities = {"elicitation": {}}
        await peer.initialize(LATEST)
        key = peer.call("greet")
        question = await peer.message()
        said = {"action": "accept", "content": {"name": "Ada"}}
        peer.send({"jsonrpc": "2.0", "id": "unknown", "result": said})
        peer.send({"jsonrpc": "2.0", "id": question["id"], "result": said})
        answer = await peer.answer(key)

    assert question["method"] == "elicitation/create"
    assert text_of(answer) == "Hello Ada"


async def test_a_call_that_is_taken_back_takes_its_question_back(caller, add_tool):
    add_tool(greet, asks=True)
    async with talking(caller) as peer:
        peer.capabilities = {"elicitation": {}}
        await peer.initialize(LATEST)
        key = peer.call("greet")
        question = await peer.message()
        peer.take_back(key)
        taken_back = await peer.message()
        answer = await peer.answer(peer.ask("ping"))

    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == question["id"]
    assert answer["result"] == {}


async def test_answers_without_a_session_go_nowhere(caller):
    async with talking(caller) as peer:
        peer.send({"jsonrpc": "2.0", "id": "x", "result": {}})
        answer = await peer.answer(peer.ask("server/discover"))

    assert answer["result"]


# Subscriptions


def listening(peer, *uris, **wishes):
    if uris:
        wishes["resourceSubscriptions"] = list(uris)
    return peer.ask("subscriptions/listen", notifications=wishes)


@pytest.mark.thorough
@requirement("stdio:subscriptions")
async def test_every_event_names_its_subscription(caller):
    uri = await make_order()
    async with talking(caller) as peer:
        tools = listening(peer, toolsListChanged=True)
        first = await peer.message()
        order = listening(peer, uri)
        second = await peer.message()

        publish({Change(topic="tools", server=DEFAULT_SERVER), Change(topic=uri)})

        found = [await peer.message(), await peer.message()]

    assert [one["params"]["_meta"][SUBSCRIPTION] for one in (first, second)] == [tools, order]
    assert {one["params"]["_meta"][SUBSCRIPTION]: one["method"] for one in found} == {
        tools: "notifications/tools/list_changed",
        order: "notifications/resources/updated",
    }


async def test_a_saved_object_is_announced_and_one_out_of_sight_is_not_there(caller):
    uri = await make_order()
    hidden = await sync_to_async(get_user_model().objects.create_user)("hidden")
    async with talking(caller) as peer:
        listening(peer, uri, f"django://objects/auth.user/{hidden.pk}")
        acknowledged = await peer.message()
        publish({Change(topic=uri)})
        event = await peer.message()

    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": [uri]}
    assert event["params"]["uri"] == uri


async def test_a_subscription_that_is_taken_back_is_silent_and_others_go_on(caller):
    async with talking(caller) as peer:
        first = listening(peer, toolsListChanged=True)
        await peer.message()
        second = listening(peer, toolsListChanged=True)
        await peer.message()

        peer.take_back(first)
        await peer.answer(peer.ask("server/discover"))
        publish({Change(topic="tools", server=DEFAULT_SERVER)})
        event = await peer.message()
        rest = await peer.rest()

    assert event["params"]["_meta"][SUBSCRIPTION] == second
    assert [one["id"] for one in rest if "id" in one] == [second]


async def test_at_the_end_a_subscription_has_its_answer_and_then_is_cancelled(caller):
    async with talking(caller) as peer:
        key = listening(peer, toolsListChanged=True)
        await peer.message()
        answer, cancelled = await peer.rest()

    assert answer["id"] == key
    assert answer["result"]["_meta"][SUBSCRIPTION] == key
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == key


async def test_more_subscriptions_than_are_allowed_are_refused(caller, configure):
    configure(MAX_STREAMS_PER_PRINCIPAL=1)
    async with talking(caller) as peer:
        listening(peer, toolsListChanged=True)
        await peer.message()
        refused = await peer.answer(listening(peer, toolsListChanged=True))

    assert refused["error"]["code"] == -32603


@pytest.mark.thorough
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_a_session_hears_of_lists_and_of_what_it_subscribed_to(caller, revision):
    uri = await make_order()
    async with talking(caller) as peer:
        await peer.initialize(revision)
        subscribed = await peer.answer(peer.ask("resources/subscribe", uri=uri))
        publish({Change(topic=uri)})
        event = await peer.message()
        publish({Change(topic="prompts", server=DEFAULT_SERVER)})
        listed = await peer.message()
        await peer.answer(peer.ask("resources/unsubscribe", uri=uri))
        publish({Change(topic=uri)})
        publish({Change(topic="tools", server=DEFAULT_SERVER)})
        last = await peer.message()

    assert subscribed["result"] == {}
    assert event["params"] == {"uri": uri}
    assert listed["method"] == "notifications/prompts/list_changed"
    assert last["method"] == "notifications/tools/list_changed"


async def test_a_session_hears_of_nothing_before_it_is_initialized_and_then_once(caller):
    async with talking(caller) as peer:
        await peer.initialize(LATEST, is_complete=False)
        publish({Change(topic="tools", server=DEFAULT_SERVER)})
        await asyncio.to_thread(flush)
        await peer.answer(peer.ask("ping"))
        peer.notify("notifications/initialized")
        peer.notify("notifications/initialized")
        await peer.answer(peer.ask("tools/list"))
        publish({Change(topic="prompts", server=DEFAULT_SERVER)})
        event = await peer.message()
        rest = await peer.rest()

    assert event["method"] == "notifications/prompts/list_changed"
    assert rest == []


async def test_a_reader_that_does_not_read_is_told_once_of_each_thing(caller, add_tool):
    def flood() -> str:
        """Say a lot."""
        return "x" * 900_000

    add_tool(flood)
    async with talking(caller) as peer:
        listening(peer, toolsListChanged=True, promptsListChanged=True)
        await peer.message()
        peer.reading.pause_reading()
        calls = [peer.call("flood") for _ in range(4)]
        for _ in range(200):
            publish(
                {
                    Change(topic="tools", server=DEFAULT_SERVER),
                    Change(topic="prompts", server=DEFAULT_SERVER),
                }
            )
        await asyncio.to_thread(flush)
        peer.reading.resume_reading()
        found = []
        while not told_of(found) >= {"tools", "prompts"} or len(answered(found)) < len(calls):
            found.append(await peer.message())
        found += await peer.rest()

    assert len([one for one in found if "list_changed" in one.get("method", "")]) < 20


def told_of(found):
    return {one["method"].split("/")[1] for one in found if "method" in one}


def answered(found):
    return [one for one in found if "result" in one]


# Whoever is at the other end


@pytest.mark.thorough
async def test_a_user_who_is_deactivated_is_served_no_more(caller, staff):
    async with talking(caller) as peer:
        key = listening(peer, toolsListChanged=True)
        await peer.message()
        await peer.answer(peer.call("echo", text="x"))

        staff.is_active = False
        await sync_to_async(staff.save)()
        call = peer.call("echo", text="x")
        # The lists of the user have changed, too, so either may come first.
        found = {}
        while not {call, key} <= found.keys():
            message = await peer.message()
            found[message.get("id")] = message
        refused, ended = found[call], found[key]

    assert refused["error"]["message"] == "There is no active user 'staff'."
    assert ended["result"]["_meta"][SUBSCRIPTION] == key


async def test_a_right_that_another_process_takes_away_is_gone_within_a_second(
    caller, staff, clock
):
    caller.recognize.__self__._cache.clock = clock
    async with talking(caller) as peer:
        await peer.answer(peer.call("echo", text="x"))
        # No signal of this process.
        users = get_user_model().objects.filter(pk=staff.pk)
        await sync_to_async(users.update)(is_active=False)
        clock.now += 1
        refused = await peer.answer(peer.call("echo", text="x"))

    assert refused["error"]["code"] == -32600


async def test_a_token_brings_its_own_limits_and_may_be_revoked_meanwhile(staff):
    token, secret = await sync_to_async(PersonalToken.create)(user=staff, name="pipe")
    async with talking(Caller(token=secret)) as peer:
        answer = await peer.answer(peer.call("echo", text="x"))
        await sync_to_async(token.revoke)()
        refused = await peer.answer(peer.call("echo", text="x"))

    assert answer["result"]["structuredContent"]["user"] == "staff"
    assert refused["error"]["code"] == -32600


async def test_a_notification_is_never_answered_not_even_with_a_refusal(caller, staff):
    async with talking(caller) as peer:
        await peer.initialize(LATEST)
        staff.is_active = False
        await sync_to_async(staff.save)()
        peer.notify("notifications/initialized")
        peer.notify("notifications/roots/list_changed")
        rest = await peer.rest()

    assert rest == []


async def test_tools_find_a_request_that_belongs_to_the_site(caller, add_tool, settings):
    def where(request) -> str:
        """Where am I?"""
        return f"{request.build_absolute_uri()} {request.user} {request.method}"

    add_tool(where)
    async with talking(caller) as peer:
        answer = await peer.answer(peer.call("where"))

    assert text_of(answer) == "http://testserver/mcp staff POST"


@pytest.mark.parametrize(
    ("hosts", "host"),
    [(["*"], "localhost"), ([".shop.example"], "shop.example"), ([], "localhost")],
)
async def test_without_a_public_address_a_host_of_the_site_stands_for_it(
    staff, settings, hosts, host
):
    settings.MCP_DJANGO = {}
    settings.ALLOWED_HOSTS = hosts

    assert Caller().request(b"").META["HTTP_HOST"] == host


async def test_a_session_outlives_any_idle_time(caller, configure):
    configure(SESSION_IDLE=0)
    async with talking(caller) as peer:
        await peer.initialize(LATEST)
        answer = await peer.answer(peer.ask("tools/list"))

    assert answer["result"]["tools"]


# The end


@pytest.mark.thorough
@requirement("stdio:end-of-input")
async def test_the_end_of_input_cancels_what_runs(caller, add_tool, gate):
    cancelled = Event()

    def wait_here(ctx: mcp.Context) -> str:
        """Wait until nobody waits any more."""
        gate.reached.set()
        if ctx.cancelled.wait(PATIENCE):
            cancelled.set()
        return "done"

    add_tool(wait_here)
    async with talking(caller) as peer:
        peer.call("wait_here")
        await gate.until_reached()
        rest = await peer.rest()

    assert rest == []
    assert await asyncio.to_thread(cancelled.wait, PATIENCE)


async def test_a_reader_that_went_away_ends_it(caller):
    async with talking(caller) as peer:
        await peer.answer(peer.ask("server/discover"))
        peer.reading.close()
        await asyncio.sleep(0)
        peer.ask("server/discover")
        await peer.ended()


@pytest.mark.thorough
async def test_a_client_that_never_reads_does_not_keep_it_from_ending(caller, add_tool):
    def flood() -> str:
        """Say a lot."""
        return "x" * 900_000

    add_tool(flood)
    async with talking(caller) as peer:
        listening(peer, toolsListChanged=True)
        await peer.message()
        peer.reading.pause_reading()
        for _ in range(8):
            peer.call("flood")
        peer.end()
        await peer.ended()
        peer.reading.resume_reading()

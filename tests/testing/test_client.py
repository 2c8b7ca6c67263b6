from __future__ import annotations

import threading
from typing import Any

import pytest
from django import forms
from django.db import connection, transaction

import mcp_django as mcp
from mcp_django.exposure.registry import registry
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.testing import Client, HTTPAnswer, ProtocolFailure
from mcp_django.transports.threads import ThreadLane, lanes
from tests.clients import CheckedClient
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


def test_a_client_may_be_given_a_token_or_none_and_a_revision_by_its_date_or_the_newest(staff):
    token = Client(user=staff).token
    client = Client(user=staff, revision="2025-06-18")

    assert "staff" in Client(token=token).call_tool("echo", text="x").text
    with pytest.raises(ProtocolFailure, match="HTTP 401") as raised:
        Client().list_tools()
    assert (raised.value.status, raised.value.code) == (401, -32600)
    assert client.revision is Revision.V2025_06_18
    assert client.initialize()["protocolVersion"] == "2025-06-18"
    assert Client(user=staff).discover()["supportedVersions"]


def test_the_calls_of_one_test_are_not_counted_against_the_next(staff, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "CALLS_PER_MINUTE": 1}

    for _ in range(3):
        Client(user=staff).list_tools()
    client = Client(user=staff)
    client.list_tools()

    with pytest.raises(ProtocolFailure, match="429"):
        client.list_tools()


def test_a_client_as_another_user_differs_in_its_token_and_its_session_alone(staff, make_user):
    client = CheckedClient(user=staff, revision="2025-11-25", scopes=["mcp:read"])
    client.initialize()

    other = client.as_user(make_user("eve", is_staff=True))

    assert "eve" in other.call_tool("echo", text="x").text
    assert "staff" in client.call_tool("echo", text="x").text
    assert (type(other), other.revision, other.session) == (CheckedClient, client.revision, None)
    assert [token.scopes for token in PersonalToken.objects.all()] == [["mcp:read"]] * 2


# Assertions


def test_an_answer_that_was_expected_is_returned(staff):
    client = Client(user=staff)

    assert client.assert_ok("find_records", model="shop.order").records == []
    assert client.assert_error("fail", kind="tool").is_error
    assert client.assert_error("fail", "such d.y", kind="tool").is_error
    client.assert_sees("echo", "shop_greeting", "shop.order", "django://site", TEMPLATE)
    client.assert_sees()
    client.assert_hides("nothing", "shop.ledger", "django://nothing")


TEMPLATE = "django://objects/{model}/{pk}"


@pytest.mark.parametrize(
    ("method", "names", "arguments", "sentence"),
    [
        ("assert_ok", ["fail"], {"kind": "tool"}, "fail failed: There is no such day."),
        ("assert_error", ["fail", "night"], {"kind": "tool"}, "fail failed without 'night': "),
        ("assert_error", ["echo"], {"text": "x"}, "echo did not fail: .*x"),
    ],
)
def test_an_answer_that_was_not_expected_fails_with_its_text(
    staff, method, names, arguments, sentence
):
    with pytest.raises(AssertionError, match=sentence):
        getattr(Client(user=staff), method)(*names, **arguments)


def test_what_is_or_is_not_listed_is_named(staff):
    client = Client(user=staff)
    nothing = ("nothing", "shop.ledger", "django://nothing")

    with pytest.raises(AssertionError) as missing:
        client.assert_sees("echo", *nothing)
    with pytest.raises(AssertionError) as seen:
        client.assert_hides("echo", "shop.order", "django://site", TEMPLATE, *nothing)

    sentence, listing = str(missing.value).split(". Listed: ")
    assert sentence == "Not listed: nothing, shop.ledger, django://nothing"
    assert set(listing.removesuffix(".").split(", ")) == client.list_names()
    assert str(seen.value) == f"Listed: echo, shop.order, django://site, {TEMPLATE}."


# Sessions and questions


class Name(forms.Form):
    name = forms.CharField()


@pytest.fixture(params=LEGACY, ids=lambda one: one.value)
def legacy(request, staff):
    return Client(user=staff, revision=request.param)


def test_what_follows_a_handshake_is_in_its_session_until_it_is_ended(legacy):
    with pytest.raises(ProtocolFailure, match="Mcp-Session-Id"):
        legacy.request("logging/setLevel", {"level": "info"})
    params = {"name": "count_to", "arguments": {"number": 2}, "_meta": {"progressToken": 1}}

    legacy.initialize()
    first = legacy.session
    legacy.initialize()
    *progress, final = legacy.exchange("tools/call", params)

    assert first
    assert legacy.session not in (None, first)
    assert legacy.request("logging/setLevel", {"level": "info"}) == {}
    assert progress[-1]["params"]["progress"] == 2
    assert "result" in final
    legacy.end_session()
    assert legacy.session is None
    assert legacy.request("ping") == {}


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("inline", [True, False])
def test_requests_of_the_server_are_refused_since_answers_have_keys(
    staff, add_tool, revision, inline, transactional_db
):
    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        return str(ctx.ask("who", Name, "Who are you?"))

    add_tool(greet, asks=True)
    client = Client(user=staff, revision=revision, inline=inline, capabilities={"elicitation": {}})
    client.initialize()

    *asked, final = client.exchange("tools/call", {"name": "greet", "arguments": {}})

    assert [one["method"] for one in asked] == ["elicitation/create"]
    assert final["result"]["isError"]


def test_a_client_with_answers_does_not_say_in_a_handshake_that_it_answers(legacy, add_tool):
    def look(ctx: mcp.Context) -> bool:
        """Say whether somebody can be asked."""
        return ctx.can_ask

    add_tool(look, asks=True)
    client = Client(token=legacy.token, revision=legacy.revision, answers={"who": {}})
    client.initialize()

    assert client.call_tool("look").text == '{"result":false}'


def test_a_function_may_answer_every_question(staff, add_tool):
    def greet(ctx: mcp.Context) -> str:
        """Greet two."""
        return " and ".join(ctx.ask(key, Name, f"Who is {key}?")["name"] for key in "ab")

    add_tool(greet, asks=True)
    client = Client(
        user=staff, answers=lambda question: {"name": question["params"]["message"][-2]}
    )

    assert client.assert_ok("greet").text == "a and b"


# Threads and transactions


def test_everything_runs_in_the_tests_thread_and_transaction_unless_threads_are_asked_for(
    make_user, add_tool, transactional_db
):
    threads = []

    def look() -> str:
        """Note the thread."""
        threads.append(threading.current_thread())
        return str(connection.in_atomic_block)

    add_tool(look)
    clerk = make_user("clerk", "change_order", is_staff=True)
    order = Order.objects.create(number="A1")

    with transaction.atomic():
        assert Client(user=clerk).call_tool("look").text == "True"
        Client(user=clerk).call_tool("pay", number="A1")
        order.refresh_from_db()
        paid = order.status
        transaction.set_rollback(True)
    order.refresh_from_db()
    Client(user=clerk, inline=False).call_tool("look")

    assert (paid, order.status) == ("paid", "new")
    assert threads[0] is threading.current_thread()
    assert threads[1].name.startswith("mcp-work")
    assert all(isinstance(lane, ThreadLane) for lane in lanes._lanes.values())


def test_a_tool_error_is_an_answer_and_a_refusal_by_the_protocol_an_exception(staff):
    answer = Client(user=staff).call_tool("fail", kind="tool")

    assert answer.is_error
    assert "no such day" in answer.text
    assert answer.structured is None
    with pytest.raises(ProtocolFailure) as raised:
        Client(user=staff).read_resource("django://nothing")

    assert raised.value.code == -32602
    assert raised.value.data == {"uri": "django://nothing"}
    assert str(raised.value) == f"HTTP 200, -32602: {raised.value.message}"


@pytest.mark.parametrize(
    ("mime_type", "value"),
    [("application/json", {"a": 1}), ("text/markdown", "# Terms"), ("image/png", b"\x89PNG")],
)
def test_a_resource_is_read_by_its_media_type(request, staff, mime_type, value):
    def terms() -> Any:
        """The terms of delivery."""
        return value

    mcp.resource("shop://terms", mime_type=mime_type)(terms)
    request.addfinalizer(lambda: registry.remove("resource", "shop://terms"))

    assert Client(user=staff).read_resource("shop://terms") == value


def test_lists_are_put_together_from_their_pages_and_headers_encoded_or_left_out(staff, settings):
    whole = Client(user=staff).list_tools()
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "LIST_PAGE_SIZE": 2}

    client = Client(user=staff)

    assert client.list_tools() == whole
    assert client.list_resources()
    assert client.post(b"{}", headers={"Content-Type": None}).status == 415
    with pytest.raises(ProtocolFailure, match="Unknown tool"):
        client.call_tool("gr\u00fc\u00dfe")


JSON, EVENTS = "application/json", "text/event-stream"


@pytest.mark.parametrize(
    ("body", "kind", "messages"),
    [
        (b"", JSON, []),
        (b"{}", JSON, [{}]),
        (b"[{},{}]", JSON, [{}, {}]),
        (b": x\n\nevent: message\ndata: 1\n\nevent: message\ndata: 2\n\n", EVENTS, [1, 2]),
        (b"id: a.0\ndata: \n\nid: a.1\nevent: message\ndata: 1\n\nretry: 1\n\n", EVENTS, [1]),
    ],
)
def test_messages_are_read_from_json_from_events_and_from_nothing(body, kind, messages):
    answer = HTTPAnswer(status=200, headers={"content-type": kind}, body=body)

    assert answer.messages == messages

from __future__ import annotations

import threading

import pytest
from django import forms
from django.db import connection, transaction

import mcp_django as mcp
from mcp_django.protocol.revisions import LEGACY, Era, Revision
from mcp_django.testing import ACCEPT, CANCEL, DECLINE, Client, HTTPAnswer, ProtocolFailure
from mcp_django.transports.calls.lanes import ThreadLane, lanes
from tests.shop.models import Order


@pytest.mark.django_db
def test_a_client_speaks_as_its_user(staff):
    assert "staff" in Client(user=staff).call_tool("echo", text="x").text


@pytest.mark.django_db
def test_a_client_may_be_given_a_token_or_none_at_all(staff):
    token = Client(user=staff).token

    assert Client(token=token).call_tool("echo", text="x").text
    with pytest.raises(ProtocolFailure, match="HTTP 401") as raised:
        Client().list_tools()
    assert raised.value.status == 401
    assert raised.value.code == -32600


@pytest.mark.django_db
def test_scopes_and_options_are_those_of_the_token(make_user):
    user = make_user("clerk", "change_order", is_staff=True)

    writing = {tool["name"] for tool in Client(user=user).list_tools()}
    reading = {tool["name"] for tool in Client(user=user, scopes=["mcp:read"]).list_tools()}
    narrowed = {tool["name"] for tool in Client(user=user, read_only=True).list_tools()}

    assert "pay" in writing
    assert "pay" not in reading | narrowed


@pytest.mark.django_db
def test_the_calls_of_one_test_are_not_counted_against_the_next(staff, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "CALLS_PER_MINUTE": 1}

    for _ in range(3):
        Client(user=staff).list_tools()
    client = Client(user=staff)
    client.list_tools()

    with pytest.raises(ProtocolFailure, match="429"):
        client.list_tools()


@pytest.mark.django_db
def test_the_revision_may_be_a_date(staff):
    client = Client(user=staff, revision="2025-06-18")

    assert client.revision is Revision.V2025_06_18
    assert client.initialize()["protocolVersion"] == "2025-06-18"


@pytest.mark.django_db
def test_the_newest_revision_is_spoken_by_itself(staff):
    assert Client(user=staff).revision.era is Era.MODERN
    assert Client(user=staff).discover()["supportedVersions"]


# Sessions


@pytest.fixture(params=LEGACY, ids=lambda one: one.value)
def legacy(request, staff):
    return Client(user=staff, revision=request.param)


@pytest.mark.django_db
def test_what_follows_a_handshake_is_in_its_session(legacy):
    with pytest.raises(ProtocolFailure, match="Mcp-Session-Id"):
        legacy.request("logging/setLevel", {"level": "info"})

    legacy.initialize()

    assert legacy.session
    assert legacy.request("logging/setLevel", {"level": "info"}) == {}
    assert legacy.request("resources/subscribe", {"uri": "django://site"}) == {}
    assert '"x"' in legacy.call_tool("echo", text="x").text


@pytest.mark.django_db
def test_without_a_handshake_there_is_no_session_and_none_is_needed(legacy):
    assert '"x"' in legacy.call_tool("echo", text="x").text
    assert legacy.session is None


@pytest.mark.django_db
def test_a_second_handshake_begins_another_session(legacy):
    legacy.initialize()
    first = legacy.session
    legacy.initialize()

    assert first
    assert legacy.session not in (None, first)
    assert legacy.request("ping") == {}


@pytest.mark.django_db
def test_a_session_that_was_ended_is_gone(legacy):
    legacy.initialize()
    session = legacy.session

    legacy.end_session()

    assert legacy.session is None
    assert legacy.request("ping") == {}
    legacy.session = session
    with pytest.raises(ProtocolFailure, match="HTTP 404"):
        legacy.request("ping")


@pytest.mark.django_db
def test_progress_in_a_session_stands_before_the_answer(legacy):
    legacy.initialize()
    params = {"name": "count_to", "arguments": {"number": 2}, "_meta": {"progressToken": 1}}

    *progress, final = legacy.exchange("tools/call", params)

    assert progress[-1]["params"]["progress"] == 2
    assert "result" in final


@pytest.mark.django_db
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("inline", [True, False])
def test_requests_of_the_server_are_refused_since_answers_have_keys(
    staff, add_tool, revision, inline, transactional_db
):
    class Name(forms.Form):
        name = forms.CharField()

    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        return str(ctx.ask("who", Name, "Who are you?"))

    add_tool(greet, asks=True)
    client = Client(user=staff, revision=revision, inline=inline, capabilities={"elicitation": {}})
    client.initialize()

    *asked, final = client.exchange("tools/call", {"name": "greet", "arguments": {}})

    assert [one["method"] for one in asked] == ["elicitation/create"]
    assert final["result"]["isError"]


@pytest.mark.django_db
def test_a_client_with_answers_does_not_say_in_a_handshake_that_it_answers(legacy, add_tool):
    def look(ctx: mcp.Context) -> bool:
        """Say whether somebody can be asked."""
        return ctx.can_ask

    add_tool(look, asks=True)
    client = Client(token=legacy.token, revision=legacy.revision, answers={"who": {}})
    client.initialize()

    assert client.call_tool("look").text == '{"result":false}'


# Threads and transactions


@pytest.mark.django_db
def test_everything_runs_in_the_tests_thread_and_transaction(staff, add_tool):
    threads = []

    def look() -> str:
        """Note the thread."""
        threads.append(threading.current_thread())
        return str(connection.in_atomic_block)

    add_tool(look)

    assert Client(user=staff).call_tool("look").text == "True"
    assert threads == [threading.current_thread()]


@pytest.mark.django_db
def test_what_a_tool_writes_is_rolled_back_with_the_test(make_user):
    clerk = make_user("clerk", "change_order", is_staff=True)
    order = Order.objects.create(number="A1")

    with transaction.atomic():
        Client(user=clerk).call_tool("pay", number="A1")
        order.refresh_from_db()
        paid = order.status
        transaction.set_rollback(True)
    order.refresh_from_db()

    assert (paid, order.status) == ("paid", "new")


@pytest.mark.django_db
def test_async_tools_see_the_tests_data(staff):
    assert '"x"' in Client(user=staff).call_tool("echo_later", text="x").text


@pytest.mark.django_db(transaction=True)
def test_real_threads_can_be_had(staff, add_tool):
    def look() -> str:
        """Name the thread."""
        return threading.current_thread().name

    add_tool(look)

    answer = Client(user=staff, inline=False).call_tool("look")

    assert answer.text.startswith("mcp-work")


@pytest.mark.django_db
def test_the_lanes_are_the_real_ones_again_after_a_call(staff):
    Client(user=staff).list_tools()

    assert all(isinstance(lane, ThreadLane) for lane in lanes._lanes.values())


@pytest.mark.django_db
def test_a_tool_error_is_an_answer_and_not_an_exception(staff):
    answer = Client(user=staff).call_tool("fail", kind="tool")

    assert answer.is_error
    assert "no such day" in answer.text
    assert answer.structured is None


@pytest.mark.django_db
def test_progress_stands_before_the_answer(staff):
    client = Client(user=staff)

    *progress, final = client.exchange(
        "tools/call",
        {"name": "count_to", "arguments": {"number": 2}, "_meta": {"progressToken": 1}},
    )

    assert progress[-1]["params"]["progress"] == 2
    assert "result" in final


@pytest.mark.django_db
def test_a_refusal_by_the_protocol_is_an_exception_that_tells_all(staff):
    with pytest.raises(ProtocolFailure) as raised:
        Client(user=staff).read_resource("django://nothing")

    assert raised.value.code == -32602
    assert raised.value.data == {"uri": "django://nothing"}
    assert str(raised.value) == f"HTTP 200, -32602: {raised.value.message}"


@pytest.mark.django_db
def test_lists_are_put_together_from_their_pages(staff, settings):
    whole = Client(user=staff).list_tools()
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "LIST_PAGE_SIZE": 2}

    client = Client(user=staff)

    assert client.list_tools() == whole
    assert client.list_resources()


@pytest.mark.django_db
def test_resources_are_read_as_data(staff):
    Order.objects.create(number="A1")

    found = Client(user=staff).read_resource("django://objects/shop.order")

    assert "A1" in str(found)


@pytest.mark.django_db
def test_a_header_of_none_is_left_out(staff):
    answer = Client(user=staff).post(b"{}", headers={"Content-Type": None})

    assert answer.status == 415


@pytest.mark.django_db
def test_names_that_headers_cannot_say_are_encoded(staff):
    with pytest.raises(ProtocolFailure, match="Unknown tool"):
        Client(user=staff).call_tool("gr\u00fc\u00dfe")


@pytest.mark.django_db
def test_the_whole_site_may_be_the_application(staff):
    from tests.asgi import application

    client = Client(user=staff, application=application, path="/mcp/")

    assert client.call_tool("echo", text="x").text


def test_messages_are_read_from_json_from_events_and_from_nothing():
    json = {"content-type": "application/json"}
    stream = {"content-type": "text/event-stream"}

    def messages(body, headers=json):
        return HTTPAnswer(status=200, headers=headers, body=body).messages

    assert messages(b"") == []
    assert messages(b"{}") == [{}]
    assert messages(b"[{},{}]") == [{}, {}]
    events = b": keep-alive\n\nevent: message\ndata: 1\n\nevent: message\ndata: 2\n\n"
    assert messages(events, stream) == [1, 2]
    resumable = b"id: a.0\ndata: \n\nid: a.1\nevent: message\ndata: 1\n\nretry: 10\n\n"
    assert messages(resumable, stream) == [1]


def test_a_choice_of_a_person_shows_which_one():
    assert [repr(one) for one in (ACCEPT, DECLINE, CANCEL)] == [
        "<accept>",
        "<decline>",
        "<cancel>",
    ]


@pytest.mark.django_db
def test_callers_without_a_credential_are_served_where_the_site_says_so(settings):
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO,
        "AUTHENTICATORS": ["mcp_django.auth.Anonymous"],
    }

    assert "list_models" in {one["name"] for one in Client().list_tools()}

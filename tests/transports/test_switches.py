"""What staff switch off: the server, the writes, a user. Streams end, and calls are refused."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from mcp_django.auth.authenticate import NamedUser
from mcp_django.exposure.decisions import decisions
from mcp_django.exposure.generation import generations
from mcp_django.models import ServerSettings, UserRestriction
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from mcp_django.stores.interface import get_store
from mcp_django.transports.stdio.conversation import Caller
from mcp_django.transports.streams import hub as hubs
from mcp_django.transports.streams.hub import get_hub
from tests.admin.looking import url
from tests.clients import CheckedClient, WSGIClient, browser_of
from tests.transports.event_stream import EventStream
from tests.transports.http_sse_client import HTTPSSEClient, settled
from tests.transports.pipes import talking
from tests.transports.session_client import SessionClient
from tests.transports.wire import Connection, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
WISHES = {"notifications": {"toolsListChanged": True}}
HELLO = {
    "protocolVersion": LATEST_LEGACY.value,
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}


@pytest.fixture
def client(client):
    return speaking(client, MODERN[-1])


@pytest.fixture
def legacy(client):
    return speaking(client, LATEST_LEGACY)


@pytest.fixture
def other(make_user):
    return make_user("eve", is_staff=True)


@pytest.fixture
def their_client(other):
    return speaking(CheckedClient(user=other), MODERN[-1])


def asking(client, method="tools/list", params=None, **headers):
    return Connection.asking(client, method, params, **headers)


async def listening(client):
    """A stream behind its acknowledgment."""
    stream = await EventStream.asking(client, "subscriptions/listen", WISHES).opened()
    await stream.message()
    return stream


@sync_to_async
def set_closed(closed):
    ServerSettings.objects.update_or_create(defaults={"closed": closed})


@sync_to_async
def set_blocked(user, blocked):
    values = {"blocked": blocked, "read_only": False}
    UserRestriction.objects.update_or_create(user=user, defaults=values)


def assert_closed(answer):
    assert answer.status == 503
    assert answer.headers["retry-after"] == "60"
    assert answer.json["error"]["code"] == -32603
    assert answer.json["error"]["message"] == "This server is closed for now."


def assert_blocked(answer):
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert answer.json["error"]["message"] == "The credential is not valid."


# The server


async def test_a_server_that_is_closed_ends_its_streams_in_good_order(client, their_client):
    ours, theirs = await listening(client), await listening(their_client)

    await set_closed(True)

    assert [one.get("id") for one in await ours.rest()][-1] == 1
    assert [one.get("id") for one in await theirs.rest()][-1] == 1
    assert not get_hub().streams


@pytest.mark.parametrize(
    ("revision", "method"),
    [
        (LATEST_LEGACY, "ping"),
        (MODERN[-1], "tools/list"),
        (MODERN[-1], "server/discover"),
        (MODERN[-1], "no/such"),
    ],
)
async def test_every_call_of_a_closed_server_is_refused_until_it_is_open_again(
    client, revision, method
):
    client = speaking(client, revision)
    before = await asking(client, method).whole()
    await set_closed(True)

    # Twice: a caller who is known is answered without a thread.
    for _ in range(2):
        assert_closed(await asking(client, method).whole())

    await set_closed(False)
    assert (await asking(client, method).whole()).status == before.status


async def test_a_closed_server_opens_no_stream(client, legacy):
    session = await SessionClient.begin(legacy)
    await set_closed(True)

    assert_closed(await asking(client, "subscriptions/listen", WISHES).whole())
    assert_closed(await EventStream.get(legacy, **session.headers).whole())
    assert_closed(await asking(legacy, "initialize", HELLO).whole())
    assert_closed((await HTTPSSEClient(client).open()).stream)
    assert not get_hub().streams
    assert not await sync_to_async(get_store().sessions)()


async def test_sessions_of_a_closed_server_are_over_for_good(client, legacy):
    session = await SessionClient.begin(legacy)
    old = await HTTPSSEClient(client).begin()

    await set_closed(True)
    await old.stream.rest()
    await settled()
    assert_closed(await old.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    await set_closed(False)

    assert (await asking(legacy, "ping", **session.headers).whole()).status == 404


async def test_nothing_is_told_of_a_closed_server_without_a_credential():
    await set_closed(True)

    answer = await asking(speaking(CheckedClient(), MODERN[-1])).whole()

    assert answer.status == 401


async def test_a_closed_server_is_closed_as_a_view_as_well(client):
    await set_closed(True)

    view = WSGIClient(token=client.token)
    message = view.message("tools/list")
    answer = await sync_to_async(view.post)(message)

    assert answer.status == 503
    assert answer.headers["retry-after"] == "60"


async def test_a_switch_that_is_rolled_back_ends_nothing(client):
    stream = await listening(client)

    @sync_to_async
    def close_and_think_again():
        with transaction.atomic():
            ServerSettings.objects.create(closed=True)
            transaction.set_rollback(True)

    await close_and_think_again()

    await settled()
    assert stream.outbox.empty()
    assert (await asking(client).whole()).status == 200
    await stream.left()


async def test_another_server_that_is_closed_is_none_of_ours(client, legacy):
    stream, session = await listening(client), await SessionClient.begin(legacy)

    await ServerSettings.objects.acreate(server="other", closed=True)

    await settled()
    assert (await asking(client).whole()).status == 200
    assert (await asking(legacy, "ping", **session.headers).whole()).status == 200
    await stream.left()


async def test_a_stream_that_heard_of_nothing_is_ended_by_its_next_sign_of_life(client):
    stream = await listening(client)
    # As another process does where nothing links processes.
    await ServerSettings.objects.acreate()
    await settled()
    await ServerSettings.objects.aupdate(closed=True)
    generations.forget()

    turn_the_wheel()

    assert [one.get("id") for one in await stream.rest()][-1] == 1


def turn_the_wheel():
    """As if fifteen seconds went by."""
    hub = get_hub()
    for _ in range(hubs.KEEP_ALIVE):
        hub._tick.cancel()
        hub._turn()


async def test_a_store_that_is_gone_does_not_keep_a_server_open(client, monkeypatch, caplog):
    stream = await listening(client)

    def gone():
        raise ConnectionError("gone")

    monkeypatch.setattr("mcp_django.subscriptions.receivers.get_store", gone)
    await set_closed(True)

    assert [one.get("id") for one in await stream.rest()][-1] == 1
    assert_closed(await asking(client).whole())
    assert "gone" in caplog.text


# A user


async def test_the_streams_and_sessions_of_a_blocked_user_end_and_no_others(
    client, legacy, staff, other, their_client
):
    await SessionClient.begin(legacy)
    await SessionClient.begin(speaking(their_client, LATEST_LEGACY))
    ours, theirs = await listening(client), await listening(their_client)

    await set_blocked(staff, True)

    assert [one.get("id") for one in await ours.rest()][-1] == 1
    await settled()
    sessions = await sync_to_async(get_store().sessions)()
    assert [one.user for one in sessions] == [str(other.pk)]
    await theirs.left()


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_a_blocked_user_is_refused_as_with_a_credential_that_is_not_good(
    client, staff, their_client, method
):
    await asking(client, method).whole()
    await set_blocked(staff, True)

    for _ in range(2):
        assert_blocked(await asking(client, method).whole())
    assert_blocked(await asking(client, "subscriptions/listen", WISHES).whole())
    assert_blocked((await HTTPSSEClient(client).open()).stream)
    assert (await asking(their_client, method).whole()).status == 200

    await set_blocked(staff, False)
    assert (await asking(client, method).whole()).status == 200


async def test_a_blocked_user_learns_nothing_of_a_closed_server(client, staff):
    await set_blocked(staff, True)
    await set_closed(True)

    assert_blocked(await asking(client).whole())


async def test_calls_of_a_blocked_user_do_not_hold_off_others_at_the_same_address(
    client, staff, their_client
):
    await set_blocked(staff, True)

    for _ in range(30):
        assert_blocked(await asking(client).whole())

    assert (await asking(their_client).whole()).status == 200


async def test_a_user_is_blocked_by_a_key_given_as_text_as_well(client, staff):
    stream = await listening(client)

    await UserRestriction.objects.acreate(user_id=f"0{staff.pk}", blocked=True)

    assert [one.get("id") for one in await stream.rest()][-1] == 1


# The writes


async def test_a_server_that_is_made_read_only_drops_its_tools_that_write_at_once(
    client, make_user, add_tool
):
    def wipe() -> str:
        """Wipe everything."""
        return "wiped"

    add_tool(wipe, read_only=False)
    stream = await listening(client)
    assert "wipe" in await names(client)

    await sync_to_async(ServerSettings.objects.create)(read_only=True)

    told = await stream.message()
    assert told["method"] == "notifications/tools/list_changed"
    assert "wipe" not in await names(client)
    answer = await asking(client, "tools/call", {"name": "wipe", "arguments": {}}).whole()
    assert "error" in answer.json
    await stream.left()


async def names(client):
    answer = await asking(client).whole()
    return {one["name"] for one in answer.json["result"]["tools"]}


# What it costs


async def test_switches_cost_no_query_while_nothing_changes(
    client, staff, django_assert_num_queries
):
    @sync_to_async
    def ask():
        with django_assert_num_queries(0):
            assert not decisions().closed
            assert staff.pk not in decisions().blocked_users

    await ask()


# A pipe


async def test_a_client_at_a_pipe_is_refused_and_its_subscription_is_over(staff):
    caller = Caller(recognize=NamedUser(staff.get_username()).authenticate)
    async with talking(caller) as peer:
        subscription = peer.ask("subscriptions/listen", **WISHES)
        await peer.message()

        await set_closed(True)

        last, farewell = await peer.answer(subscription), await peer.message()
        refused = await peer.answer(peer.ask("tools/list"))
        await set_closed(False)
        await set_blocked(staff, True)
        blocked = await peer.answer(peer.ask("tools/list"))
    assert last["result"]
    assert farewell["method"] == "notifications/cancelled"
    assert refused["error"]["code"] == -32603
    assert refused["error"]["message"] == "This server is closed for now."
    assert blocked["error"]["message"] == "The credential is not valid."


# The page of the admin


@pytest.mark.parametrize("what", ["listen", "standalone", "http_sse"])
async def test_a_stream_that_is_ended_on_the_page_of_the_admin_is_over(
    client, legacy, make_user, what
):
    boss = await sync_to_async(make_user)("boss", is_staff=True, is_superuser=True)
    browser = await sync_to_async(browser_of)(boss)
    if what == "listen":
        stream = await listening(client)
    elif what == "standalone":
        session = await SessionClient.begin(legacy)
        stream = await session.get()
    else:
        stream = (await HTTPSSEClient(client).begin()).stream
    [shown] = await sync_to_async(get_store().streams)()
    assert shown.kind == what

    await sync_to_async(browser.post)(url("live"), {"streams": shown.key})

    await stream.rest()
    await settled()
    assert not await sync_to_async(get_store().streams)()
    # A client of Streamable HTTP has its session still; one of HTTP+SSE has nothing.
    sessions = await sync_to_async(get_store().sessions)()
    assert len(sessions) == (what == "standalone")


@pytest.mark.parametrize("kind", ["streamable_http", "http_sse"])
async def test_a_session_that_is_ended_on_the_page_of_the_admin_ends_its_stream(
    client, legacy, make_user, kind
):
    boss = await sync_to_async(make_user)("boss", is_staff=True, is_superuser=True)
    browser = await sync_to_async(browser_of)(boss)
    if kind == "streamable_http":
        stream = await (await SessionClient.begin(legacy)).get()
    else:
        stream = (await HTTPSSEClient(client).begin()).stream
    [one] = await sync_to_async(get_store().sessions)()

    await sync_to_async(browser.post)(url("live"), {"sessions": one.key})

    await stream.rest()
    await settled()
    assert not get_hub().streams
    assert not await sync_to_async(get_store().sessions)()

"""What staff switch off: the server, the writes, a user. Streams end, and calls are refused."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from mcp_django.auth.authenticate import NamedUser
from mcp_django.models import ServerSettings, UserRestriction
from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from mcp_django.stores.sessions import get_store
from mcp_django.transports.hub import get_hub
from mcp_django.transports.stdio import Caller
from tests.admin.looking import url
from tests.clients import CheckedClient, browser_of
from tests.transports.event_stream import EventStream, asking_to_listen
from tests.transports.http_sse_client import HTTPSSEClient, settled
from tests.transports.pipes import talking
from tests.transports.session_client import SessionClient
from tests.transports.wire import PINGING, Connection, hello, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def legacy(client):
    return speaking(client, LATEST_LEGACY)


def asking(client, method="tools/list", params=None, **headers):
    return Connection.asking(client, method, params, **headers)


async def last_id(stream):
    """The id of the last message, once the server has ended the stream."""
    return (await stream.rest())[-1].get("id")


async def sessions():
    return await sync_to_async(get_store().sessions)()


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
    before = await asking(client, method).whole()
    await set_closed(True)

    # Twice: a caller who is known is answered without a thread.
    for _ in range(2):
        assert_closed(await asking(client, method).whole())

    await set_closed(False)
    assert (await asking(client, method).whole()).status == before.status


async def test_a_server_that_is_closed_ends_its_streams_and_sessions_for_good_and_opens_none(
    client, legacy, eve, listen
):
    session = await SessionClient.begin(legacy)
    old = await HTTPSSEClient(client).begin()
    streams = [await listen(caller, toolsListChanged=True) for caller in (client, eve)]

    await set_closed(True)

    assert [await last_id(stream) for stream in streams] == [1, 1]
    await old.stream.rest()
    await settled()
    assert_closed(await old.post(PINGING))
    assert_closed(await asking_to_listen(client, toolsListChanged=True).whole())
    assert_closed(await EventStream.get(legacy, **session.headers).whole())
    assert_closed(await asking(legacy, "initialize", hello(LATEST_LEGACY)).whole())
    assert_closed((await HTTPSSEClient(client).open()).stream)
    assert (await asking(speaking(CheckedClient(), MODERN[-1])).whole()).status == 401
    assert not get_hub().streams
    assert not await sessions()
    await set_closed(False)
    assert (await asking(legacy, "ping", **session.headers).whole()).status == 404


async def test_a_store_that_is_gone_does_not_keep_a_server_open(
    client, monkeypatch, caplog, listen
):
    stream = await listen(client, toolsListChanged=True)

    def gone():
        raise ConnectionError("gone")

    monkeypatch.setattr("mcp_django.subscriptions.receivers.get_store", gone)
    await set_closed(True)

    assert await last_id(stream) == 1
    assert_closed(await asking(client).whole())
    assert "gone" in caplog.text


# A user


async def test_the_streams_and_sessions_of_a_blocked_user_end_and_no_others(
    client, legacy, staff, eve, listen
):
    await SessionClient.begin(legacy)
    await SessionClient.begin(speaking(eve, LATEST_LEGACY))
    ours, theirs = [await listen(caller, toolsListChanged=True) for caller in (client, eve)]

    # A key may come as text, written in a way of its own.
    await UserRestriction.objects.acreate(user_id=f"0{staff.pk}", blocked=True)
    eve_key = str((await type(staff).objects.aget(username="eve")).pk)

    assert await last_id(ours) == 1
    await settled()
    assert [session.user for session in await sessions()] == [eve_key]
    assert theirs.outbox.empty()


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
async def test_a_blocked_user_is_refused_as_with_a_credential_that_is_not_good(
    client, staff, eve, method
):
    await asking(client, method).whole()
    await set_blocked(staff, True)

    # As often as it takes to hold an address off.
    for _ in range(30):
        assert_blocked(await asking(client, method).whole())
    assert_blocked(await asking_to_listen(client, toolsListChanged=True).whole())
    assert_blocked((await HTTPSSEClient(client).open()).stream)
    assert (await asking(eve, method).whole()).status == 200
    await set_closed(True)
    assert_blocked(await asking(client, method).whole())
    await set_closed(False)

    await set_blocked(staff, False)
    assert (await asking(client, method).whole()).status == 200


# The writes


async def test_a_server_that_is_made_read_only_drops_its_tools_that_write_at_once(
    client, offer, listen
):
    offer(bool, read_only=False)
    stream = await listen(client, toolsListChanged=True)
    before = await asking(client).whole()

    await sync_to_async(ServerSettings.objects.create)(read_only=True)

    event = await stream.message()
    after = await asking(client).whole()
    answer = await asking(client, "tools/call", {"name": "work", "arguments": {}}).whole()
    assert event["method"] == "notifications/tools/list_changed"
    assert b'"work"' in before.body
    assert b'"work"' not in after.body
    assert "error" in answer.json


# A pipe


async def test_a_client_at_a_pipe_is_refused_and_its_subscription_is_over(staff):
    caller = Caller(recognize=NamedUser(staff.get_username()).authenticate)
    async with talking(caller) as peer:
        subscription = peer.ask("subscriptions/listen", notifications={"toolsListChanged": True})
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


@pytest.mark.parametrize(
    ("ended", "kind", "sessions_left"),
    [
        # A client of Streamable HTTP has its session still; one of HTTP+SSE has nothing.
        ("streams", "listen", 0),
        ("streams", "standalone", 1),
        ("streams", "http_sse", 0),
        ("sessions", "standalone", 0),
        ("sessions", "http_sse", 0),
    ],
)
async def test_what_is_ended_on_the_page_of_the_admin_is_over(
    client, legacy, make_user, ended, kind, sessions_left, listen
):
    boss = await sync_to_async(make_user)("boss", is_staff=True, is_superuser=True)
    browser = await sync_to_async(browser_of)(boss)
    if kind == "listen":
        stream = await listen(client, toolsListChanged=True)
    elif kind == "standalone":
        stream = await (await SessionClient.begin(legacy)).get()
    else:
        stream = (await HTTPSSEClient(client).begin()).stream
    [open_stream] = await sync_to_async(get_store().streams)()
    assert open_stream.kind == kind
    key = open_stream.key if ended == "streams" else open_stream.session

    await sync_to_async(browser.post)(url("live"), {ended: key})

    await stream.rest()
    await settled()
    assert not get_hub().streams
    assert not await sync_to_async(get_store().streams)()
    assert len(await sessions()) == sessions_left


async def test_a_switch_that_is_rolled_back_or_of_another_server_ends_nothing(
    client, legacy, listen
):
    stream = await listen(client, toolsListChanged=True)
    session = await SessionClient.begin(legacy)

    @sync_to_async
    def close_and_think_again():
        with transaction.atomic():
            ServerSettings.objects.create(closed=True)
            transaction.set_rollback(True)

    await close_and_think_again()
    await ServerSettings.objects.acreate(server="other", closed=True)

    await settled()
    assert stream.outbox.empty()
    assert (await asking(client).whole()).status == 200
    assert (await asking(legacy, "ping", **session.headers).whole()).status == 200

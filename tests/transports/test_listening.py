"""subscriptions/listen: who is told what, when rights change, when readers do not read."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import msgspec
import pytest
from asgiref.sync import sync_to_async

from mcp_django.auth import PersonalTokens
from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken, ServerSettings
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.cache_version import generations
from mcp_django.subscriptions.outbox import outbox, publish
from mcp_django.subscriptions.topics import EVERYTHING, Change
from mcp_django.transports import layer, notifier, responses
from mcp_django.transports.hub import get_hub
from mcp_django.transports.threads import Lane, lanes
from tests.changed import list_changed
from tests.spec import requirement
from tests.transports.event_stream import (
    EventStream,
    SlowStream,
    asking_to_listen,
    changed,
    listening,
    looked,
    turn_the_wheel,
)
from tests.transports.http_sse_client import settled
from tests.transports.test_layer import CORE, Layer, from_another
from tests.transports.wire import Connection, hello, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
COLLECTION = "django://objects/shop.order"
UPDATED = "notifications/resources/updated"


def uri_of(order):
    return f"{COLLECTION}/{order.pk}"


def told(message):
    """What a notification is about."""
    method = message["method"]
    return message["params"]["uri"] if method == UPDATED else method.split("/")[1]


# What is honoured


@requirement("subscriptions:ended")
async def test_every_message_names_the_subscription_with_the_type_of_its_id_until_the_hub_closes(
    client,
):
    streams = []
    for request_id in (7, "7"):
        wishes = {"notifications": {"toolsListChanged": True}}
        message = client.message("subscriptions/listen", wishes)
        body = msgspec.json.encode({**message, "id": request_id})
        headers = client.routing_headers(message)
        streams.append(await EventStream(client, body, headers=headers).opened())
    firsts = [await stream.message() for stream in streams]
    publish({list_changed("tools")})
    seconds = [await stream.message() for stream in streams]

    get_hub().close()

    lasts = [(await stream.rest())[-1] for stream in streams]
    refused = await asking_to_listen(client, toolsListChanged=True).whole()
    assert [first["params"]["_meta"][SUBSCRIPTION] for first in firsts] == [7, "7"]
    assert [second["params"]["_meta"][SUBSCRIPTION] for second in seconds] == [7, "7"]
    assert [last["result"]["_meta"][SUBSCRIPTION] for last in lasts] == [7, "7"]
    assert [last["id"] for last in lasts] == [7, "7"]
    assert refused.status == 503


async def test_the_acknowledgment_names_what_is_honoured_and_not_what_is_not_there(
    client, uri, listen
):
    missing = [f"{COLLECTION}/999999", "django://objects/shop.secretplan", "test://nothing", "x y"]
    forbidden = ["django://objects/auth.user", "django://objects/shop.secretplan/1"]
    long = f"{COLLECTION}?number={'1' * 3000}"

    # The same wish twice is one.
    uris = [*missing, uri, *forbidden, COLLECTION, long, uri]

    stream = await listen(client, *uris, toolsListChanged=True, promptsListChanged=False)

    assert stream.acknowledgment["params"]["notifications"] == {
        "toolsListChanged": True,
        "resourceSubscriptions": [uri, COLLECTION],
    }
    assert stream.acknowledgment["method"] == "notifications/subscriptions/acknowledged"
    assert "mcp-session-id" not in stream.headers


@pytest.mark.parametrize("uris", [[1], [f"{COLLECTION}/{n}" for n in range(300)]], ids=len)
async def test_wishes_that_are_none_are_refused_before_any_stream(client, uris):
    """Which they are: tests/protocol/test_methods.py."""
    params = {"notifications": {"resourceSubscriptions": uris}}

    answer = await Connection.asking(client, "subscriptions/listen", params).whole()

    assert answer.json["error"]["code"] == -32602
    assert not get_hub().streams


# What is told


@pytest.mark.parametrize(
    "news",
    [
        lambda own, theirs: Change(topic=theirs),
        lambda own, theirs: list_changed("resources"),
        lambda own, theirs: list_changed("tools", server="other"),
        lambda own, theirs: list_changed("tools", users=frozenset({"0"})),
        lambda own, theirs: Change(topic=COLLECTION, model="auth.user"),
        lambda own, theirs: Change(topic=own, is_hidden=True),
    ],
    ids=["record", "list", "server", "user", "model out of sight", "change out of sight"],
)
async def test_what_is_none_of_a_readers_business_is_not_told(client, orders, uri, news, listen):
    wishes = {"toolsListChanged": True, "promptsListChanged": True}
    stream = await listen(client, uri, COLLECTION, **wishes)
    silent = await listen(client)

    publish({news(uri, uri_of(orders[1]))})
    publish({list_changed("prompts")})

    assert told(await stream.message()) == "prompts"
    assert stream.outbox.empty()
    assert silent.outbox.empty()


async def test_a_uri_is_told_as_the_client_wrote_it_and_once_for_all_that_changed(
    client, orders, listen
):
    written = f"django://objects/Shop.Order/{orders[0].pk}"
    stream = await listen(client, written, f"{COLLECTION}?status=new", toolsListChanged=True)

    changed(uri_of(orders[0]), COLLECTION)
    by_name = {told(await stream.message()) for _ in range(2)}
    publish({Change(topic=COLLECTION, is_whole=True)})
    as_a_whole = {told(await stream.message()) for _ in range(2)}
    publish({EVERYTHING})
    everything = {told(await stream.message()) for _ in range(3)}

    assert by_name == as_a_whole == {written, f"{COLLECTION}?status=new"}
    assert everything == {*by_name, "tools"}


@pytest.mark.parametrize("is_ended", [False, True])
async def test_a_change_or_the_end_before_the_acknowledgment_is_told_behind_it(
    client, listen, is_ended
):
    stream = asking_to_listen(client, kind=SlowStream, toolsListChanged=True)
    stream.start()
    other = await listen(client, toolsListChanged=True)
    await stream.begins.wait()
    if is_ended:
        get_hub().close()
    else:
        publish({list_changed("tools")})
    await other.message()

    stream.goes_on.set()
    await stream.next()

    assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"
    message = await stream.message()
    if is_ended:
        assert message["result"]["resultType"] == "complete"
    else:
        assert told(message) == "tools"
        await stream.left()


# Rights that change while a stream is open


@pytest.mark.parametrize("is_hidden", [False, True])
async def test_a_record_that_is_gone_is_told_once_and_its_subscription_is_over(
    client, orders, uri, is_hidden, listen
):
    second = uri_of(orders[1])
    stream = await listen(client, uri, second)
    await sync_to_async(orders[0].delete)()

    publish({Change(topic=uri, is_hidden=is_hidden)})
    gone = told(await stream.message())
    changed(uri, second)

    assert gone == uri
    assert told(await stream.message()) == second
    assert get_hub().streams[0].uris == (second,)


@pytest.mark.parametrize("what", ["user", "server"])
async def test_what_ended_behind_everybodys_back_is_noticed_by_the_next_sign_of_life(
    client, staff, monkeypatch, what, listen
):
    """No signal is sent, as in another process where nothing links processes."""
    await ServerSettings.objects.acreate()
    stream = await listen(client, toolsListChanged=True)
    turn_the_wheel()
    frame = await stream.frame()
    if what == "user":
        await type(staff).objects.filter(pk=staff.pk).aupdate(is_active=False)
    else:
        await ServerSettings.objects.aupdate(closed=True)
    monkeypatch.setattr("mcp_django.transports.notifier.RENEW", 0)
    cache.clear()
    generations.forget()

    turn_the_wheel()

    assert frame.is_comment
    assert [message.get("id") for message in await stream.rest()] == [1]


# Many streams, and readers that do not read


class FaultyStream(EventStream):
    """Of a client whose connection takes nothing after the first messages, or fails."""

    reads, error = None, None

    async def send(self, event):
        if self.error is not None:
            raise self.error
        if self.reads is not None:
            await self.reads.wait()
        await super().send(event)


@pytest.mark.parametrize("most", [responses.GULP, 1])
async def test_readers_that_do_not_read_cost_no_more_than_what_they_asked_for_and_hold_up_nobody(
    client, uri, listen, monkeypatch, most
):
    monkeypatch.setattr(responses, "GULP", most)
    stuck = [
        await asking_to_listen(client, uri, kind=FaultyStream, toolsListChanged=True).opened()
        for _ in range(3)
    ]
    for stream in stuck:
        await stream.message()
        stream.reads = asyncio.Event()
    others = [await listen(client, toolsListChanged=True) for _ in range(3)]
    hub = get_hub()

    for _ in range(200):
        hub.take(frozenset({Change(topic=uri), list_changed("tools")}))
    for stream in others:
        await stream.message()

    for stream in stuck:
        stream.reads.set()
        async with asyncio.timeout(PATIENCE):
            assert {told(await stream.message()) for _ in range(2)} == {uri, "tools"}
        assert sum(b"data: " in event.get("body", b"") for event in stream.sent) <= 5
        await stream.left()


@pytest.mark.thorough
async def test_a_stream_that_cannot_be_written_ends_and_the_others_hear(client, caplog, listen):
    broken = await asking_to_listen(client, kind=FaultyStream, toolsListChanged=True).opened()
    await broken.message()
    other = await listen(client, toolsListChanged=True)
    broken.error = RuntimeError("not today")

    changed("tools")

    assert told(await other.message()) == "tools"
    async with asyncio.timeout(PATIENCE):
        await broken.task
    assert len(get_hub().streams) == 1
    assert "A stream broke." in caplog.text


async def test_a_stream_that_ends_before_its_turn_is_written_no_more(client, monkeypatch, listen):
    stream = await listen(client, toolsListChanged=True)
    other = await listen(client, toolsListChanged=True)
    with monkeypatch.context() as patched:
        patched.setattr(responses, "GULP", 0)
        get_hub().streams[0].keep_alive()
        await stream.left()
    sent = len(stream.sent)

    changed("tools")

    assert told(await other.message()) == "tools"
    assert not any(event.get("body") for event in stream.sent[sent:])


@pytest.mark.thorough
async def test_idle_streams_take_no_thread_and_no_task_of_their_own_beyond_the_one(client, listen):
    await listen(client, toolsListChanged=True)
    threads, tasks = threading.active_count(), len(asyncio.all_tasks())

    for _ in range(20):
        await listen(client, toolsListChanged=True)

    # Lanes begin threads when two jobs meet, up to their sizes.
    assert threading.active_count() - threads <= sum(lanes[name].size for name in Lane) < 20
    assert len(asyncio.all_tasks()) <= tasks + 20


@pytest.mark.thorough
async def test_a_loop_that_is_over_takes_its_hub_along(client):
    async def listen_once():
        stream = await listening(client, toolsListChanged=True)
        await stream.left()
        return weakref.ref(get_hub())

    # asgiref remembers the last one.
    first, _ = [await asyncio.to_thread(asyncio.run, listen_once()) for _ in range(2)]
    gc.collect()

    assert first() is None


async def test_a_hub_whose_loop_is_over_is_told_nothing_any_more():
    loop = asyncio.new_event_loop()
    hub = get_hub(loop)
    loop.close()

    hub.sink(frozenset({list_changed("tools")}))

    assert hub.sink not in outbox._sinks


# The hub that streams hang on, looks that fail, and changes of other processes


@pytest.fixture
def doubt(monkeypatch):
    """Who reads a stream is found out at each look."""
    monkeypatch.setattr(notifier, "BELIEVED", 0)


@pytest.mark.thorough
async def test_a_look_that_takes_too_long_is_given_up_and_made_up_for(
    client, uri, doubt, configure, gate, caplog, fresh_lanes, monkeypatch, listen
):
    authenticate = PersonalTokens.authenticate

    def authenticate_late(*args):
        gate.wait()
        return authenticate(*args)

    stream = await listen(client, uri, toolsListChanged=True)
    with monkeypatch.context() as patched:
        patched.setattr(PersonalTokens, "authenticate", authenticate_late)
        configure(TOOL_TIMEOUT=0.05)
        cache.clear()
        changed(uri)
        await looked()
    assert "Whom to tell of changes cannot be found out." in caplog.text

    gate.open()
    configure(TOOL_TIMEOUT=60)
    await asyncio.to_thread(fresh_lanes.close)
    turn_the_wheel()

    assert {told(await stream.message()) for _ in range(2)} == {uri, "tools"}


def revoke(token, eve):
    token.delete()


def give_away(token, eve):
    # Behind everybody's back: no signal is sent.
    PersonalToken.objects.filter(pk=token.pk).update(user=eve)
    cache.clear()


@pytest.mark.parametrize("lose", [revoke, give_away])
async def test_a_token_that_is_revoked_or_somebody_elses_ends_its_stream_at_the_next_change(
    client, uri, doubt, make_user, lose, listen
):
    stream = await listen(client, uri)
    other = await sync_to_async(make_user)("eve", is_staff=True)
    await sync_to_async(lose)(await PersonalToken.objects.aget(), other)

    changed(uri)

    assert [message.get("id") for message in await stream.rest()] == [1]
    assert not get_hub().streams


# The link


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_change_of_another_process_is_told_and_all_of_them_where_any_was_lost(
    client, uri, settings, monkeypatch, is_lost, listen
):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": CORE}}
    fake = Layer()
    monkeypatch.setattr(layer, "PAUSE", 0.001)
    monkeypatch.setattr(layer, "get_layer", lambda: fake)
    # The outbox has found out whom to tell already.
    monkeypatch.setattr(outbox, "_default", None)
    monkeypatch.setattr(outbox, "_unmade", None)
    stream = await listen(client, uri, toolsListChanged=True)

    message = from_another(layer.encode([Change(topic=uri)]))
    fake.waiting.put_nowait(ConnectionError("cut") if is_lost else message)

    expected = {uri, "tools"} if is_lost else {uri}
    assert {told(await stream.message()) for _ in expected} == expected


# The hub itself


async def test_the_wheel_stands_still_when_the_last_stream_is_gone(client, uri, listen):
    stream = await listen(client, uri, toolsListChanged=True)
    get_hub()._tick()
    assert get_hub()._is_ticking

    await stream.left()
    get_hub()._tick()

    assert not get_hub()._is_ticking


async def test_what_fails_on_the_side_is_logged(caplog):
    async def fail():
        raise ValueError("by the way")

    get_hub().keep(fail())
    await settled()

    assert "Something that streams need failed." in caplog.text


async def test_of_more_changes_than_are_kept_anything_may_have_changed(monkeypatch):
    monkeypatch.setattr("mcp_django.transports.hub.MOST", 2)
    hub = get_hub()
    hub.take(frozenset({Change(topic="0")}))
    await settled()
    start = hub.loop.time()
    hub.take(frozenset({Change(topic="1")}))
    await settled()

    assert [change.topic for change in hub.recent_changes(start)] == ["1"]
    hub.take(frozenset({Change(topic="2")}))
    await settled()
    assert [change.topic for change in hub.recent_changes(start)] == ["2", "1", ""]


# The store


async def test_a_handshake_that_says_too_much_begins_nothing(client):
    client = speaking(client, Revision.V2025_11_25)
    params = hello(client.revision, "x" * 20_000)

    refused = await Connection.asking(client, "initialize", params).whole()

    assert refused.status == 400
    assert "mcp-session-id" not in refused.headers

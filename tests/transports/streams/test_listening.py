"""subscriptions/listen: who is told what, when rights change, when readers do not read."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission

from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import MODERN
from mcp_django.subscriptions.outbox import flush, outbox, publish
from mcp_django.subscriptions.topics import CLOSE, EVERYTHING, Change, control_topic
from mcp_django.transports.http import responses
from mcp_django.transports.streams import hub as hubs
from mcp_django.transports.streams.hub import get_hub
from tests.changed import list_changed
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
COLLECTION = "django://objects/shop.order"
UPDATED = "notifications/resources/updated"


@pytest.fixture
def client(client):
    return speaking(client, MODERN[-1])


@pytest.fixture
def order():
    return Order.objects.create(number="1")


@pytest.fixture
def other(make_user):
    return make_user("eve", is_staff=True)


@pytest.fixture
def their_client(other):
    return speaking(CheckedClient(user=other), MODERN[-1])


def uri_of(order):
    return f"{COLLECTION}/{order.pk}"


def asking(client, **wishes):
    return EventStream.asking(client, "subscriptions/listen", {"notifications": wishes})


async def listening(client, *uris, **wishes):
    """A stream behind its acknowledgment, which is kept."""
    if uris:
        wishes["resourceSubscriptions"] = list(uris)
    # What was made for the test is news to nobody.
    assert await sync_to_async(flush)()
    stream = await asking(client, **wishes).opened()
    stream.acknowledgment = await stream.message()
    return stream


def honoured(stream):
    return stream.acknowledgment["params"]["notifications"]


def told(message):
    """What a notification is about."""
    method = message["method"]
    return message["params"]["uri"] if method == UPDATED else method.split("/")[1]


def changed(*topics):
    publish({Change(topic=topic) for topic in topics})


# What is honoured


async def test_the_acknowledgment_comes_first_and_names_what_is_honoured(client, order):
    uris = [uri_of(order), COLLECTION]

    stream = await listening(client, *uris, toolsListChanged=True, promptsListChanged=False)

    assert stream.acknowledgment["method"] == "notifications/subscriptions/acknowledged"
    assert honoured(stream) == {"toolsListChanged": True, "resourceSubscriptions": uris}
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["x-accel-buffering"] == "no"
    assert "no-transform" in stream.headers["cache-control"]
    assert "mcp-session-id" not in stream.headers
    await stream.left()


@pytest.mark.thorough
@pytest.mark.parametrize("request_id", [7, "7"], ids=repr)
async def test_every_message_names_the_subscription_with_the_type_of_its_id(client, request_id):
    message = client.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    headers = client.routing_headers(message)
    body = msgspec.json.encode({**message, "id": request_id})
    stream = await EventStream(client, body, headers=headers).opened()
    first = await stream.message()
    publish({list_changed("tools")})
    second = await stream.message()

    get_hub().close()
    last = (await stream.rest())[-1]

    assert first["params"]["_meta"][SUBSCRIPTION] == request_id
    assert second["params"]["_meta"][SUBSCRIPTION] == request_id
    assert last["result"]["_meta"][SUBSCRIPTION] == request_id
    assert last["result"]["resultType"] == "complete"
    assert last["id"] == request_id
    assert type(last["id"]) is type(request_id)


async def test_what_is_not_there_for_the_caller_is_left_out_without_a_word(client, order):
    missing = [f"{COLLECTION}/999999", "django://objects/shop.secretplan", "test://nothing", "x y"]
    forbidden = ["django://objects/auth.user", "django://objects/shop.secretplan/1"]
    long = f"{COLLECTION}?number={'1' * 3000}"

    stream = await listening(client, *missing, uri_of(order), *forbidden, long)

    assert honoured(stream) == {"resourceSubscriptions": [uri_of(order)]}
    await stream.left()


async def test_no_wish_is_a_stream_that_is_told_nothing(client, order):
    silent = await listening(client)
    other = await listening(client, uri_of(order), toolsListChanged=True)

    publish({EVERYTHING})

    assert await silent.is_silent_until(other)
    await silent.left()
    await other.left()


@pytest.mark.parametrize(
    "wishes",
    [
        None,
        [],
        {"resourceSubscriptions": "django://site"},
        {"resourceSubscriptions": [1]},
        {"toolsListChanged": "yes"},
        {"resourceSubscriptions": [f"django://objects/shop.order/{n}" for n in range(300)]},
    ],
)
async def test_wishes_that_are_none_are_refused_before_any_stream(client, wishes):
    params = {} if wishes is None else {"notifications": wishes}

    answer = await Connection.asking(client, "subscriptions/listen", params).whole()

    assert answer.json["error"]["code"] == -32602
    assert not get_hub().streams


async def test_a_client_that_takes_no_stream_is_refused(client):
    stream = Connection.asking(
        client,
        "subscriptions/listen",
        {"notifications": {}},
        Accept="application/json",
    )

    assert (await stream.whole()).status == 406


async def test_without_a_credential_there_is_no_stream():
    client = speaking(CheckedClient(), MODERN[-1])

    answer = await asking(client, toolsListChanged=True).whole()

    assert answer.status == 401


# What is told


async def test_a_change_of_a_list_reaches_who_asked_for_that_list(client):
    tools = await listening(client, toolsListChanged=True)
    prompts = await listening(client, promptsListChanged=True)

    publish({list_changed("tools")})

    assert await prompts.is_silent_until(tools)
    await tools.left()
    await prompts.left()
    assert not get_hub().streams


async def test_a_uri_is_told_as_the_client_wrote_it(client, order):
    uris = [f"django://objects/Shop.Order/{order.pk}", f"{COLLECTION}?status=new"]
    stream = await listening(client, *uris)

    changed(uri_of(order), COLLECTION)

    assert {told(await stream.message()), told(await stream.message())} == set(uris)
    await stream.left()


async def test_a_stream_hears_of_its_own_record_only(client, order):
    other = await sync_to_async(Order.objects.create)(number="2")
    first, second = await listening(client, uri_of(order)), await listening(client, uri_of(other))

    changed(uri_of(other))

    assert await first.is_silent_until(second)
    await first.left()
    await second.left()


async def test_everything_changed_is_everything_that_was_asked_for(client, order):
    stream = await listening(client, uri_of(order), COLLECTION, toolsListChanged=True)

    publish({EVERYTHING})

    found = {told(await stream.message()) for _ in range(3)}
    assert found == {uri_of(order), COLLECTION, "tools"}
    await stream.left()


async def test_a_whole_collection_that_changed_is_each_of_its_records(client, order):
    stream = await listening(client, uri_of(order), "django://site")
    last = await listening(client, COLLECTION)

    publish({Change(topic=COLLECTION, is_whole=True)})

    await last.message()
    assert told(await stream.message()) == uri_of(order)
    await stream.left()
    await last.left()


async def test_a_change_of_another_server_is_none_of_ours(client):
    stream = await listening(client, toolsListChanged=True, promptsListChanged=True)

    publish({list_changed("tools", server="other")})
    publish({list_changed("prompts")})

    assert told(await stream.message()) == "prompts"
    await stream.left()


async def test_a_list_that_changed_for_one_user_changed_for_nobody_else(
    client, other, their_client
):
    theirs = await listening(their_client, toolsListChanged=True)
    ours = await listening(client, toolsListChanged=True)

    publish({list_changed("tools", users=frozenset({str(other.pk)}))})

    assert await ours.is_silent_until(theirs)
    await ours.left()
    await theirs.left()


async def test_a_change_in_a_model_that_the_caller_may_not_see_is_not_told(client, order):
    stream = await listening(client, COLLECTION)

    publish({Change(topic=COLLECTION, model="auth.user")})
    publish({Change(topic=COLLECTION, model="shop.customer"), list_changed("tools")})

    assert told(await stream.message()) == COLLECTION
    assert stream.outbox.empty()
    await stream.left()


class Slow(EventStream):
    """A client whose connection takes the head of the response and then waits."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.begins, self.goes_on = asyncio.Event(), asyncio.Event()

    async def send(self, event):
        if event["type"] == "http.response.body" and not self.begins.is_set():
            self.begins.set()
            await self.goes_on.wait()
        await super().send(event)


@pytest.mark.thorough
async def test_a_change_before_the_acknowledgment_is_told_behind_it(client):
    params = {"notifications": {"toolsListChanged": True}}
    stream = Slow.asking(client, "subscriptions/listen", params)
    stream.start()
    other = await listening(client, toolsListChanged=True)
    await stream.begins.wait()
    publish({list_changed("tools")})
    await other.message()

    stream.goes_on.set()
    await stream.next()

    assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"
    assert told(await stream.message()) == "tools"
    await stream.left()
    await other.left()


# Rights that change while a stream is open


async def test_a_record_that_is_deleted_is_told_once_and_its_subscription_is_over(client, order):
    second = await sync_to_async(Order.objects.create)(number="2")
    stream = await listening(client, uri_of(order), uri_of(second))
    uri = uri_of(order)
    await sync_to_async(order.delete)()

    changed(uri)
    gone = told(await stream.message())
    changed(uri, uri_of(second))

    assert gone == uri
    assert told(await stream.message()) == uri_of(second)
    assert get_hub().streams[0].uris == (uri_of(second),)
    await stream.left()


async def test_a_hidden_change_is_told_to_those_who_lost_the_record_and_nobody_else(client, order):
    second = await sync_to_async(Order.objects.create)(number="2")
    stream = await listening(client, uri_of(order), uri_of(second))
    await sync_to_async(order.delete)()

    publish({Change(topic=uri_of(second), is_hidden=True)})
    publish({Change(topic=f"{COLLECTION}/{stream_pk(stream, 0)}", is_hidden=True)})

    assert told(await stream.message()).endswith(f"/{stream_pk(stream, 0)}")
    assert stream.outbox.empty()
    await stream.left()


def stream_pk(stream, index):
    return honoured(stream)["resourceSubscriptions"][index].rpartition("/")[2]


async def test_a_model_right_that_is_lost_is_silence(client, staff, order):
    stream = await listening(client, uri_of(order), toolsListChanged=True)
    view = await Permission.objects.aget(codename="view_order", content_type__app_label="shop")
    await staff.user_permissions.aremove(view)

    changed(uri_of(order))
    publish({list_changed("tools")})

    assert told(await stream.message()) == "tools"
    await stream.left()


async def test_a_right_that_is_given_back_is_heard_again(client, staff, order):
    stream = await listening(client, uri_of(order), promptsListChanged=True)
    view = await Permission.objects.aget(codename="view_order", content_type__app_label="shop")
    await staff.user_permissions.aremove(view)
    changed(uri_of(order))
    publish({list_changed("prompts")})
    assert told(await stream.message()) == "prompts"

    await staff.user_permissions.aadd(view)
    changed(uri_of(order))

    while told(await stream.message()) != uri_of(order):
        continue
    await stream.left()


async def test_a_token_that_is_revoked_ends_its_stream_at_the_next_change(client, order):
    stream = await listening(client, uri_of(order))
    await sync_to_async(lambda: [one.delete() for one in PersonalToken.objects.all()])()

    changed(uri_of(order))

    assert [one.get("id") for one in await stream.rest()] == [1]
    assert not get_hub().streams


async def test_a_user_who_is_deactivated_is_noticed_by_the_next_sign_of_life(
    client, staff, monkeypatch
):
    stream = await listening(client, toolsListChanged=True)
    # Behind everybody's back: no signal is sent.
    await sync_to_async(type(staff).objects.filter(pk=staff.pk).update)(is_active=False)
    monkeypatch.setattr("mcp_django.transports.streams.notifier.RENEW", 0)
    cache.clear()

    turn_the_wheel()

    assert [one.get("id") for one in await stream.rest()] == [1]


def turn_the_wheel():
    """As if fifteen seconds went by."""
    hub = get_hub()
    for _ in range(hubs.KEEP_ALIVE):
        hub._tick.cancel()
        hub._turn()


async def test_a_quiet_stream_gets_a_sign_of_life(client):
    stream = await listening(client, toolsListChanged=True)

    turn_the_wheel()

    frame = await stream.frame()
    assert frame.is_comment
    await stream.left()


# Many streams, and readers that do not read


@pytest.mark.parametrize("name", ["MAX_STREAMS", "MAX_STREAMS_PER_PRINCIPAL"])
async def test_more_streams_than_allowed_are_refused_before_any_acknowledgment(
    client, configure, name
):
    configure(**{name: 2})
    streams = [await listening(client, toolsListChanged=True) for _ in range(2)]

    refused = await asking(client, toolsListChanged=True).whole()

    assert refused.status == 503
    assert refused.headers["retry-after"]
    assert refused.json["error"]["code"] == -32603
    await streams.pop().left()
    again = await listening(client, toolsListChanged=True)
    await again.left()
    await streams.pop().left()


async def test_a_stream_of_one_principal_counts_for_nobody_else(client, their_client, configure):
    configure(MAX_STREAMS_PER_PRINCIPAL=1)
    ours = await listening(client, toolsListChanged=True)

    theirs = await listening(their_client, toolsListChanged=True)

    assert honoured(theirs)
    await ours.left()
    await theirs.left()


class Stuck(EventStream):
    """A client whose connection takes nothing after the first messages."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.is_stuck = False
        self.reads = asyncio.Event()

    async def send(self, event):
        if self.is_stuck:
            await self.reads.wait()
        await super().send(event)


async def test_a_reader_that_does_not_read_costs_no_more_than_what_it_asked_for(client, order):
    stuck = await Stuck.asking(
        client,
        "subscriptions/listen",
        {"notifications": {"resourceSubscriptions": [uri_of(order)], "toolsListChanged": True}},
    ).opened()
    await stuck.message()
    other = await listening(client, toolsListChanged=True)
    stuck.is_stuck = True
    hub = get_hub()

    for _ in range(200):
        hub.take(frozenset({Change(topic=uri_of(order)), list_changed("tools")}))
    await other.message()
    stuck.reads.set()

    async with asyncio.timeout(PATIENCE):
        found = {told(await stuck.message()) for _ in range(2)}
    assert found == {uri_of(order), "tools"}
    sent = sum(b"data: " in event.get("body", b"") for event in stuck.sent)
    assert sent <= 5
    await stuck.left()
    await other.left()


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


async def test_a_stream_that_ends_before_its_turn_is_written_no_more(client, monkeypatch):
    stream = await listening(client, toolsListChanged=True)
    other = await listening(client, toolsListChanged=True)
    with monkeypatch.context() as patched:
        patched.setattr(responses, "GULP", 0)
        get_hub().streams[0].keep_alive()
        await stream.left()
    sent = len(stream.sent)

    changed("tools")

    assert told(await other.message()) == "tools"
    assert not any(event.get("body") for event in stream.sent[sent:])
    await other.left()


class Broken(EventStream):
    """A connection on which the server itself fails."""

    is_broken = False

    async def send(self, event):
        if self.is_broken:
            raise RuntimeError("not today")
        await super().send(event)


@pytest.mark.thorough
async def test_a_stream_that_cannot_be_written_ends_and_the_others_hear(client, caplog):
    wishes = {"notifications": {"toolsListChanged": True}}
    broken = await Broken.asking(client, "subscriptions/listen", wishes).opened()
    await broken.message()
    other = await listening(client, toolsListChanged=True)
    broken.is_broken = True

    changed("tools")

    assert told(await other.message()) == "tools"
    async with asyncio.timeout(PATIENCE):
        await broken.task
    assert len(get_hub().streams) == 1
    assert "A stream broke." in caplog.text
    await other.left()


@pytest.mark.thorough
async def test_idle_streams_take_no_thread_and_no_task_of_their_own_beyond_the_one(client):
    warm = await listening(client, toolsListChanged=True)
    threads, tasks = threading.active_count(), len(asyncio.all_tasks())

    streams = [await listening(client, toolsListChanged=True) for _ in range(20)]

    assert threading.active_count() == threads
    assert len(asyncio.all_tasks()) <= tasks + 20
    for stream in (warm, *streams):
        await stream.left()


# The admin's switches


@pytest.mark.parametrize("who", ["stream", "user", "server"])
async def test_a_stream_is_closed_when_its_switch_is_thrown(client, staff, their_client, who):
    stays = await listening(their_client, toolsListChanged=True)
    stream = await listening(client, toolsListChanged=True)
    key = get_hub().streams[-1].key
    keys = {
        "stream": (key,),
        "user": ("user", "default", str(staff.pk)),
        "server": ("server", "default"),
    }

    publish({Change(topic=control_topic(CLOSE, *keys[who]))})

    assert [one.get("id") for one in await stream.rest()] == [1]
    assert bool(get_hub().streams) is (who != "server")
    if who == "server":
        await stays.rest()
    else:
        await stays.left()


async def test_a_hub_whose_loop_is_over_is_told_nothing_any_more():
    loop = asyncio.new_event_loop()
    hub = get_hub(loop)
    loop.close()

    hub.sink(frozenset({list_changed("tools")}))

    assert hub.sink not in outbox._sinks

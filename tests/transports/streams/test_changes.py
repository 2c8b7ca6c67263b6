"""The same changes, told to clients of every revision, each in its own way."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from mcp_django.protocol.revisions import LEGACY, Era
from mcp_django.subscriptions.outbox import flush, publish
from mcp_django.subscriptions.topics import CLOSE, Change, control_topic
from mcp_django.transports.streams.hub import get_hub
from tests.changed import list_changed
from tests.clients import CheckedClient
from tests.oracle import assert_valid_message
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.event_stream import EventStream
from tests.transports.session_client import SessionClient
from tests.transports.wire import Connection, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
COLLECTION = "django://objects/shop.order"
UPDATED = "notifications/resources/updated"
LISTS = ["tools", "prompts", "resources"]


@pytest.fixture
def client(client, revision):
    return speaking(client, revision)


@pytest.fixture
def clerk(make_user):
    """Staff who may look at orders, and at nothing else."""
    return make_user("clerk", "view_order", is_staff=True)


@pytest.fixture
def eve(make_user):
    """Staff who may look at nothing."""
    return make_user("eve", is_staff=True)


@pytest.fixture
def speaks(revision):
    return lambda user: CheckedClient(user=user, revision=revision)


@pytest.fixture
def orders():
    return [Order.objects.create(number=str(number)) for number in range(2)]


def uri_of(order):
    return f"{COLLECTION}/{order.pk}"


async def listening(client, *uris):
    """A stream that is told of all lists and of these resources, from now on."""
    await sync_to_async(flush)()
    if client.revision.era is Era.MODERN:
        wishes = {f"{name}ListChanged": True for name in LISTS}
        wishes["resourceSubscriptions"] = list(uris)
        stream = EventStream.asking(client, "subscriptions/listen", {"notifications": wishes})
        await stream.opened()
        await stream.message()
        return stream
    session = await SessionClient.begin(client)
    for uri in uris:
        assert (await session.answer_to("resources/subscribe", uri=uri))["result"] == {}
    stream = await session.get()
    stream.session = session
    await stream.frame()
    return stream


def changed(*topics):
    publish({Change(topic=topic) for topic in topics})


@requirement("subscriptions:delivered", "subscriptions:updated")
async def test_a_record_that_changed_is_told_on_every_stream_that_asked_for_it(client, orders):
    uri = uri_of(orders[0])
    streams = [await listening(client, uri), await listening(client, uri)]

    changed(uri)

    for stream in streams:
        message = await stream.message()
        assert_valid_message(client.revision, UPDATED, message)
        assert message["params"]["uri"] == uri
        await stream.left()


@requirement("subscriptions:requested-only", "subscriptions:updated")
async def test_what_nobody_asked_for_is_told_to_nobody(client, orders):
    mine, other = map(uri_of, orders)
    stream = await listening(client, mine)
    elsewhere = await listening(client, other)

    changed(other, COLLECTION)
    await elsewhere.message()
    changed(mine)

    assert (await stream.message())["params"]["uri"] == mine
    await stream.left()
    await elsewhere.left()


@requirement(
    "subscriptions:delivered",
    "subscriptions:tools-changed",
    "subscriptions:resources-changed",
)
@pytest.mark.parametrize("name", LISTS)
async def test_a_list_that_changed_is_told_where_that_was_promised(client, name):
    stream = await listening(client)

    publish({list_changed(name)})

    message = await stream.message()
    assert_valid_message(client.revision, f"notifications/{name}/list_changed", message)
    await stream.left()


@pytest.mark.thorough
@requirement("subscriptions:rights")
async def test_who_may_not_see_a_record_hears_nothing_of_it(client, eve, speaks, orders):
    eve = await sync_to_async(speaks)(eve)
    uri = uri_of(orders[0])
    is_modern = client.revision.era is Era.MODERN
    stream = await listening(client, uri)
    theirs = await listening(eve, *([uri] if is_modern else []))
    if not is_modern:
        refused = await theirs.session.answer_to("resources/subscribe", uri=uri)
        assert refused["error"]["code"] == -32002

    changed(uri)
    await stream.message()
    publish({list_changed("tools")})

    assert (await theirs.message())["method"] == "notifications/tools/list_changed"
    await stream.left()
    await theirs.left()


@requirement("subscriptions:rights")
async def test_a_right_that_was_lost_meanwhile_is_silence(client, clerk, speaks, orders):
    uri = uri_of(orders[0])
    stream = await listening(client, uri)
    theirs = await listening(await sync_to_async(speaks)(clerk), uri)
    await sync_to_async(clerk.user_permissions.clear)()

    changed(uri)
    await stream.message()
    publish({list_changed("prompts")})

    methods = {"notifications/tools/list_changed", "notifications/resources/list_changed"}
    while (method := (await theirs.message())["method"]) in methods:
        # Who may do less has shorter lists, too.
        continue
    assert method == "notifications/prompts/list_changed"
    await stream.left()
    await theirs.left()


@requirement("subscriptions:ended")
async def test_a_stream_that_the_server_ends_is_answered_first_where_it_is_an_answer(
    client, staff
):
    stream = await listening(client)

    publish({Change(topic=control_topic(CLOSE, "user", "default", str(staff.pk)))})

    told = await stream.rest()
    if client.revision.era is Era.MODERN:
        [answer] = told
        assert_valid_message(client.revision, "subscriptions/listen", answer)
        assert answer["result"]["resultType"] == "complete"
    else:
        assert told == []


@requirement("subscriptions:bounded")
async def test_the_number_of_streams_has_an_end(client, configure):
    configure(MAX_STREAMS_PER_PRINCIPAL=1)
    stream = await listening(client)

    if client.revision.era is Era.MODERN:
        params = {"notifications": {"toolsListChanged": True}}
        refused = await Connection.asking(client, "subscriptions/listen", params).whole()
    else:
        refused = await (await SessionClient.begin(client)).get()

    assert refused.status == 503
    assert refused.headers["retry-after"]
    await stream.left()
    assert not get_hub().streams


# What sessions have of their own


@pytest.mark.thorough
@requirement("subscriptions:subscribe")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_a_resource_that_was_subscribed_to_twice_is_told_once(client, orders):
    uri = uri_of(orders[0])
    stream = await listening(client, uri, uri)

    changed(uri)
    publish({list_changed("tools")})

    told = [(await stream.message())["method"] for _ in range(2)]
    assert sorted(told) == [UPDATED, "notifications/tools/list_changed"]
    await stream.left()


@requirement("subscriptions:unsubscribe")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_a_resource_that_was_unsubscribed_from_is_told_no_more(client, orders):
    mine, other = map(uri_of, orders)
    stream = await listening(client, mine, other)

    for _ in range(2):
        done = await stream.session.answer_to("resources/unsubscribe", uri=mine)
        assert done["result"] == {}
    changed(mine)
    changed(other)

    assert (await stream.message())["params"]["uri"] == other
    await stream.left()


@pytest.mark.thorough
@requirement("sessions:no-response-on-get", "http:one-stream")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
async def test_the_stream_of_a_session_carries_no_answers(client):
    stream = await listening(client)

    answer = await stream.session.answer_to("tools/list")
    publish({list_changed("tools")})

    assert answer["result"]["tools"]
    message = await stream.message()
    assert message.keys() == {"jsonrpc", "method", "params"}
    await stream.left()

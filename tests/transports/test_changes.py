"""The same changes, told to clients of every revision, each in its own way."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from mcp_django.protocol.revisions import LEGACY, Era
from mcp_django.subscriptions.outbox import flush, publish
from mcp_django.transports.hub import get_hub
from tests.changed import list_changed
from tests.clients import CheckedClient
from tests.oracle import assert_valid_message
from tests.spec import requirement
from tests.transports.event_stream import asking_to_listen, changed
from tests.transports.event_stream import listening as subscribed
from tests.transports.session_client import SessionClient
from tests.transports.wire import speaking

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("revision"),
]
UPDATED = "notifications/resources/updated"
LISTS = ["tools", "prompts", "resources"]


@pytest.fixture
def uris(orders):
    return [f"django://objects/shop.order/{order.pk}" for order in orders]


async def listening(client, *uris):
    """A stream that is told of all lists and of these resources, from now on."""
    if client.revision.era is Era.MODERN:
        return await subscribed(client, *uris, **{f"{name}ListChanged": True for name in LISTS})
    await sync_to_async(flush)()
    session = await SessionClient.begin(client)
    for uri in uris:
        assert (await session.answer_to("resources/subscribe", uri=uri))["result"] == {}
    stream = await session.get()
    stream.session = session
    await stream.frame()
    return stream


@requirement(
    "subscriptions:delivered",
    "subscriptions:updated",
    "subscriptions:requested-only",
    "subscriptions:tools-changed",
    "subscriptions:resources-changed",
)
async def test_what_changed_is_told_on_every_stream_that_asked_for_it_and_on_no_other(
    client, uris
):
    mine, other = uris
    streams = [await listening(client, mine), await listening(client, mine)]
    elsewhere = await listening(client, other)

    changed(mine)
    heard = [await stream.message() for stream in streams]
    changed(other)
    heard.append(await elsewhere.message())

    for message in heard:
        assert_valid_message(client.revision, UPDATED, message)
    assert [message["params"]["uri"] for message in heard] == [mine, mine, other]
    for name in LISTS:
        publish({list_changed(name)})
        for stream in (*streams, elsewhere):
            message = await stream.message()
            assert_valid_message(client.revision, f"notifications/{name}/list_changed", message)
    for stream in (*streams, elsewhere):
        await stream.left()


@requirement("subscriptions:rights")
async def test_a_right_that_was_lost_meanwhile_is_silence(client, make_user, revision, uris):
    clerk = await sync_to_async(make_user)("clerk", "view_order", is_staff=True)
    theirs = await sync_to_async(CheckedClient)(user=clerk, revision=revision)
    stream, silent = await listening(client, uris[0]), await listening(theirs, uris[0])
    await sync_to_async(clerk.user_permissions.clear)()

    changed(uris[0])
    await stream.message()
    publish({list_changed("prompts")})

    methods = {"notifications/tools/list_changed", "notifications/resources/list_changed"}
    while (method := (await silent.message())["method"]) in methods:
        # Who may do less has shorter lists, too.
        continue
    assert method == "notifications/prompts/list_changed"
    await stream.left()
    await silent.left()


async def opened(client):
    """One more stream, if that is allowed."""
    if client.revision.era is Era.MODERN:
        return await asking_to_listen(client, toolsListChanged=True).opened()
    return await (await SessionClient.begin(client)).get()


@requirement("subscriptions:bounded")
@pytest.mark.parametrize(
    ("name", "status"), [("MAX_STREAMS", 503), ("MAX_STREAMS_PER_PRINCIPAL", 200)]
)
async def test_more_streams_than_allowed_are_refused_and_free_behind_one_that_ended(
    client, eve, revision, configure, name, status
):
    configure(**{name: 1})
    stream = await listening(client)

    refused, theirs = await opened(client), await opened(speaking(eve, revision))
    await stream.left()
    await theirs.left()
    again = await opened(client)

    assert (refused.status, theirs.status, again.status) == (503, status, 200)
    assert refused.headers["retry-after"]
    await again.left()
    assert not get_hub().streams


# What sessions have of their own


@requirement(
    "subscriptions:subscribe",
    "subscriptions:unsubscribe",
    "sessions:no-response-on-get",
    "http:one-stream",
)
@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
async def test_a_resource_is_told_once_until_it_is_no_more_subscribed_to_and_no_answer_is_told(
    client, uris
):
    mine, other = uris
    stream = await listening(client, mine, mine, other)

    changed(mine)
    heard = [await stream.message()]
    for _ in range(2):
        done = await stream.session.answer_to("resources/unsubscribe", uri=mine)
        assert done["result"] == {}
    changed(mine)
    changed(other)
    heard.append(await stream.message())

    assert [message["params"]["uri"] for message in heard] == [mine, other]
    await stream.left()

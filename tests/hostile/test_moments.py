"""What happens at the worst moment: between an answer and what follows from it."""

from __future__ import annotations

import asyncio
import os

import pytest
from asgiref.sync import sync_to_async

from mcp_django.protocol.revisions import LATEST_LEGACY, MODERN
from mcp_django.stores import sessions as store_of_sessions
from mcp_django.stores.sessions import Store
from mcp_django.subscriptions.outbox import flush, publish
from mcp_django.subscriptions.topics import Change
from mcp_django.transports import notifier
from mcp_django.transports.hub import get_hub
from mcp_django.transports.threads import Lane, lanes
from tests.changed import list_changed
from tests.clients import CheckedClient
from tests.shop.models import Order
from tests.transports.event_stream import EventStream
from tests.transports.http_sse_client import settled
from tests.transports.session_client import SessionClient
from tests.transports.wire import Gate, speaking

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.django_db(transaction=True),
    pytest.mark.client(revision=LATEST_LEGACY),
]
URI = "django://objects/shop.order/{}"


class Held(Store):
    """A store that answers about subscriptions when the test lets it."""

    def __init__(self):
        super().__init__()
        self.gates = []

    def subscriptions(self, session):
        found = super().subscriptions(session)
        if self.gates and self.gates[0][0] <= found:
            _, gate = self.gates.pop(0)
            gate.wait()
        return found

    def hold(self, *uris):
        """The next answer that has these."""
        self.gates.append((frozenset(uris), Gate()))
        return self.gates[-1][1]


@pytest.fixture
def store(monkeypatch):
    found = Held()
    monkeypatch.setitem(store_of_sessions._stores, os.getpid(), found)
    yield found
    for _, gate in found.gates:
        gate.open()


@pytest.fixture
def uri():
    return URI.format(Order.objects.create(number="1").pk)


async def subscribe(session, uri):
    answer = await session.answer_to("resources/subscribe", uri=uri)
    assert answer["result"] == {}


async def test_a_subscription_made_while_the_stream_opens_is_heard(client, store, uri):
    session = await SessionClient.begin(client)
    assert await sync_to_async(flush)()
    gate = store.hold()
    opening = asyncio.create_task(session.get())
    await gate.until_reached()
    # The wishes were read before this one was made. What changes now is changed behind it.
    await asyncio.to_thread(store.subscribe, session.key, uri, most=9)
    publish({Change(topic=uri)})
    assert await sync_to_async(flush)()

    gate.open()
    stream = await opening

    assert (await stream.message())["params"] == {"uri": uri}
    await stream.left()


async def test_what_changes_before_the_stream_knows_of_a_subscription_is_told(client, store, uri):
    session = await SessionClient.begin(client)
    stream = await session.get()
    await stream.frame()
    assert await sync_to_async(flush)()
    # The stream may still be reading what there was before.
    gate = store.hold(uri)
    await subscribe(session, uri)
    await gate.until_reached()

    publish({Change(topic=uri)})
    assert await sync_to_async(flush)()
    gate.open()

    assert (await stream.message())["params"] == {"uri": uri}
    await stream.left()


@pytest.mark.thorough
async def test_what_changed_before_a_subscription_is_no_news(client, store, uri):
    session = await SessionClient.begin(client)
    stream = await session.get()
    publish({Change(topic=uri)})
    assert await sync_to_async(flush)()

    await subscribe(session, uri)
    publish({list_changed("tools")})

    assert (await stream.message())["method"] == "notifications/tools/list_changed"
    await stream.left()


# Many readers and slow rules


@pytest.mark.thorough
async def test_the_tables_of_a_hub_return_to_their_size(client, uri):
    session = await SessionClient.begin(client)
    stream = await session.get()
    await stream.left()
    await settled()
    hub = get_hub()
    before = sizes(hub)

    for _ in range(20):
        session = await SessionClient.begin(client)
        stream = await session.get()
        await subscribe(session, uri)
        await stream.left()
        await session.end()
    await settled()

    assert sizes(hub) == before


def sizes(hub):
    tables = (
        hub._subscribers,
        hub._by_topic,
        hub._audiences,
        hub._counts,
        hub._callbacks,
        hub._tasks,
        hub.writers._tasks,
    )
    return [*map(len, tables), sum(map(len, hub._wheel)), len(asyncio.all_tasks())]


async def test_news_take_one_thread_however_slow_a_rule_and_however_much_changes(
    client, uri, change_admin, gate
):
    def get_queryset(self, request):
        if is_slow:
            gate.wait()
        return Order.objects.all()

    is_slow = []
    change_admin(Order, get_queryset=get_queryset)

    others = await sync_to_async(lambda: [Order.objects.create(number=str(n)) for n in (2, 3)])()
    uris = [uri, *(URI.format(one.pk) for one in others)]
    session = await SessionClient.begin(client)
    for one in uris:
        await subscribe(session, one)
    stream = await session.get()
    assert await sync_to_async(flush)()
    is_slow.append(True)
    publish({Change(topic=uri)})
    await gate.until_reached()

    for one in uris:
        publish({Change(topic=one)})
        assert await sync_to_async(flush)()

    assert lanes[Lane.QUERY].waiting == 0
    gate.open()
    # The first was told of before it changed again.
    heard = [(await stream.message())["params"]["uri"] for _ in (uri, *uris)]
    assert (heard[0], set(heard[1:])) == (uri, set(uris))
    await stream.left()


@pytest.fixture
def clients(make_user):
    users = [make_user(name, is_staff=True) for name in ("a", "b")]
    return [speaking(CheckedClient(user=one), MODERN[-1]) for one in users]


async def test_calls_get_their_turn_between_slow_rules(clients, monkeypatch):
    monkeypatch.setattr(notifier, "SLICE", 0)
    wishes = {"notifications": {"toolsListChanged": True}}
    streams = [
        await EventStream.asking(one, "subscriptions/listen", wishes).opened() for one in clients
    ]
    assert await sync_to_async(flush)()
    jobs = []
    judge = notifier.judge
    monkeypatch.setattr(notifier, "judge", lambda *args: jobs.append(args) or judge(*args))

    publish({list_changed("tools")})

    for stream in streams:
        assert (await stream.message())["method"]
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        await stream.left()
    assert [len(groups) for groups, _ in jobs] == [2, 1]

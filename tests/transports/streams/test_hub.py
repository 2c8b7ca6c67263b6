"""What streams hang on: the hub of a loop, its link, its tasks, and looks that fail."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from asgiref.sync import sync_to_async

from mcp_django.auth import PersonalTokens
from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import MODERN, Revision
from mcp_django.stores.interface import chosen, get_store
from mcp_django.stores.memory import MemoryStore
from mcp_django.subscriptions.outbox import flush, outbox, publish
from mcp_django.subscriptions.topics import Change, control_topic
from mcp_django.transports.sessions import key_of
from mcp_django.transports.streams import hub as hubs
from mcp_django.transports.streams import layer
from mcp_django.transports.streams.hub import Hub, get_hub
from tests.changed import list_changed
from tests.shop.models import Order
from tests.transports.event_stream import EventStream
from tests.transports.session_client import SessionClient
from tests.transports.streams.test_layer import CORE, Layer, from_another
from tests.transports.wire import Connection, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


class Trouble(PersonalTokens):
    """Authenticates until the directory that it asks is gone, or slow."""

    is_gone = False
    gate = None

    def authenticate(self, request):
        if Trouble.is_gone:
            raise RuntimeError("The directory of users does not answer.")
        if Trouble.gate is not None:
            Trouble.gate.wait()
        return super().authenticate(request)


@pytest.fixture
def trouble(configure):
    configure(AUTHENTICATORS=[f"{__name__}.Trouble"])
    yield Trouble
    Trouble.is_gone, Trouble.gate = False, None


@pytest.fixture
def client(client):
    return speaking(client, MODERN[-1])


@pytest.fixture
def uri():
    return f"django://objects/shop.order/{Order.objects.create(number='1').pk}"


async def listening(client, uri):
    params = {"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": True}}
    assert await sync_to_async(flush)()
    stream = await EventStream.asking(client, "subscriptions/listen", params).opened()
    await stream.message()
    return stream


def tick():
    """As if a second went by."""
    hub = get_hub()
    hub._tick.cancel()
    hub._turn()


def turn_the_wheel():
    """As if fifteen seconds went by."""
    for _ in range(hubs.KEEP_ALIVE):
        tick()


async def settled():
    """Until what was published has been looked into."""
    assert await sync_to_async(flush)()
    async with asyncio.timeout(PATIENCE):
        while get_hub()._tasks:
            await asyncio.gather(*get_hub()._tasks)


# Looks that fail


async def test_what_could_not_be_looked_into_is_told_at_the_next_look(
    client, uri, trouble, caplog, monkeypatch
):
    monkeypatch.setattr("mcp_django.transports.streams.notifier.BELIEVED", 0)
    monkeypatch.setattr("mcp_django.transports.streams.notifier.RENEW", 0)
    stream = await listening(client, uri)
    trouble.is_gone = True
    cache.clear()
    publish({Change(topic=uri)})
    await settled()
    assert stream.outbox.empty()
    assert "cannot be found out" in caplog.text

    trouble.is_gone = False
    turn_the_wheel()

    told = {(await stream.message())["method"].split("/")[1] for _ in range(2)}
    assert told == {"resources", "tools"}
    await stream.left()


@pytest.mark.thorough
async def test_a_look_that_takes_too_long_is_given_up_and_made_up_for(
    client, uri, trouble, configure, gate, caplog, monkeypatch, fresh_lanes
):
    monkeypatch.setattr("mcp_django.transports.streams.notifier.BELIEVED", 0)
    stream = await listening(client, uri)
    configure(AUTHENTICATORS=[f"{__name__}.Trouble"], TOOL_TIMEOUT=0.05)
    trouble.gate = gate
    cache.clear()
    publish({Change(topic=uri)})
    await settled()
    assert "Whom to tell of changes cannot be found out." in caplog.text

    trouble.gate = None
    gate.open()
    configure(TOOL_TIMEOUT=60)
    await asyncio.to_thread(fresh_lanes.close)
    turn_the_wheel()

    told = {(await stream.message())["method"].split("/")[1] for _ in range(2)}
    assert told == {"resources", "tools"}
    await stream.left()


async def test_a_site_without_authenticators_is_not_taken_for_a_bad_credential(
    client, uri, configure, monkeypatch
):
    monkeypatch.setattr("mcp_django.transports.streams.notifier.BELIEVED", 0)
    stream = await listening(client, uri)
    configure(AUTHENTICATORS=[])
    cache.clear()

    publish({Change(topic=uri)})
    await settled()

    assert get_hub().streams
    assert stream.outbox.empty()
    await stream.left()


async def test_a_token_that_is_somebody_elses_now_ends_the_stream(
    client, uri, make_user, monkeypatch
):
    monkeypatch.setattr("mcp_django.transports.streams.notifier.BELIEVED", 0)
    stream = await listening(client, uri)
    eve = await sync_to_async(make_user)("eve", is_staff=True)
    await PersonalToken.objects.aupdate(user=eve)
    cache.clear()

    publish({Change(topic=uri)})

    assert [one.get("id") for one in await stream.rest()] == [1]


# The wheel


async def test_the_wheel_stands_still_when_the_last_stream_is_gone(client, uri):
    stream = await listening(client, uri)
    tick()
    assert get_hub()._tick is not None

    await stream.left()
    tick()

    assert get_hub()._tick is None


# The link


@pytest.fixture
def fake(settings, monkeypatch):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": CORE}}
    monkeypatch.setattr(layer, "PAUSE", 0.001)
    found = Layer()
    monkeypatch.setattr(layer, "get_layer", lambda: found)
    # The outbox has found out whom to tell already.
    monkeypatch.setattr(outbox, "_default", None)
    monkeypatch.setattr(outbox, "_is_made", True)
    return found


async def test_a_change_of_another_process_is_told(client, uri, fake):
    stream = await listening(client, uri)

    fake.waiting.put_nowait(from_another(layer.encode([Change(topic=uri)])))

    assert (await stream.message())["params"]["uri"] == uri
    await stream.left()


async def test_a_layer_that_was_gone_makes_every_stream_read_anew(client, uri, fake):
    stream = await listening(client, uri)

    fake.waiting.put_nowait(ConnectionError("cut"))

    told = {(await stream.message())["method"].split("/")[1] for _ in range(2)}
    assert told == {"resources", "tools"}
    await stream.left()


# The hub itself


@pytest.mark.thorough
async def test_a_loop_does_not_live_for_its_hub():
    loop = asyncio.new_event_loop()
    hub, gone = Hub(loop), weakref.ref(loop)
    loop.close()

    del loop
    gc.collect()

    assert gone() is None
    with pytest.raises(RuntimeError, match="is gone"):
        _ = hub.loop


@pytest.mark.thorough
async def test_a_hub_that_is_gone_is_told_nothing():
    loop = asyncio.new_event_loop()
    hub = Hub(loop)
    sink = hub.sink

    del hub
    gc.collect()
    sink(frozenset({list_changed("tools")}))

    assert sink not in outbox._sinks
    loop.close()


async def test_what_fails_on_the_side_is_logged(caplog):
    async def fail():
        raise ValueError("by the way")

    get_hub().keep(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert "Something that streams need failed." in caplog.text


async def test_a_hub_rests_when_nobody_waits_for_anything():
    hub = get_hub()
    topic = control_topic("test", "x")

    def callback():
        raise NotImplementedError

    with hub.when(callback, topic):
        assert hub._tick is not None
    hub._tick.cancel()
    hub._turn()

    assert hub._tick is None


async def test_a_topic_that_nobody_has_is_taken_over_in_silence():
    hub = get_hub()
    topic = control_topic("test", "y")

    hub.take_over(topic, bool)

    assert not hub.claim(topic, bool)
    assert hub.release(topic, bool)
    assert not hub.release(topic, bool)


async def test_a_stream_is_let_go_once(client, uri):
    stream = await listening(client, uri)
    hub = get_hub()
    (subscriber,) = hub.streams

    hub.remove(subscriber)
    hub.remove(subscriber)

    assert hub._counts[subscriber.stream_group.principal.key] == 0
    await stream.left()


# The store


@pytest.fixture
def store(monkeypatch):
    found = MemoryStore()
    monkeypatch.setattr(chosen, "_store", found)
    return found


async def test_a_stream_opens_though_the_store_cannot_show_it(
    client, uri, store, monkeypatch, caplog
):
    def fail(stream):
        raise ConnectionError("gone")

    monkeypatch.setattr(store, "show_stream", fail)

    stream = await listening(client, uri)

    assert "cannot be reached" in caplog.text
    await stream.left()


async def test_a_standalone_stream_in_another_process_is_one_as_well(client):
    session = await SessionClient.begin(speaking(client, Revision.V2025_11_25))
    key = key_of(session.headers["Mcp-Session-Id"])
    assert await sync_to_async(lambda: get_store().hold_standalone(key, owner="another"))()
    await sync_to_async(lambda: get_store().renew("another"))()

    refused = await session.get()

    assert refused.status == 409


async def test_a_handshake_that_says_too_much_begins_nothing(client):
    client = speaking(client, Revision.V2025_11_25)
    params = {
        "protocolVersion": client.revision.value,
        "capabilities": {},
        "clientInfo": {"name": "x" * 20_000, "version": "1"},
    }

    refused = await Connection.asking(client, "initialize", params).whole()

    assert refused.status == 400
    assert "mcp-session-id" not in refused.headers


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


async def test_a_stream_that_is_ended_while_it_opens_has_its_last_words(client):
    params = {"notifications": {"toolsListChanged": True}}
    stream = Slow.asking(client, "subscriptions/listen", params)
    stream.start()
    await stream.begins.wait()

    get_hub().close()
    stream.goes_on.set()
    await stream.next()

    first, last = await stream.rest()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert last["result"]["resultType"] == "complete"

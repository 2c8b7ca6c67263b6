from __future__ import annotations

import asyncio
import os
import secrets
import signal
from contextlib import ExitStack
from http.client import HTTPConnection

import msgspec
import pytest
from channels.layers import channel_layers
from django.core.checks import run_checks

from mcp_django.exposure.generation import generations
from mcp_django.protocol.revisions import Revision
from mcp_django.subscriptions.events import EVERYTHING, Change, control_topic, list_changed
from mcp_django.testing import Client
from mcp_django.transports import layer
from mcp_django.transports.layer import Link, Publisher, decode, encode, links_processes
from tests.spec import requirement
from tests.transports.event_stream import Event
from tests.transports.live_servers import live_server

CORE = "channels_redis.core.RedisChannelLayer"
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
PATIENCE = 10
CHANGES = frozenset(
    {
        Change(topic="django://objects/shop.order/5", is_hidden=True),
        Change(topic="django://objects/shop.order", is_whole=True, model="shop.order"),
        list_changed("tools", users=frozenset({"1", "2"})),
        Change(topic=control_topic("close", "user", "default", "7")),
        EVERYTHING,
    }
)


class Layer:
    """A channel layer that can be gone, for both ends of the link."""

    def __init__(self) -> None:
        self.is_gone = False
        self.added = asyncio.Queue()
        self.sent = []
        self.failed = asyncio.Event()
        self.waiting = asyncio.Queue()

    def check(self):
        if self.is_gone:
            self.failed.set()
            raise ConnectionError("gone")

    async def new_channel(self):
        return "specific!1"

    async def group_add(self, group, channel):
        self.check()
        self.added.put_nowait(channel)

    async def group_discard(self, group, channel):
        self.check()

    async def group_send(self, group, message):
        self.check()
        self.sent.append(message)

    async def receive(self, channel):
        message = await self.waiting.get()
        if isinstance(message, Exception):
            raise message
        return message


@pytest.fixture
def fake(monkeypatch):
    found = Layer()
    monkeypatch.setattr(layer, "get_layer", lambda: found)
    return found


@pytest.fixture
def publisher():
    found = Publisher()
    yield found
    found.close()


def from_another(message):
    return {**message, "from": "another process"}


def test_changes_go_through_a_message_and_come_back_equal():
    message = msgspec.json.decode(msgspec.json.encode(encode(CHANGES)))

    assert decode(from_another(message)) == CHANGES


def test_what_this_process_sent_itself_is_not_heard_a_second_time():
    assert decode(encode(CHANGES)) == frozenset()


def test_messages_of_others_in_the_group_are_not_ours():
    assert decode({"type": "chat.message", "from": "x", "text": "hello"}) == frozenset()


@pytest.mark.parametrize(
    "changes",
    [None, "x", [1], [["a"]], [["a", None, None, False, False, "", "new"]], [[1, 2, 3, 4, 5, 6]]],
    ids=repr,
)
def test_changes_that_another_release_wrote_are_any_change(changes):
    message = {"type": layer.TYPE, "from": "another", "changes": changes}

    assert decode(message) == {EVERYTHING}


def test_another_site_on_the_same_layer_has_a_group_of_its_own(settings):
    ours = layer.group()
    settings.SECRET_KEY = "that of another site"

    assert layer.group() != ours
    assert len(ours) < 100
    assert ours == ours.encode("ascii", "ignore").decode()


def test_a_message_stays_small_however_many_changes_there_are(fake, publisher):
    many = frozenset(Change(topic=f"django://objects/shop.order/{n}") for n in range(120))

    publisher(many)

    assert [len(message["changes"]) for message in fake.sent] == [50, 50, 20]
    assert max(len(msgspec.json.encode(message)) for message in fake.sent) < 8000
    assert frozenset().union(*(decode(from_another(one)) for one in fake.sent)) == many


def test_what_could_not_be_sent_is_made_up_for_by_the_next_batch(fake, publisher, caplog):
    one = Change(topic="django://objects/shop.order/1")
    fake.is_gone = True
    publisher(frozenset({one}))
    publisher(frozenset({one}))
    fake.is_gone = False

    publisher(frozenset({one}))
    publisher(frozenset({one}))

    first, second = fake.sent
    assert decode(from_another(first)) == {EVERYTHING, one}
    assert decode(from_another(second)) == {one}
    assert publisher.lost == 2
    assert [record.message for record in caplog.records] == [
        "Other processes cannot be told of changes: gone"
    ]


def test_a_layer_that_hangs_does_not_hold_up_the_next_change(fake, publisher, monkeypatch):
    async def hang(group, message):
        await asyncio.Event().wait()

    monkeypatch.setattr(layer, "PATIENCE", 0.01)
    monkeypatch.setattr(fake, "group_send", hang)

    publisher(CHANGES)

    assert publisher.lost == 1


@pytest.mark.asyncio
async def test_a_layer_that_comes_back_makes_everything_count_as_changed(
    fake, monkeypatch, caplog
):
    monkeypatch.setattr(layer, "PAUSE", 0.001)
    heard, lost = asyncio.Queue(), asyncio.Event()
    link = asyncio.create_task(Link(heard.put_nowait, lost=lost.set).run())
    one = frozenset({Change(topic="django://site")})
    fake.waiting.put_nowait(from_another(encode(one)))
    async with asyncio.timeout(PATIENCE):
        assert await heard.get() == one
        assert not lost.is_set()

        fake.waiting.put_nowait(ConnectionError("cut"))

        await lost.wait()
        fake.waiting.put_nowait(from_another(encode(one)))
        assert await heard.get() == one
    assert fake.added.qsize() == 2
    assert "Changes of other processes are not heard: cut" in caplog.text
    link.cancel()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("topic", "is_forgotten"),
    [
        ("tools", True),
        (control_topic("close", "server", "default"), True),
        ("django://site", False),
    ],
)
async def test_what_others_decided_counts_as_soon_as_it_is_heard(fake, topic, is_forgotten):
    heard, before = asyncio.Queue(), generations.own_changes()

    def take(changes):
        heard.put_nowait(generations.own_changes())

    link = asyncio.create_task(Link(take, lost=lambda: None).run())

    fake.waiting.put_nowait(from_another(encode([Change(topic=topic)])))

    async with asyncio.timeout(PATIENCE):
        assert (await heard.get() != before) is is_forgotten
    link.cancel()


@pytest.mark.asyncio
async def test_a_layer_that_forgot_this_process_is_reminded(fake, monkeypatch):
    monkeypatch.setattr(layer, "HEARTBEAT", 0.001)
    link = asyncio.create_task(Link(lambda changes: None, lost=lambda: None).run())

    async with asyncio.timeout(PATIENCE):
        added = [await fake.added.get() for _ in range(3)]

    assert set(added) == {"specific!1"}
    link.cancel()


@pytest.mark.asyncio
async def test_a_layer_that_is_gone_in_silence_is_noticed_by_the_next_reminder(fake, monkeypatch):
    monkeypatch.setattr(layer, "HEARTBEAT", 0.001)
    monkeypatch.setattr(layer, "PAUSE", 0.001)
    lost = asyncio.Event()
    link = asyncio.create_task(Link(lambda changes: None, lost=lost.set).run())
    async with asyncio.timeout(PATIENCE):
        await fake.added.get()

        fake.is_gone = True
        await fake.failed.wait()
        fake.is_gone = False

        await lost.wait()
    link.cancel()


@pytest.mark.asyncio
async def test_a_stream_that_opens_without_a_layer_is_told_of_everything_once_there_is_one(
    fake, monkeypatch
):
    monkeypatch.setattr(layer, "PATIENCE", 0.01)
    monkeypatch.setattr(layer, "PAUSE", 0.001)
    fake.is_gone = True
    lost = asyncio.Event()
    link = Link(lambda changes: None, lost=lost.set)
    running = asyncio.create_task(link.run())

    await link.ready()
    fake.is_gone = False

    async with asyncio.timeout(PATIENCE):
        await lost.wait()
    running.cancel()


@pytest.mark.asyncio
async def test_a_link_that_is_up_is_waited_for_no_longer(fake):
    lost = asyncio.Event()
    link = Link(lambda changes: None, lost=lost.set)
    running = asyncio.create_task(link.run())

    async with asyncio.timeout(PATIENCE):
        await link.ready()

    assert not lost.is_set()
    running.cancel()


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ({}, False),
        ({"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}, False),
        ({"other": {"BACKEND": CORE}}, False),
        ({"default": {"BACKEND": CORE}}, True),
    ],
)
def test_processes_are_linked_by_a_layer_that_leaves_the_process(settings, layers, expected):
    settings.CHANNEL_LAYERS = layers

    assert links_processes() is expected
    assert (layer.make_publisher() is not None) is expected
    warned = {one.id for one in run_checks(include_deployment_checks=True)}
    assert ("mcp_django.W002" in warned) is not expected
    assert "mcp_django.W002" not in {one.id for one in run_checks()}


# Real servers


class Reader:
    """A client of a real server, that reads a stream."""

    def __init__(self, port: int, **wishes: object) -> None:
        client = Client(revision=Revision.V2026_07_28)
        message = client.message("subscriptions/listen", {"notifications": wishes})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **client.routing_headers(message),
        }
        self.connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.connection.request("POST", "/mcp", msgspec.json.encode(message), headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200

    def message(self):
        while True:
            lines = []
            while line := self.response.readline().decode().rstrip("\n"):
                lines.append(line)
            if not lines:
                return None
            event = Event("\n".join(lines))
            if event.data:
                return event.message


@pytest.fixture
def listen():
    readers = []

    def listen(port, **wishes):
        readers.append(Reader(port, **wishes))
        return readers[-1]

    yield listen
    for reader in readers:
        reader.response.close()
        reader.connection.close()


@pytest.fixture
def start():
    with ExitStack() as running:
        yield lambda server, **environ: running.enter_context(live_server(server, **environ))


@pytest.mark.needs("daphne")
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_server_that_is_told_to_stop_ends_its_streams_in_good_order(start, listen, server):
    process, port = start(server)
    reader = listen(port, toolsListChanged=True)
    acknowledged = reader.message()

    process.send_signal(signal.SIGTERM)

    last = reader.message()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert last["result"]["resultType"] == "complete"
    subscription = "io.modelcontextprotocol/subscriptionId"
    assert last["result"]["_meta"][subscription] == last["id"]
    assert reader.message() is None
    process.wait(PATIENCE)


@requirement("subscriptions:processes")
@pytest.mark.needs("redis", "channels_redis", "daphne")
@pytest.mark.parametrize("backend", [CORE, PUBSUB])
def test_a_change_of_this_process_reaches_the_streams_of_two_others(
    start, listen, settings, publisher, backend
):
    prefix = f"test-{secrets.token_hex(8)}"
    environ = {"LIVE_LAYER": backend, "LIVE_PREFIX": prefix}
    ports = [start(server, **environ)[1] for server in ("daphne", "uvicorn")]
    readers = [listen(port, promptsListChanged=True) for port in ports]
    for reader in readers:
        reader.message()
    port = int(os.environ.get("MCP_TEST_REDIS_PORT", "6379"))
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": backend,
            "CONFIG": {"hosts": [("127.0.0.1", port)], "prefix": prefix},
        }
    }
    channel_layers.backends.pop("default", None)

    publisher(frozenset({list_changed("prompts")}))

    for reader in readers:
        assert reader.message()["method"] == "notifications/prompts/list_changed"

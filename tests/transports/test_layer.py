from __future__ import annotations

import asyncio
import gc
import subprocess
from contextlib import ExitStack

import msgspec
import pytest
import pytest_asyncio
from channels.layers import channel_layers
from django.core.checks import run_checks

from mcp_django.stores.cache_version import generations
from mcp_django.subscriptions.topics import EVERYTHING, Change, control_topic
from mcp_django.transports import layer
from mcp_django.transports.layer import Link, Publisher, decode, encode, links_processes
from tests.changed import list_changed
from tests.children import start
from tests.spec import requirement
from tests.transports.live_servers import Reader, Servers, free_port, wait_for
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.thorough


CORE = "channels_redis.core.RedisChannelLayer"
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
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
        self.hangs = False
        #: Takes what is sent, and hands nothing on.
        self.is_deaf = False
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
        if group == layer.group():
            self.added.put_nowait(channel)

    async def group_discard(self, group, channel):
        self.check()

    async def group_send(self, group, message):
        self.check()
        if self.hangs:
            await asyncio.Event().wait()
        if group == layer.group():
            self.sent.append(message)
        elif not self.is_deaf:
            self.waiting.put_nowait(message)

    async def receive(self, channel):
        message = await self.waiting.get()
        if isinstance(message, Exception):
            raise message
        return message


@pytest.fixture
def fake(monkeypatch):
    fake = Layer()
    monkeypatch.setattr(layer, "get_layer", lambda: fake)
    return fake


@pytest.fixture
def publisher():
    async def close_connections():
        if close := getattr(layer.get_layer(), "close_pools", None):
            await close()

    publisher = Publisher()
    yield publisher
    publisher._runner.run(close_connections())
    publisher._runner.close()


def from_another(message):
    return {**message, "from": "another process"}


@pytest.mark.parametrize(
    "changes",
    [
        None,
        "x",
        [1],
        [["a"]],
        [["a", None, None, False, False, "", "", "new"]],
        [[1, 2, 3, 4, 5, 6]],
    ],
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


def test_changes_go_through_messages_that_stay_small_however_many_there_are(fake, publisher):
    records = {Change(topic=f"django://objects/shop.order/{n}") for n in range(115)}

    publisher(CHANGES | records)

    messages = [msgspec.json.encode(message) for message in fake.sent]
    assert [len(message["changes"]) for message in fake.sent] == [50, 50, 20]
    assert max(map(len, messages)) < 8000
    strange = {"type": "chat.message", "from": "x", "text": "hello"}
    assert {decode(message) for message in (*fake.sent, strange)} == {frozenset()}
    heard = [decode(from_another(msgspec.json.decode(message))) for message in messages]
    assert frozenset().union(*heard) == CHANGES | records


@pytest.mark.parametrize(("trouble", "reason"), [("is_gone", "gone"), ("hangs", "")])
def test_what_could_not_be_sent_is_made_up_for_by_the_next_batch(
    fake, publisher, caplog, monkeypatch, trouble, reason
):
    monkeypatch.setattr(layer, "PAUSE", 3600)
    monkeypatch.setattr(layer, "PATIENCE", 0.01 if trouble == "hangs" else PATIENCE)
    change = Change(topic="django://objects/shop.order/1")
    setattr(fake, trouble, True)
    publisher(frozenset({change}))
    publisher(frozenset({change}))
    setattr(fake, trouble, False)
    monkeypatch.setattr(layer, "PATIENCE", PATIENCE)

    publisher(frozenset({change}))
    publisher(frozenset({change}))

    first, second = fake.sent
    assert decode(from_another(first)) == {EVERYTHING, change}
    assert decode(from_another(second)) == {change}
    assert [record.message for record in caplog.records] == [
        f"Other processes cannot be told of changes: {reason}"
    ]


def test_what_could_not_be_sent_is_made_up_for_without_another_batch(fake, publisher, monkeypatch):
    monkeypatch.setattr(layer, "PAUSE", 0.01)
    fake.is_gone = True
    publisher(CHANGES)
    fake.is_gone = False

    wait_until(lambda: fake.sent)

    assert decode(from_another(fake.sent[0])) == {EVERYTHING}


@pytest_asyncio.fixture
async def link(fake, monkeypatch):
    """A link that runs. It puts what it hears into a queue."""
    monkeypatch.setattr(layer, "PAUSE", 0.001)
    monkeypatch.setattr(layer, "HEARTBEAT", 0.001)
    heard, lost = asyncio.Queue(), asyncio.Event()
    link = Link(heard.put_nowait, lost=lost.set)
    link.heard, link.lost = heard, lost
    running = asyncio.create_task(link.run())
    async with asyncio.timeout(PATIENCE):
        yield link
    running.cancel()
    await asyncio.wait({running})


async def cut(fake):
    fake.waiting.put_nowait(ConnectionError("cut"))


async def go_away(fake):
    fake.is_gone = True
    await fake.failed.wait()
    fake.is_gone = False


async def hand_nothing_on(fake):
    """Until the link has joined anew."""
    layer.PATIENCE = 0.01
    fake.is_deaf = True
    while fake.added.qsize():
        await fake.added.get()
    await fake.added.get()
    fake.is_deaf = False


@pytest.mark.asyncio
@pytest.mark.parametrize("fail", [cut, go_away, hand_nothing_on])
async def test_a_layer_that_was_away_makes_everything_count_as_changed_once_it_is_back(
    fake, link, monkeypatch, caplog, fail
):
    monkeypatch.setattr(layer, "PATIENCE", layer.PATIENCE)
    change = Change(topic="django://site")
    await link.ready()
    assert not link.lost.is_set()

    await fail(fake)

    await link.lost.wait()
    fake.waiting.put_nowait(from_another(encode([change])))
    assert await link.heard.get() == {change}
    assert "Changes of other processes are not heard: " in caplog.text


@pytest.mark.asyncio
async def test_a_layer_that_forgot_this_process_is_reminded(fake, link):
    assert [await fake.added.get() for _ in range(3)] == ["specific!1"] * 3


@pytest.mark.asyncio
async def test_a_stream_that_opens_without_a_layer_is_told_of_everything_once_there_is_one(
    fake, monkeypatch
):
    monkeypatch.setattr(layer, "PATIENCE", 0.01)
    lost = asyncio.Event()
    link = Link(lambda changes: None, lost=lost.set)
    await link.ready()

    running = asyncio.create_task(link.run())

    async with asyncio.timeout(PATIENCE):
        await lost.wait()
    running.cancel()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("topic", "is_forgotten"),
    [
        ("tools", True),
        (control_topic("close", "server", "default"), True),
        ("django://site", False),
    ],
)
async def test_what_others_decided_counts_as_soon_as_it_is_heard(fake, link, topic, is_forgotten):
    before = generations.own

    fake.waiting.put_nowait(from_another(encode([Change(topic=topic)])))
    await link.heard.get()

    assert (generations.own != before) is is_forgotten


@pytest.mark.django_db
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
    warned = {check.id for check in run_checks(include_deployment_checks=True)}
    assert ("mcp_django.W002" in warned) is not expected
    assert "mcp_django.W002" not in {check.id for check in run_checks()}


# Real servers


class Redis:
    """A server of this test, which may be killed and started again."""

    def __init__(self, folder):
        self.port, self.folder = free_port(), folder
        self.start()

    def start(self):
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command = ["redis-server", *options, "--dir", str(self.folder)]
        self.process = start(command, stdout=subprocess.DEVNULL)
        wait_for(self.port)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = Redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def servers(redis):
    """Over this Redis, for all tests."""
    with Servers(LIVE_PREFIX="own", MCP_TEST_REDIS_PORT=str(redis.port)) as servers:
        yield servers


@pytest.fixture
def use_redis(redis, settings):
    """Have this process use it."""

    def use(backend):
        config = {"hosts": [("127.0.0.1", redis.port)], "prefix": "own"}
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": config}}
        channel_layers.backends.pop("default", None)

    yield use
    channel_layers.backends.pop("default", None)
    # What the layer left open is told of here, and not in a test that comes later.
    gc.collect()


@requirement("subscriptions:processes")
@pytest.mark.needs("redis", "channels_redis", "daphne")
# channels_redis drops the connections that Redis has closed, and does not close its own ends.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function StreamWriter:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("backend", [CORE, PUBSUB])
def test_a_change_reaches_two_other_processes_although_it_was_lost_with_redis(
    redis, servers, use_redis, publisher, monkeypatch, caplog, backend
):
    monkeypatch.setattr(layer, "PAUSE", 0.1)
    use_redis(backend)
    ports = [servers.start(name, LIVE_LAYER=backend)[1] for name in ("daphne", "uvicorn")]
    with ExitStack() as stack:
        readers = [stack.enter_context(Reader(port, promptsListChanged=True)) for port in ports]
        acknowledged = [reader.message()["method"] for reader in readers]
        redis.kill()

        publisher(frozenset({list_changed("prompts")}))
        redis.start()
        heard = [reader.message()["method"] for reader in readers]

    assert "Other processes cannot be told of changes" in caplog.text
    assert acknowledged == ["notifications/subscriptions/acknowledged"] * 2
    assert heard == ["notifications/prompts/list_changed"] * 2

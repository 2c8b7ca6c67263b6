from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from mcp_django.protocol.revisions import MODERN
from mcp_django.transports import shutdown
from mcp_django.transports.shutdown import Shutdown, prepare
from mcp_django.transports.streams import hub
from mcp_django.transports.streams.hub import get_hub
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection, speaking
from tests.waiting import PATIENCE


@pytest.fixture
def handlers():
    """Puts back what the process does when it is told to stop."""
    before = {number: signal.getsignal(number) for number in shutdown.SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def client(client):
    return speaking(client, MODERN[-1])


def listening(client):
    params = {"notifications": {"toolsListChanged": True}}
    return EventStream.asking(client, "subscriptions/listen", params)


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_streams_say_their_last_words_before_the_server_hears_of_the_signal(
    client, monkeypatch
):
    monkeypatch.setattr(shutdown, "FAREWELL", 0.05)
    heard = asyncio.Event()
    stream = await listening(client).opened()
    await stream.message()

    Shutdown(signal.SIGTERM, lambda number, frame: heard.set())(signal.SIGTERM, None)

    assert not heard.is_set()
    (last,) = await stream.rest()
    assert last["result"]["resultType"] == "complete"
    async with asyncio.timeout(PATIENCE):
        await heard.wait()


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_a_stream_that_the_server_cancels_says_its_last_words(client):
    """As Daphne does when it stops, and others after the time that they wait."""
    stream = await listening(client).opened()
    await stream.message()

    stream.task.cancel()

    (last,) = await stream.rest()
    assert last["result"]["resultType"] == "complete"


@pytest.mark.asyncio
@pytest.mark.django_db(transaction=True)
async def test_a_server_that_is_stopping_opens_no_stream(client):
    get_hub().close()

    refused = await Connection.asking(
        client, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    ).whole()

    assert refused.status == 503


def test_a_server_without_streams_hears_of_the_signal_at_once():
    heard = []

    Shutdown(signal.SIGTERM, lambda *args: heard.append(args))(signal.SIGTERM, None)

    assert heard == [(signal.SIGTERM, None)]


def test_a_signal_that_interrupts_the_handler_of_another_is_heard_too():
    heard = []

    def handle(*args):
        heard.append(args)
        Shutdown(signal.SIGINT, lambda *args: heard.append(args))(signal.SIGINT, None)

    def interrupted():
        # Where a signal may come in the middle: in the main thread, while it gets a hub.
        with hub._making:
            Shutdown(signal.SIGTERM, handle)(signal.SIGTERM, None)

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(PATIENCE)

    assert heard == [(signal.SIGTERM, None), (signal.SIGINT, None)]


def test_the_servers_own_handler_is_kept_behind_ours_once(handlers):
    def stop(number, frame):
        raise NotImplementedError

    signal.signal(signal.SIGTERM, stop)

    prepare()
    prepare()

    ours = signal.getsignal(signal.SIGTERM)
    assert isinstance(ours, Shutdown)
    assert ours.otherwise is stop


def test_what_python_does_not_handle_stays_as_it_is(handlers):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    prepare()

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_only_the_main_thread_can_prepare(handlers):
    signal.signal(signal.SIGTERM, print)
    thread = threading.Thread(target=prepare)
    thread.start()
    thread.join()

    assert signal.getsignal(signal.SIGTERM) is print

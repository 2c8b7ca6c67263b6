"""What streams hang on: the hub of a loop, its link, its tasks, and looks that fail."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async

from mcp_django.auth import PersonalTokens
from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken
from mcp_django.protocol.revisions import Revision
from mcp_django.stores.interface import chosen
from mcp_django.stores.memory import MemoryStore
from mcp_django.subscriptions.outbox import outbox
from mcp_django.subscriptions.topics import Change
from mcp_django.transports.streams import layer, notifier
from mcp_django.transports.streams.hub import RecentChanges, get_hub
from tests.transports.event_stream import (
    SlowStream,
    asking_to_listen,
    changed,
    looked,
    turn_the_wheel,
)
from tests.transports.streams.test_layer import CORE, Layer, from_another
from tests.transports.wire import Connection, hello, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def doubt(monkeypatch):
    """Who reads a stream is found out at each look."""
    monkeypatch.setattr(notifier, "BELIEVED", 0)


async def told(stream, number):
    return {(await stream.message())["method"].split("/")[1] for _ in range(number)}


# Looks that fail


class Slow(PersonalTokens):
    """Authenticates behind a gate, where there is one."""

    gate = None

    def authenticate(self, request):
        if Slow.gate is not None:
            Slow.gate.wait()
        return super().authenticate(request)


@pytest.mark.thorough
async def test_a_look_that_takes_too_long_is_given_up_and_made_up_for(
    client, uri, doubt, configure, gate, caplog, fresh_lanes, monkeypatch, listen
):
    configure(AUTHENTICATORS=[f"{__name__}.Slow"])
    stream = await listen(client, uri, toolsListChanged=True)
    with monkeypatch.context() as patched:
        patched.setattr(Slow, "gate", gate)
        configure(TOOL_TIMEOUT=0.05)
        cache.clear()
        changed(uri)
        await looked()
    assert "Whom to tell of changes cannot be found out." in caplog.text

    gate.open()
    configure(TOOL_TIMEOUT=60)
    await asyncio.to_thread(fresh_lanes.close)
    turn_the_wheel()

    assert await told(stream, 2) == {"resources", "tools"}


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
    monkeypatch.setattr(outbox, "_is_made", True)
    stream = await listen(client, uri, toolsListChanged=True)

    message = from_another(layer.encode([Change(topic=uri)]))
    fake.waiting.put_nowait(ConnectionError("cut") if is_lost else message)

    expected = {"resources", "tools"} if is_lost else {"resources"}
    assert await told(stream, len(expected)) == expected


# The hub itself


async def test_the_wheel_stands_still_when_the_last_stream_is_gone(client, uri, listen):
    stream = await listen(client, uri, toolsListChanged=True)
    turn_the_wheel(1)
    assert get_hub()._tick is not None

    await stream.left()
    turn_the_wheel(1)

    assert get_hub()._tick is None


async def test_what_fails_on_the_side_is_logged(caplog):
    async def fail():
        raise ValueError("by the way")

    get_hub().keep(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert "Something that streams need failed." in caplog.text


async def test_of_more_changes_than_are_kept_anything_may_have_changed(monkeypatch):
    monkeypatch.setattr("mcp_django.transports.streams.hub.MOST", 2)
    recent = RecentChanges()
    for number in range(3):
        recent.add(Change(topic=str(number)), at=number)

    assert [change.is_whole for change in recent.of("unknown", since=0)] == [True]
    assert list(recent.of("unknown", since=1)) == []


async def test_a_stream_that_is_ended_while_it_opens_has_its_last_words(client):
    stream = asking_to_listen(client, kind=SlowStream, toolsListChanged=True)
    stream.start()
    await stream.begins.wait()

    get_hub().close()
    stream.goes_on.set()
    await stream.next()

    first, last = await stream.rest()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert last["result"]["resultType"] == "complete"


# The store


async def test_a_stream_opens_though_the_store_cannot_show_it(
    client, uri, monkeypatch, caplog, listen
):
    def fail(stream):
        raise ConnectionError("gone")

    store = MemoryStore()
    monkeypatch.setattr(chosen, "_store", store)
    monkeypatch.setattr(store, "show_stream", fail)

    await listen(client, uri, toolsListChanged=True)

    assert "cannot be reached" in caplog.text


async def test_a_handshake_that_says_too_much_begins_nothing(client):
    client = speaking(client, Revision.V2025_11_25)
    params = hello(client.revision, "x" * 20_000)

    refused = await Connection.asking(client, "initialize", params).whole()

    assert refused.status == 400
    assert "mcp-session-id" not in refused.headers

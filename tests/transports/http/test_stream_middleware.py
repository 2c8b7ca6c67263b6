"""The project's middleware runs when a stream is opened, and round each look at its rights."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import sync_to_async

from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.protocol.revisions import MODERN
from mcp_django.subscriptions.outbox import outbox, publish
from mcp_django.subscriptions.topics import Change
from mcp_django.transports.streams.hub import get_hub
from tests.shop.models import Order
from tests.transports.event_stream import EventStream
from tests.transports.middlewares import seen
from tests.transports.wire import speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
HERE = "tests.transports.middlewares"


@pytest.fixture(autouse=True)
def forget():
    seen.clear()
    yield
    seen.clear()


@pytest.fixture
def client(client):
    return speaking(client, MODERN[-1])


@pytest.fixture
def uri():
    return f"django://objects/shop.order/{Order.objects.create(number='1').pk}"


@pytest.fixture
def run(settings):
    def run(name):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{HERE}.{name}"]

    return run


async def listening(client, uri, **headers):
    params = {"notifications": {"resourceSubscriptions": [uri], "toolsListChanged": True}}
    stream = await EventStream.asking(client, "subscriptions/listen", params, **headers).opened()
    await stream.message()
    return stream


@pytest.mark.thorough
async def test_rights_are_looked_at_within_the_tenant_of_the_stream(client, uri, run):
    run("Tenant")
    stream = await listening(client, uri, **{"X-Tenant": "north"})
    seen.clear()

    publish({Change(topic=uri)})

    assert (await stream.message())["params"]["uri"] == uri
    assert set(seen) == {"north"}
    await stream.left()


async def test_headers_of_middleware_are_those_of_the_stream(client, uri, run):
    run("Header")

    stream = await listening(client, uri)

    assert stream.headers["x-site"] == "shop"
    assert stream.headers["content-type"] == "text/event-stream"
    await stream.left()


@pytest.mark.thorough
async def test_who_is_refused_by_middleware_today_is_told_nothing_today(client, uri, run):
    run("Gatekeeper")
    stream = await listening(client, uri)
    seen.append("closed")
    publish({Change(topic="tools", server=DEFAULT_SERVER)})
    publish({Change(topic=uri)})
    await looked(stream)
    seen.remove("closed")

    publish({Change(topic=uri)})

    assert (await stream.message())["params"].get("uri", uri) == uri
    await stream.left()


async def looked(stream):
    """Until the hub has looked at what was published."""
    await sync_to_async(outbox.flush)()
    await asyncio.gather(*get_hub()._tasks)
    assert stream.outbox.empty()


@pytest.mark.parametrize("owner", ["staff", "eve"])
async def test_a_credential_that_is_not_good_or_not_theirs_any_more_ends_the_stream(
    client, uri, run, staff, make_user, owner
):
    run("Tenant")
    stream = await listening(client, uri, **{"X-Tenant": "north"})
    if owner == "staff":
        staff.is_active = False
        await staff.asave()
    else:
        eve = await sync_to_async(make_user)("eve", is_staff=True)
        await PersonalToken.objects.aupdate(user=eve)
        cache.clear()

    publish({Change(topic=uri)})

    assert [message.get("id") for message in await stream.rest()] == [1]

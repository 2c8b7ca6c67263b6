"""The project's middleware runs when a stream is opened, and round each look at its rights."""

from __future__ import annotations

import pytest

from mcp_django.principal import DEFAULT_SERVER
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import Change
from tests.transports.event_stream import changed, looked
from tests.transports.middlewares import seen

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]


async def test_headers_of_middleware_are_those_of_the_stream(client, uri, run, listen):
    run("Header")

    stream = await listen(client, uri, toolsListChanged=True)

    assert stream.headers["x-site"] == "shop"
    assert stream.headers["content-type"] == "text/event-stream"


@pytest.mark.thorough
async def test_who_is_refused_by_middleware_today_is_told_nothing_today(client, uri, run, listen):
    run("Gatekeeper")
    stream = await listen(client, uri, toolsListChanged=True)
    seen.append("closed")
    publish({Change(topic="tools", server=DEFAULT_SERVER)})
    changed(uri)
    await looked()
    assert stream.outbox.empty()
    seen.remove("closed")

    changed(uri)

    assert (await stream.message())["params"].get("uri", uri) == uri


async def test_rights_and_the_credential_are_looked_at_within_the_tenant_of_the_stream(
    client, uri, run, staff, listen
):
    run("Tenant")
    stream = await listen(client, uri, headers={"X-Tenant": "north"})
    seen.clear()

    changed(uri)
    heard = await stream.message()
    tenants = set(seen)
    staff.is_active = False
    await staff.asave()
    changed(uri)

    assert heard["params"]["uri"] == uri
    assert tenants == {"north"}
    assert [message.get("id") for message in await stream.rest()] == [1]

from __future__ import annotations

import msgspec
import pytest
from asgiref.sync import sync_to_async

import mcp_django as mcp
from mcp_django.protocol.revisions import Era, Revision
from mcp_django.subscriptions.events import Change
from mcp_django.subscriptions.outbox import publish
from tests.shop.models import Order
from tests.transports.event_stream import EventStream
from tests.transports.wire import Connection, speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
LEGACY = [one for one in Revision if one.era is Era.LEGACY]


async def begin(client, **capabilities):
    """The headers of a new session."""
    params = {
        "protocolVersion": client.revision.value,
        "capabilities": capabilities,
        "clientInfo": {"name": "x", "version": "1"},
    }
    call = await Connection.asking(client, "initialize", params).whole()
    session = {"Mcp-Session-Id": call.headers["mcp-session-id"]}
    await notify(client, session, "notifications/initialized")
    return session


@pytest.fixture(params=LEGACY[1:], ids=lambda one: one.value)
def client(client, request):
    return speaking(client, request.param)


async def notify(client, session, method, **params):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    headers = {"MCP-Protocol-Version": client.revision.value, **session}
    return await Connection(client, msgspec.json.encode(message), headers=headers).whole()


async def answer(client, session, request_id, **said):
    message = {"jsonrpc": "2.0", "id": request_id, **said}
    headers = {"MCP-Protocol-Version": client.revision.value, **session}
    return await Connection(client, msgspec.json.encode(message), headers=headers).whole()


async def test_a_session_goes_on_until_it_is_ended(client):
    session = await begin(client)

    during = await Connection.asking(client, "tools/list", **session).whole()
    ended = await Connection(client, b"", verb="DELETE", headers=session).whole()
    after = await Connection.asking(client, "tools/list", **session).whole()

    assert (during.status, ended.status, after.status) == (200, 204, 404)
    assert after.json["error"]["code"] == -32600


async def test_a_subscribed_client_hears_of_a_change(client):
    order = await sync_to_async(Order.objects.create)(number="1")
    uri = f"django://objects/shop.order/{order.pk}"
    session = await begin(client)
    subscribed = await Connection.asking(
        client, "resources/subscribe", {"uri": uri}, **session
    ).whole()
    assert subscribed.json["result"] == {}
    stream = await EventStream.get(client, **session).opened()
    await stream.frame()

    publish({Change(topic=uri)})

    event = await stream.event()
    assert event.message["method"] == "notifications/resources/updated"
    assert event.message["params"] == {"uri": uri}
    assert event.id
    await stream.left()


async def test_a_second_standalone_stream_is_refused(client):
    session = await begin(client)
    stream = await EventStream.get(client, **session).opened()

    second = await EventStream.get(client, **session).opened()

    assert second.status == 409
    await stream.left()


async def test_a_call_asks_on_its_own_stream_and_goes_on_with_the_answer(client, add_tool):
    if client.revision is Revision.V2025_03_26:
        pytest.skip("2025-03-26 has no elicitation.")
    from django import forms

    class Name(forms.Form):
        name = forms.CharField()

    def greet(ctx: mcp.Context) -> str:
        """Greet somebody by name."""
        return f"Hello {ctx.ask('who', Name, 'Who are you?')['name']}"

    add_tool(greet, asks=True)
    session = await begin(client, elicitation={})
    call = EventStream.asking(client, "tools/call", {"name": "greet", "arguments": {}}, **session)
    await call.opened()

    question = await call.message()
    answered = await answer(
        client, session, question["id"], result={"action": "accept", "content": {"name": "Ada"}}
    )

    assert question["method"] == "elicitation/create"
    assert answered.status == 202
    result = (await call.message())["result"]
    assert result["content"][0]["text"] == "Hello Ada"
    await call.end()


async def test_a_lost_stream_goes_on_where_it_was_lost(client, add_tool, gate):
    def work(ctx: mcp.Context) -> str:
        """Report twice."""
        ctx.progress(1)
        gate.wait()
        ctx.progress(2)
        return "done"

    add_tool(work)
    session = await begin(client)
    params = {"name": "work", "arguments": {}, "_meta": {"progressToken": "t"}}
    call = await EventStream.asking(client, "tools/call", params, **session).opened()
    event = await call.event()
    while not event.data:
        event = await call.event()
    await call.left()
    gate.open()

    again = await EventStream.get(client, **session, **{"Last-Event-ID": event.id}).opened()

    assert again.status == 200
    found = await again.rest()
    assert [one["params"]["progress"] for one in found[:-1]] == [2]
    assert found[-1]["result"]["content"][0]["text"] == "done"


async def test_a_call_that_the_client_takes_back_gets_no_answer(client, add_tool, gate):
    stopped = []

    def work(ctx: mcp.Context) -> str:
        """Wait until nobody waits any more."""
        gate.wait()
        stopped.append(ctx.cancelled.is_set())
        return "done"

    add_tool(work)
    session = await begin(client)
    call = EventStream.asking(client, "tools/call", {"name": "work", "arguments": {}}, **session)
    call.start()
    await gate.until_reached()
    request_id = msgspec.json.decode(await call_body(call))["id"]

    await notify(client, session, "notifications/cancelled", requestId=request_id)
    await call.end()
    gate.open()

    assert call.status == 200
    assert call.body == b": open\n\n"


async def call_body(call):
    return call.chunks[0]

from __future__ import annotations

import pytest

from mcp_django.protocol.revisions import MODERN
from mcp_django.subscriptions.events import list_changed
from mcp_django.subscriptions.outbox import publish
from mcp_django.transports.hub import get_hub
from tests.transports.event_stream import EventStream
from tests.transports.wire import speaking

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture
def client(client):
    return speaking(client, MODERN[-1])


def listening(client, **wishes):
    return EventStream.asking(client, "subscriptions/listen", {"notifications": wishes})


async def test_the_acknowledgment_comes_first_and_names_what_is_honoured(client):
    stream = await listening(client, toolsListChanged=True).opened()

    first = await stream.message()

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert first["params"]["_meta"][SUBSCRIPTION] == 1
    await stream.left()


async def test_a_change_of_a_list_reaches_who_asked_for_that_list(client):
    tools = await listening(client, toolsListChanged=True).opened()
    prompts = await listening(client, promptsListChanged=True).opened()
    await tools.message()
    await prompts.message()

    publish({list_changed("tools")})

    assert await prompts.is_silent_until(tools)
    await tools.left()
    await prompts.left()
    assert not get_hub().streams

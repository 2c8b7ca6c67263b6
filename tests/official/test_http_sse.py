"""The official client over HTTP+SSE."""

from __future__ import annotations

import asyncio

import pytest
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ResourceUpdatedNotification

from tests.official.test_questions import SEAT, Person
from tests.official.test_tools import FLIGHT

pytestmark = pytest.mark.asyncio
FLIGHTS = "django://objects/flights.flight"


@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_the_client_lists_and_calls(desk, request, server, era):
    if server != "daphne":
        request.getfixturevalue(server)

    async with desk.connect("dispatcher", era, server=server, transport="http_sse") as assistant:
        client = assistant.client
        tools = (await client.list_tools()).tools
        flights = await assistant.call("find_records", model="flights.flight", limit=3)

        assert client.protocol_version == "2025-11-25"
        assert {"find_records", "report_delay"} <= {tool.name for tool in tools}
        assert len(flights["records"]) == 3


async def test_a_subscribed_client_hears_of_what_a_call_changed(desk):
    told = asyncio.Queue()

    async def hear(message):
        if isinstance(message, ResourceUpdatedNotification):
            await told.put(str(message.params.uri))

    async with desk.connect(
        "dispatcher", "legacy", transport="http_sse", message_handler=hear
    ) as assistant:
        # The client warns that the newest revision has no such thing.
        with pytest.warns(MCPDeprecationWarning):
            await assistant.client.subscribe_resource(FLIGHTS)

        for minutes in (35, 0):
            await assistant.client.call_tool("report_delay", {**FLIGHT, "minutes": minutes})

        assert await told.get() == FLIGHTS


async def test_the_client_is_asked_on_the_stream(desk):
    person = Person(SEAT)

    async with desk.connect(
        "traveller", "legacy", transport="http_sse", elicitation_callback=person.fill_in
    ) as assistant:
        result = await assistant.client.call_tool("choose_seat", {})

    assert not result.is_error

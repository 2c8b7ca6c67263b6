"""The same desk behind other servers: uvicorn, and WSGI, which has JSON only."""

from __future__ import annotations

import pytest
from mcp.types import InitializeRequest, InitializeRequestParams, InitializeResult

from tests.official.desk import NEWEST

LONG = {"since": "2026-11-14", "until": "2026-11-21"}
OLD = ["2024-11-05", "2025-03-26", "2025-06-18"]


@pytest.mark.asyncio
async def test_each_server_serves_pages_files_and_tools_and_wsgi_no_progress(desk, server, era):
    heard = []

    async def listen(progress, total, message):
        heard.append(progress)

    async with desk.connect("dispatcher", era, server=server) as assistant:
        client = assistant.client
        assert client.protocol_version == NEWEST[era]
        counts = await assistant.models()
        countries = await assistant.find("flights.country", limit=100)
        answer = await assistant.call("distance", origin="FRA", destination="MUC")
        uri = "django://files/flights.incident/7/report"
        (report,) = (await client.read_resource(uri)).contents
        checked = await client.call_tool("check_schedule", LONG, progress_callback=listen)

    assert counts["flights.country"] == len(countries) == 250
    assert answer["kilometres"] > 0
    assert "Incident 7" in report.text
    assert checked.structured_content["flights"] > 1000
    assert heard == sorted(set(heard))
    assert heard[-1:] == ([] if server == "wsgi" else [8])


@pytest.mark.asyncio
@pytest.mark.parametrize("revision", OLD)
async def test_the_official_client_may_speak_an_older_revision(desk, revision):
    """It offers its newest one only, so the greeting is repeated in the older one."""
    async with desk.connect("analyst", "legacy") as assistant:
        session = assistant.client.session
        params = InitializeRequestParams(
            protocol_version=revision,
            capabilities={},
            client_info={"name": "official", "version": "1"},
        )
        hello = await session.send_request(InitializeRequest(params=params), InitializeResult)
        session.adopt(hello)
        tools = (await assistant.client.list_tools()).tools
        result = await assistant.client.call_tool("list_models", {})
        there_and_back = {"origin": "FRA", "destination": "JFK"}
        distance = await assistant.client.call_tool("distance", there_and_back)

    assert hello.protocol_version == revision
    assert len(tools) >= 9
    assert "flights.airport" in result.content[0].text
    has_structured = revision >= "2025-06-18"
    assert (distance.structured_content is not None) is has_structured

from __future__ import annotations

import re

import pytest
from mcp import MCPError

from tests.official.desk import NEWEST

pytestmark = pytest.mark.asyncio
PLACES = {f"flights.{name}" for name in ("aircraft", "airline", "airport", "country", "flight")}
READS = {
    *("aggregate_records", "describe_model", "find_records", "get_history", "get_record"),
    *("list_models", "list_resources", "read_resource"),
    *("check_schedule", "distance", "on_time_performance"),
}


async def test_the_server_says_who_it_is_and_how_to_begin(desk, user, era):
    async with desk.connect(user, era) as assistant:
        client = assistant.client

        assert client.protocol_version == NEWEST[era]
        assert (client.server_info.name, client.server_info.version) == ("Flight desk", "1.0")
        assert "2026-11-18 12:00 UTC" in client.instructions
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.resources is not None


async def test_a_client_that_knows_the_modern_era_needs_no_greeting(desk):
    async with desk.connect("analyst", "pinned") as assistant:
        counts = await assistant.models()

        assert counts.keys() == PLACES
        assert assistant.client.protocol_version == NEWEST["modern"]
        assert assistant.client.session.discover_result.capabilities.tools is None


async def test_tools_have_names_that_every_client_takes(desk, user, era):
    async with desk.connect(user, era) as assistant:
        tools = (await assistant.client.list_tools()).tools

    names = [tool.name for tool in tools]
    assert set(names) >= READS
    assert ("report_delay" in names) is (user in ("admin", "dispatcher"))
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z](_?[a-z0-9]){0,39}", name) for name in names)
    assert all(tool.description and tool.annotations for tool in tools)


async def test_each_model_is_two_resources_and_every_listed_one_can_be_read(desk, era):
    async with desk.connect("analyst", era) as assistant:
        listed = [str(one.uri) for one in (await assistant.client.list_resources()).resources]
        templates = (await assistant.client.list_resource_templates()).resource_templates
        assert all([await assistant.read(uri) for uri in listed])
        timetable = await assistant.client.read_resource("flightdesk://timetable/2026-11-02")

    models = {f"django://{kind}/{model}" for kind in ("models", "objects") for model in PLACES}
    assert set(listed) == {"django://site", *models}
    kinds = {one.uri_template.split("://")[1].split("/")[0] for one in templates}
    assert kinds == {"models", "objects", "timetable"}
    (contents,) = timetable.contents
    assert contents.mime_type == "text/csv"
    assert contents.text.startswith("flight,from,to")


async def test_a_record_links_to_its_file_and_the_link_is_read(desk, era):
    call = {"model": "flights.incident", "pk": 7}

    async with desk.connect("admin", era) as assistant:
        _, link = (await assistant.client.call_tool("get_record", call)).content
        (contents,) = (await assistant.client.read_resource(str(link.uri))).contents

    assert str(link.uri) == "django://files/flights.incident/7/report"
    assert link.size == len(contents.text.encode())
    assert link.mime_type == contents.mime_type == "text/plain"


async def test_a_uri_of_nothing_is_not_found(desk, era):
    async with desk.connect("admin", era) as assistant:
        with pytest.raises(MCPError) as caught:
            await assistant.client.read_resource("django://objects/flights.flight/none")

    assert caught.value.message == "Resource not found."
    assert caught.value.code == (-32602 if era == "modern" else -32002)

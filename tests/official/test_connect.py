from __future__ import annotations

import re

import pytest

from tests.official.desk import NEWEST

PLACES = {"flights.airline", "flights.airport", "flights.country", "flights.flight"}
EVERYTHING = PLACES | {"flights.booking", "flights.incident", "flights.passenger"}
SEES = {
    "admin": EVERYTHING,
    "dispatcher": EVERYTHING,
    "analyst": PLACES,
    "manager": PLACES | {"flights.incident"},
}
READS = {
    "aggregate_records",
    "check_schedule",
    "describe_model",
    "distance",
    "find_records",
    "get_history",
    "get_record",
    "list_models",
    "list_resources",
    "on_time_performance",
    "read_resource",
}


@pytest.mark.asyncio
async def test_the_server_says_who_it_is_and_how_to_begin(desk, user, era):
    async with desk.connect(user, era) as assistant:
        client = assistant.client

        assert client.protocol_version == NEWEST[era]
        assert (client.server_info.name, client.server_info.version) == ("Flight desk", "1.0")
        assert "2026-11-18 12:00 UTC" in client.instructions
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.resources is not None


@pytest.mark.asyncio
async def test_a_client_that_knows_the_modern_era_needs_no_greeting(desk, user):
    async with desk.connect(user, "pinned") as assistant:
        counts = await assistant.models()

        assert counts.keys() == SEES[user]
        assert assistant.client.protocol_version == NEWEST["modern"]
        assert assistant.client.session.discover_result.capabilities.tools is None


@pytest.mark.asyncio
async def test_each_user_is_offered_their_tools_under_names_that_every_client_takes(
    desk, user, era
):
    async with desk.connect(user, era) as assistant:
        tools = (await assistant.client.list_tools()).tools

    names = [tool.name for tool in tools]
    writes = {"report_delay"} if user in ("admin", "dispatcher") else set()
    assert set(names) >= READS | writes
    assert "report_delay" not in set(names) - writes
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) for name in names)
    assert not any("__" in name for name in names)
    assert all(tool.description and tool.annotations for tool in tools)


@pytest.mark.asyncio
async def test_each_model_of_a_user_is_two_resources_and_nothing_else_is(desk, user, era):
    async with desk.connect(user, era) as assistant:
        resources = (await assistant.client.list_resources()).resources
        templates = (await assistant.client.list_resource_templates()).resource_templates

    expected = {"django://site"}
    for model in SEES[user]:
        expected |= {f"django://models/{model}", f"django://objects/{model}"}
    assert {str(one.uri) for one in resources} == expected
    uris = [one.uri_template.split("://")[1] for one in templates]
    kinds = {uri.split("/")[0] for uri in uris}
    has_files = "flights.incident" in SEES[user]
    assert kinds == {"models", "objects", "timetable"} | ({"files"} if has_files else set())


@pytest.mark.asyncio
async def test_each_user_sees_their_models_with_the_counts_of_the_admin(desk, user, era):
    async with desk.connect(user, era) as assistant:
        counts = await assistant.models()

    assert counts.keys() == SEES[user]
    assert counts == desk.ask("rows_of", user)


@pytest.mark.asyncio
async def test_the_example_in_a_description_is_a_call_that_works(desk, user, era):
    async with desk.connect(user, era) as assistant:
        for model in SEES[user]:
            described = await assistant.call("describe_model", model=model)
            example = described["example"]
            await assistant.call(example["tool"], **example["arguments"])
            page = await assistant.call("find_records", model=model, limit=1)

            assert described["name"] == model
            assert {field["name"] for field in described["fields"]} == set(page["records"][0])

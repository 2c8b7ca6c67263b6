from __future__ import annotations

import asyncio
import json

import pytest

pytestmark = pytest.mark.asyncio
WEEK = {"since": "2026-11-02", "until": "2026-11-08"}
FLIGHT = {"flight": "RF100", "day": "2026-11-19"}


async def test_a_tool_answers_with_what_its_output_schema_promises(desk, user, era):
    async with desk.connect(user, era) as assistant:
        # The client holds structured content against the schema that it was told.
        tools = {tool.name: tool for tool in (await assistant.client.list_tools()).tools}
        report = await assistant.call("on_time_performance", **WEEK)

    assert tools["on_time_performance"].output_schema["type"] == "object"
    assert report["since"] == WEEK["since"]
    assert all(0 <= one["on_time_percent"] <= 100 for one in report["airlines"])
    percents = [one["on_time_percent"] for one in report["airlines"]]
    assert percents == sorted(percents, reverse=True) != []


async def test_many_async_and_sync_calls_at_once_get_each_their_own_answer(desk, user, era):
    codes = ["MUC", "TXL", "BER", "HAM", "DUS", "CGN", "STR", "FRA"]

    async with desk.connect(user, era) as assistant:
        calls = [
            assistant.client.call_tool("distance", {"origin": "FRA", "destination": code})
            for code in codes
        ] + [
            assistant.client.call_tool("get_record", {"model": "flights.country", "pk": pk})
            for pk in range(1, 9)
        ]
        answers = await asyncio.gather(*calls)

    for code, answer in zip(codes, answers, strict=False):
        assert code in answer.content[0].text
    for pk, answer in zip(range(1, 9), answers[len(codes) :], strict=True):
        assert answer.is_error or json.loads(answer.content[0].text)["id"] == pk


@pytest.mark.parametrize("name", ["admin", "dispatcher"])
async def test_a_tool_that_writes_changes_what_its_caller_may_change(desk, era, name):
    before = desk.ask("state_of", *FLIGHT.values())

    async with desk.connect(name, era) as assistant:
        (late,) = (
            await assistant.client.call_tool("report_delay", {**FLIGHT, "minutes": 35})
        ).content
        delayed = desk.ask("state_of", *FLIGHT.values())
        await assistant.client.call_tool("report_delay", {**FLIGHT, "minutes": 0})

    assert late.text == "RF100 of 2026-11-19 now leaves at 14:30 UTC."
    assert delayed == ["delayed", 35]
    assert desk.ask("state_of", *FLIGHT.values()) == before == ["scheduled", 0]

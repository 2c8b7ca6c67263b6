from __future__ import annotations

import asyncio
import json

import pytest
from mcp import MCPError

WEEK = {"since": "2026-11-02", "until": "2026-11-08"}
LONG = {"since": "2026-11-14", "until": "2026-11-21"}
FLIGHT = {"flight": "RF100", "day": "2026-11-19"}


@pytest.mark.asyncio
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


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["admin", "dispatcher", "analyst"])
async def test_an_async_tool_answers(desk, era, name):
    async with desk.connect(name, era) as assistant:
        answer = await assistant.call("distance", origin="fra", destination="JFK")

    assert answer["kilometres"] == pytest.approx(6188, abs=20)
    assert answer["destination"].startswith("JFK ")


@pytest.mark.asyncio
async def test_an_async_tool_knows_no_airport_that_its_caller_does_not_see(desk, era):
    async with desk.connect("manager", era) as assistant:
        near = await assistant.call("distance", origin="FRA", destination="MUC")
        refused = await assistant.refusal("distance", origin="FRA", destination="JFK")
        unknown = await assistant.refusal("distance", origin="FRA", destination="QQQ")

    assert near["kilometres"] > 0
    assert refused.replace("JFK", "QQQ") == unknown


@pytest.mark.asyncio
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


@pytest.mark.asyncio
async def test_progress_of_a_long_tool_reaches_the_client_in_rising_order(desk, user, era):
    heard = []

    async def listen(progress, total, message):
        heard.append((progress, total, message))

    async with desk.connect(user, era) as assistant:
        result = await assistant.client.call_tool("check_schedule", LONG, progress_callback=listen)

    steps = [progress for progress, _, _ in heard]
    assert not result.is_error
    assert steps == sorted(set(steps))
    assert heard[-1] == (8, 8, "21 November")
    assert all(total == 8 for _, total, _ in heard)


@pytest.mark.asyncio
async def test_without_a_listener_a_long_tool_answers_all_the_same(desk, user, era):
    async with desk.connect(user, era) as assistant:
        report = await assistant.call("check_schedule", since="2026-11-18", until="2026-11-19")

    assert report["flights"] > 0
    assert report["conflict_count"] >= len(report["conflicts"])


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["admin", "dispatcher"])
async def test_a_tool_that_writes_changes_what_its_caller_may_change(desk, era, name):
    before = desk.orm.ask("state_of", *FLIGHT.values())

    async with desk.connect(name, era) as assistant:
        (late,) = (
            await assistant.client.call_tool("report_delay", {**FLIGHT, "minutes": 35})
        ).content
        delayed = desk.orm.ask("state_of", *FLIGHT.values())
        await assistant.client.call_tool("report_delay", {**FLIGHT, "minutes": 0})

    assert late.text == "RF100 of 2026-11-19 now leaves at 14:30 UTC."
    assert delayed == ["delayed", 35]
    assert desk.orm.ask("state_of", *FLIGHT.values()) == before == ["scheduled", 0]


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["analyst", "manager", "read-only admin"])
async def test_a_tool_that_writes_does_not_exist_without_the_right(desk, era, name):
    before = desk.orm.ask("state_of", *FLIGHT.values())

    async with desk.connect(name, era) as assistant:
        with pytest.raises(MCPError) as caught:
            await assistant.client.call_tool("report_delay", {**FLIGHT, "minutes": 35})

    assert caught.value.message == "Unknown tool: report_delay"
    assert desk.orm.ask("state_of", *FLIGHT.values()) == before


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"day": "2026-11-03"}, "RF100 of 2026-11-03 is landed and cannot be delayed any more."),
        ({"minutes": 5000}, "Give minutes from 0 to 1440; beyond that, cancel the flight."),
        ({"flight": "XX1"}, "No flight 'XX1' leaves on 2026-11-19."),
    ],
)
async def test_a_refusal_of_a_tool_is_a_sentence_that_says_what_to_do(
    desk, era, arguments, sentence
):
    async with desk.connect("dispatcher", era) as assistant:
        refused = await assistant.refusal("report_delay", **{**FLIGHT, "minutes": 5, **arguments})

    assert refused.startswith(sentence)
    assert "Traceback" not in refused

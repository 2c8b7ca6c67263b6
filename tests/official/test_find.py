"""What the tools find is what the ORM finds."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

from tests.official.questions import QUESTIONS

OF_PEOPLE = ("flights.booking", "flights.passenger", "flights.incident")
ASKED = [
    pytest.param(user, name, id=f"{user}-{name.replace(' ', '_')}")
    for name, question in QUESTIONS.items()
    for user in ("admin", "dispatcher", "analyst")
    if user != "analyst" or question.model not in OF_PEOPLE
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("user", "name"), ASKED)
async def test_the_tool_and_the_orm_answer_with_the_same_records_in_the_same_order(
    desk, era, user, name
):
    question = QUESTIONS[name]
    expected = desk.orm.ask("answer_to", name)

    async with desk.connect(user, era) as assistant:
        found = await assistant.find(question.model, **question.asked, limit=25)

    assert expected, "A question without an answer shows nothing."
    assert [record["id"] for record in found] == expected


@pytest.mark.asyncio
async def test_values_of_a_flight_are_those_of_the_database(desk, era):
    row = desk.orm.ask("record", "flights.flight", 4251)

    async with desk.connect("analyst", era) as assistant:
        record = await assistant.call("get_record", model="flights.flight", pk=4251)

    for name in ("id", "number", "delay_minutes", "gate", "aircraft"):
        assert record[name] == row[name]
    for name in ("airline", "origin", "destination"):
        assert record[name]["pk"] == row[f"{name}_id"]
    for name in ("scheduled_departure", "scheduled_arrival"):
        assert datetime.fromisoformat(record[name]) == datetime.fromisoformat(row[name])


@pytest.mark.asyncio
async def test_prices_are_exact(desk, era):
    row = desk.orm.ask("record", "flights.booking", 123)

    async with desk.connect("dispatcher", era) as assistant:
        record = await assistant.call("get_record", model="flights.booking", pk=123)

    assert record["price"] == str(Decimal(row["price"]))


@pytest.mark.asyncio
async def test_only_the_named_fields_are_shown(desk, era):
    async with desk.connect("analyst", era) as assistant:
        page = await assistant.call(
            "find_records",
            model="flights.airport",
            fields=["icao", "country"],
            filters={"iata": "FRA"},
        )

    (record,) = page["records"]
    assert record.keys() == {"icao", "country"}
    assert page["labels"]["flights.country"][str(record["country"])] == "Germany"
    assert "next" not in page


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"filters": {"staus": "landed"}}, "status"),
        ({"filters": {"status": "Landed"}}, "landed"),
        ({"filters": {"status__regex": "l.*"}}, "startswith"),
        ({"filters": {"scheduled_departure__gte": "tomorrow"}}, "2026-01-31T12:00:00+00:00"),
        ({"filters": {"delay_minutes__gt": "long"}}, "whole number"),
        ({"order_by": ["-delay"]}, "delay_minutes"),
        ({"fields": ["departure"]}, "scheduled_departure"),
        ({"limit": 0}, "200"),
        ({"cursor": "next"}, "without a cursor"),
    ],
)
async def test_a_question_that_cannot_be_answered_is_told_what_could(desk, era, arguments, part):
    async with desk.connect("analyst", era) as assistant:
        refused = await assistant.refusal("find_records", model="flights.flight", **arguments)

    assert part in refused
    assert "\n" not in refused

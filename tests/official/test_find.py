"""What the tools find is what the ORM finds."""

from __future__ import annotations

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
    expected = desk.ask("answer_to", name)

    async with desk.connect(user, era) as assistant:
        found = await assistant.find(question.model, **question.asked, limit=25)

    assert expected, "A question without an answer shows nothing."
    assert [record["id"] for record in found] == expected

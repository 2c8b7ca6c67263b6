from __future__ import annotations

import pytest
from mcp import MCPError
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

pytestmark = pytest.mark.asyncio
SEAT = {"seat": "12A", "meal": "vegan", "window": True, "bags": ["s"]}


class Person:
    """Answers questions one after the other, and keeps what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def fill_in(self, context, params):
        self.asked.append(params)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            return ElicitResult(action=answer)
        return ElicitResult(action="accept", content=answer)

    async def write(self, context, params):
        self.asked.append(params)
        text = TextContent(type="text", text="Greetings!")
        return CreateMessageResult(role="assistant", content=text, model="m")

    async def list_roots(self, context):
        return ListRootsResult(roots=[Root(uri="file:///postcards")])

    @property
    def everything(self):
        return {
            "elicitation_callback": self.fill_in,
            "sampling_callback": self.write,
            "list_roots_callback": self.list_roots,
        }


async def test_the_client_asks_its_person_and_calls_again(desk, server):
    person = Person({**SEAT, "seat": "window"}, SEAT)

    async with desk.connect(
        "traveller", "modern", server=server, elicitation_callback=person.fill_in
    ) as assistant:
        answer = await assistant.call("choose_seat")

    first, second = person.asked
    assert answer == {"seat": "12A", "meal": "vegan", "window": "True", "bags": "['s']"}
    assert first.message == "Where would you like to sit?"
    assert second.message.startswith("Where would you like to sit?\n\nSeat: Enter a valid value")
    properties = first.requested_schema["properties"]
    assert properties["meal"]["default"] == "none"
    assert properties["seat"]["title"] == "Seat"


async def test_three_kinds_of_questions_are_answered_at_once(desk):
    person = Person(SEAT)

    async with desk.connect("traveller", "modern", **person.everything) as assistant:
        answer = await assistant.call("write_postcard")

    assert answer == {"seat": "12A", "text": "Greetings!", "folder": "file:///postcards"}
    assert len(person.asked) == 2


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_client_without_a_person_is_told_what_is_missing(desk, era):
    async with desk.connect("traveller", era) as assistant:
        if era == "legacy":
            refusal = await assistant.refusal("choose_seat")
            assert "it did not declare in its handshake that it answers elicitation" in refusal
            return
        with pytest.raises(MCPError) as refused:
            await assistant.client.call_tool("choose_seat", {})

    assert refused.value.error.code == -32021
    assert refused.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_without_a_person_a_token_confirms_once(desk, era):
    async with desk.connect("traveller", era) as assistant:
        shown = await assistant.call("close_desk")
        token = shown["confirmation"]
        closed = await assistant.call("close_desk", confirmation=token)
        again = await assistant.refusal("close_desk", confirmation=token)
        forged = await assistant.refusal("close_desk", confirmation="yes")

    assert shown["question"] == "Close the desk for good?"
    assert closed == {"closed": True}
    assert again.startswith("This confirmation was used already.")
    assert forged.startswith("This confirmation is not valid.")

"""Tools that staff want to be confirmed: nothing runs before a person saw what would be."""

from __future__ import annotations

import re

import pytest

import mcp_django as mcp
from mcp_django.models import ExposedModel, ExposedTool, SpentConfirmation
from mcp_django.testing import CANCEL, DECLINE, Client, ProtocolFailure
from tests.clients import CheckedClient
from tests.shop.models import Customer

pytestmark = pytest.mark.django_db


def guard(name):
    return ExposedTool.objects.create(name=name, needs_confirmation=True)


def token_in(result):
    (found,) = re.findall(r'"confirmation": "([^"]+)"', result.text)
    return found


@pytest.fixture
def notes(add_tool):
    """What the tool `note` was really called with."""
    written = []

    def note(text: str) -> str:
        """Write it down."""
        written.append(text)
        return "Written."

    add_tool(note, read_only=False)
    return written


def test_without_a_confirmation_the_call_is_shown_and_not_done(client, notes):
    guard("note")

    asked = client.call_tool("note", text="Hello <b>")

    assert asked.is_error
    assert '"text": "Hello <b>"' in asked.text
    assert "nothing was done yet" in asked.text
    assert notes == []


def test_with_the_confirmation_it_is_done_once(client, notes):
    guard("note")
    token = token_in(client.call_tool("note", text="a"))

    first = client.call_tool("note", text="a", confirmation=token)
    second = client.call_tool("note", text="a", confirmation=token)

    assert first.text == "Written."
    assert "used already" in second.text
    assert notes == ["a"]


@pytest.mark.parametrize("forged", [True, "yes", "", None, 1, ["x"], {"a": 1}, "x" * 5000])
def test_nothing_else_is_a_confirmation(client, notes, forged):
    guard("note")

    assert client.call_tool("note", text="a", confirmation=forged).is_error
    assert notes == []


def test_a_confirmation_is_for_the_call_that_was_shown(client, notes):
    guard("note")
    token = token_in(client.call_tool("note", text="a"))

    assert "another call" in client.call_tool("note", text="b", confirmation=token).text
    assert notes == []


def test_a_confirmation_is_for_one_tool(client, notes, add_tool):
    def also(text: str) -> str:
        """Do it as well."""
        return text

    add_tool(also, read_only=False)
    guard("note")
    guard("also")
    token = token_in(client.call_tool("also", text="a"))

    assert client.call_tool("note", text="a", confirmation=token).is_error
    assert notes == []


def test_a_confirmation_is_for_one_person(client, make_user, notes):
    guard("note")
    other = CheckedClient(user=make_user("other", is_staff=True))
    token = token_in(other.call_tool("note", text="a"))

    assert "not valid" in client.call_tool("note", text="a", confirmation=token).text
    assert notes == []


def test_the_definition_says_how(client, notes):
    before = next(one for one in client.list_tools() if one["name"] == "note")
    guard("note")

    after = next(one for one in client.list_tools() if one["name"] == "note")

    assert set(after["inputSchema"]["properties"]) == {"text", "confirmation"}
    assert after["inputSchema"]["required"] == before["inputSchema"]["required"] == ["text"]


def test_what_was_confirmed_may_be_asked_again_for_another_call(client, notes):
    guard("note")

    for _ in range(2):
        client.call_tool(
            "note", text="a", confirmation=token_in(client.call_tool("note", text="a"))
        )

    assert notes == ["a", "a"]
    assert SpentConfirmation.objects.count() == 2


def test_generic_tools_and_coroutines_can_be_guarded_too(client):
    Customer.objects.create(name="Ann")
    for name in ("find_records", "echo_later"):
        guard(name)

    for name, arguments in (
        ("find_records", {"model": "shop.customer"}),
        ("echo_later", {"text": "x"}),
    ):
        asked = client.call_tool(name, **arguments)
        done = client.call_tool(name, **arguments, confirmation=token_in(asked))
        assert asked.is_error
        assert not done.is_error


def test_what_asks_for_itself_is_not_asked_twice(make_user):
    boss = Client(user=make_user("boss", is_staff=True, is_superuser=True))
    customer = Customer.objects.create(name="Ann")
    ExposedTool.objects.create(name="delete_record", needs_confirmation=True)

    ExposedModel.objects.create(label="shop.customer", level=5)

    shown = boss.call_tool("delete_record", model="shop.customer", pk=customer.pk)
    token = shown.structured["confirmation"]
    boss.call_tool("delete_record", model="shop.customer", pk=customer.pk, confirmation=token)

    assert not Customer.objects.exists()


def test_a_tool_with_such_an_argument_of_its_own_is_refused_and_not_run(client, add_tool):
    ran = []

    def odd(confirmation: str) -> str:
        """Take it for itself."""
        ran.append(confirmation)
        return "done"

    add_tool(odd, read_only=False)
    guard("odd")

    assert "cannot be called" in client.call_tool("odd", confirmation="x").text
    assert ran == []


def test_long_arguments_are_cut_where_they_are_shown(client, notes):
    guard("note")

    asked = client.call_tool("note", text="x" * 100_000)

    assert len(asked.text) < 4000
    assert "cut here" in asked.text


@pytest.fixture
def asking(add_tool):
    """A tool that asks for a word and confirms, and what it was told."""
    told = []

    def ship(ctx: mcp.Context, number: int) -> str:
        """Ship it."""
        ctx.confirm(f"Ship {number}?")
        told.append(number)
        return "Shipped."

    add_tool(ship, read_only=False, asks=True)
    return told


def test_a_tool_that_asks_by_tokens_is_confirmed_first_and_asks_then(staff, asking):
    guard("ship")
    client = Client(user=staff, revision="2025-11-25")

    first = client.call_tool("ship", number=1)
    second = client.call_tool("ship", number=1, confirmation=token_in(first))
    third = client.call_tool("ship", number=1, confirmation=token_in(second))

    assert "Staff of this site" in first.text
    assert "Ship 1?" in second.text
    assert third.text == "Shipped."
    assert asking == [1]


def test_a_forged_token_does_not_pass_to_a_tool_that_asks(staff, asking):
    guard("ship")
    client = Client(user=staff, revision="2025-11-25")

    assert client.call_tool("ship", number=1, confirmation="x.y.z").is_error
    assert asking == []


def test_a_tool_that_asks_the_person_is_confirmed_first_and_asks_then(staff, asking):
    guard("ship")
    client = Client(user=staff, answers={"confirm": {"confirm": True}})

    first = client.call_tool("ship", number=1)
    done = client.call_tool("ship", number=1, confirmation=token_in(first))
    again = client.call_tool("ship", number=1, confirmation=token_in(first))

    assert "Staff of this site" in first.text
    assert done.text == "Shipped."
    assert again.is_error
    assert asking == [1]


def test_answers_that_nobody_asked_for_confirm_nothing(staff, asking):
    guard("ship")
    client = Client(user=staff)
    answers = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    call = {"name": "ship", "arguments": {"number": 1}, "inputResponses": answers}

    without = client.request("tools/call", call)
    with pytest.raises(ProtocolFailure):
        client.request("tools/call", {**call, "requestState": "forged"})

    assert without["isError"]
    assert asking == []


def agreeing(user, *, agrees=True):
    return Client(user=user, answers={"confirmation": {"confirm": agrees}})


def test_a_client_that_can_ask_its_person_does(staff, notes):
    guard("note")
    client = agreeing(staff)

    done = client.call_tool("note", text="Hello")

    assert done.text == "Written."
    assert "Hello" in str(client.questions)
    assert notes == ["Hello"]


def test_a_person_who_does_not_agree_is_obeyed(staff, notes):
    guard("note")

    for client in (
        agreeing(staff, agrees=False),
        Client(user=staff, answers={"confirmation": DECLINE}),
        Client(user=staff, answers={"confirmation": CANCEL}),
    ):
        assert client.call_tool("note", text="a").is_error
    assert notes == []


def test_an_answer_counts_once_and_for_the_call_that_was_shown(staff, notes):
    guard("note")
    client = agreeing(staff)
    call = {"name": "note", "arguments": {"text": "a"}}
    (asked,) = client.send("tools/call", call)
    answers = {"confirmation": {"action": "accept", "content": {"confirm": True}}}
    again = {"inputResponses": answers, "requestState": asked["result"]["requestState"]}

    with pytest.raises(ProtocolFailure):
        client.send("tools/call", {"name": "note", "arguments": {"text": "b"}, **again})
    (done,) = client.send("tools/call", {**call, **again})
    (twice,) = client.send("tools/call", {**call, **again})

    assert done["result"]["content"][0]["text"] == "Written."
    assert twice["result"]["isError"]
    assert notes == ["a"]


def test_an_answer_without_a_question_confirms_nothing(staff, notes):
    guard("note")
    answers = {"confirmation": {"action": "accept", "content": {"confirm": True}}}
    call = {"name": "note", "arguments": {"text": "a"}, "inputResponses": answers}

    (asked,) = agreeing(staff).send("tools/call", call)

    assert asked["result"]["resultType"] == "input_required"
    assert notes == []

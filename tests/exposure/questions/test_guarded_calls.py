"""Tools that staff want to be confirmed: nothing runs before a person saw what would be."""

from __future__ import annotations

import jsonschema_rs
import pytest
from django.contrib import admin

import mcp_django as mcp
from mcp_django.models import ExposedModel, ExposedTool
from mcp_django.testing import CANCEL, DECLINE, Client, ProtocolFailure
from tests.asking import TALKATIVE, Talk
from tests.clients import call_with_token
from tests.shop.models import Customer

pytestmark = pytest.mark.django_db


def guard(name):
    return ExposedTool.objects.create(name=name, needs_confirmation=True)


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


def test_a_confirmation_is_for_one_tool(client, notes, add_tool):
    def also(text: str) -> str:
        """Do it as well."""
        return text

    add_tool(also, read_only=False)
    # The question is the same.
    for name in ("note", "also"):
        ExposedTool.objects.create(name=name, needs_confirmation=True, title="Do it")
    token = client.call_tool("also", text="a").data["confirmation"]

    assert client.call_tool("note", text="a", confirmation=token).is_error
    assert notes == []


def test_the_definition_says_how(client, notes):
    before = next(one for one in client.list_tools() if one["name"] == "note")
    guard("note")

    after = next(one for one in client.list_tools() if one["name"] == "note")

    assert set(after["inputSchema"]["properties"]) == {"text", "confirmation"}
    assert after["inputSchema"]["required"] == before["inputSchema"]["required"] == ["text"]


def test_generic_tools_and_coroutines_can_be_guarded_too(client):
    Customer.objects.create(name="Ann")
    for name in ("find_records", "echo_later"):
        guard(name)

    for name, arguments in (
        ("find_records", {"model": "shop.customer"}),
        ("echo_later", {"text": "x"}),
    ):
        asked = client.call_tool(name, **arguments)
        done = client.call_tool(name, **arguments, confirmation=asked.data["confirmation"])
        assert not asked.is_error
        assert not done.is_error


def test_what_asks_for_itself_is_not_asked_twice(make_user):
    boss = Client(user=make_user("boss", is_staff=True, is_superuser=True))
    customer = Customer.objects.create(name="Ann")
    ExposedTool.objects.create(name="delete_record", needs_confirmation=True)

    ExposedModel.objects.create(label="shop.customer", level=5)

    shown = boss.call_tool("delete_record", model="shop.customer", pk=customer.pk)
    token = shown.data["confirmation"]
    boss.call_tool("delete_record", model="shop.customer", pk=customer.pk, confirmation=token)

    assert not Customer.objects.exists()


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
    second = client.call_tool("ship", number=1, confirmation=first.data["confirmation"])
    third = client.call_tool("ship", number=1, confirmation=second.data["confirmation"])
    again = client.call_tool("ship", number=1, confirmation=second.data["confirmation"])

    assert first.data["question"] == "Call ship?\n\nNumber: 1"
    assert second.data["question"] == "Ship 1?"
    assert third.text == "Shipped."
    assert "was used already" in again.text
    assert asking == [1]


def test_what_the_tool_asks_needs_the_agreement_to_the_call_as_well(staff, asking):
    client = Client(user=staff, revision="2025-11-25")
    unguarded = client.call_tool("ship", number=1).data["confirmation"]
    guard("ship")

    refused = client.call_tool("ship", number=1, confirmation=unguarded)
    first = client.call_tool("ship", number=1).data["confirmation"]
    twice = client.call_tool("ship", number=1, confirmation=f"{first} {first}")

    assert "is not valid for this call" in refused.text
    assert "is not valid for this call" in twice.text
    assert asking == []


def test_the_question_fits_the_output_schema_of_a_tool_that_has_one(client, add_tool):
    def count(ctx: mcp.Context, words: list[str]) -> dict[str, int]:
        """Count them."""
        ctx.confirm("Count?")
        return dict.fromkeys(words, 1)

    def tally(words: list[str]) -> dict[str, int]:
        """Count them."""
        return dict.fromkeys(words, 1)

    add_tool(count, read_only=False, asks=True)
    add_tool(tally, read_only=False)
    guard("tally")
    schemas = {one["name"]: one.get("outputSchema") for one in client.list_tools()}

    for name in ("count", "tally"):
        call = {"name": name, "arguments": {"words": ["a"]}}
        asked = client.request("tools/call", call)
        done = call_with_token(client, name, words=["a"])

        validator = jsonschema_rs.validator_for(schemas[name])
        assert validator.is_valid(asked["structuredContent"])
        assert asked["structuredContent"]["question"]
        assert validator.is_valid(done.data)
        assert done.data == {"a": 1}
        assert not validator.is_valid({"question": "Count?"})


def test_a_token_of_a_tool_that_asks_confirms_no_call_on_which_it_asks_nothing(staff, add_tool):
    shipped = []

    def ship(ctx: mcp.Context, number: int) -> str:
        """Ship it, and ask first where it is much."""
        if number > 9:
            ctx.confirm(f"Ship {number}?")
        shipped.append(number)
        return "Shipped."

    add_tool(ship, read_only=False, asks=True)
    guard("ship")
    client = Client(user=staff, revision="2025-11-25")

    guarded = client.call_tool("ship", number=10)
    asked = client.call_tool("ship", number=10, confirmation=guarded.data["confirmation"])
    other = client.call_tool("ship", number=1, confirmation=asked.data["confirmation"])

    assert "Ship 10?" in asked.text
    assert "is not valid for this call" in other.text
    assert shipped == []


FIRST = "mcp_django.asked_first"
YES = {"confirm": True}


def test_a_tool_that_asks_the_person_is_confirmed_first_and_asks_then(staff, asking):
    guard("ship")
    client = Client(user=staff, answers={FIRST: YES, "confirm": YES})

    done = client.call_tool("ship", number=1)

    assert list(client.questions) == [FIRST, "confirm"]
    assert done.text == "Shipped."
    assert asking == [1]


@pytest.mark.parametrize("no", [DECLINE, CANCEL, {"confirm": False}])
def test_a_person_who_declines_first_is_asked_no_more(staff, asking, no):
    guard("ship")
    client = Client(user=staff, answers={FIRST: no, "confirm": YES})

    refused = client.call_tool("ship", number=1)

    assert refused.is_error
    assert "confirmation" not in refused.text
    assert list(client.questions) == [FIRST]
    assert asking == []


@pytest.mark.parametrize("is_async", [False, True])
def test_one_agreement_is_good_for_one_call_where_a_tool_that_asks_asks_nothing(
    staff, add_tool, is_async
):
    shipped = []

    def ship(ctx: mcp.Context, number: int) -> str:
        """Ship it."""
        shipped.append(number)
        return "Shipped."

    async def ship_later(ctx: mcp.Context, number: int) -> str:
        """Ship it."""
        return ship(ctx, number)

    name = "ship_later" if is_async else "ship"
    add_tool(ship_later if is_async else ship, read_only=False, asks=True)
    guard(name)
    talk = Talk.call(Client(user=staff, capabilities=TALKATIVE), name, number=1)

    first = talk.accept(FIRST, confirm=True)
    second = talk.accept(FIRST, confirm=True)

    assert first.text == "Shipped."
    assert "used already" in second.text
    assert shipped == [1]


def test_an_async_tool_goes_on_from_question_to_question(staff, add_tool):
    async def ship(ctx: mcp.Context, number: int) -> str:
        """Ship it."""
        await ctx.aconfirm(f"Ship {number}?")
        return "Shipped."

    add_tool(ship, read_only=False, asks=True)
    guard("ship")
    client = Client(user=staff, answers={FIRST: YES, "confirm": YES})

    assert client.call_tool("ship", number=1).text == "Shipped."


def test_answers_that_nobody_asked_for_confirm_nothing(staff, asking):
    guard("ship")
    client = Client(user=staff)
    answers = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    call = {"name": "ship", "arguments": {"number": 1}, "inputResponses": answers}

    without = client.request("tools/call", call)
    with pytest.raises(ProtocolFailure):
        client.request("tools/call", {**call, "requestState": "forged"})

    assert "confirmation" in without["content"][0]["text"]
    assert asking == []


def agreeing(user, *, agrees=True):
    return Client(user=user, answers={"confirmation": {"confirm": agrees}})


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


# Functions that are declared destructive


@pytest.fixture
def wiped(add_tool):
    """A tool that deletes for good, and what it deleted."""
    gone = []

    def wipe(text: str) -> str:
        """Wipe it."""
        gone.append(text)
        return "Wiped."

    add_tool(wipe, read_only=False, destructive=True)
    return gone


def test_a_function_that_destroys_is_called_when_the_person_agrees(staff, wiped):
    client = agreeing(staff)

    done = client.call_tool("wipe", text="all")

    assert "all" in client.questions["confirmation"]["params"]["message"]
    assert done.text == "Wiped."
    assert wiped == ["all"]


@pytest.mark.parametrize("no", [DECLINE, CANCEL, {"confirm": False}])
def test_a_function_that_destroys_is_not_called_when_the_person_declines(staff, wiped, no):
    refused = Client(user=staff, answers={"confirmation": no}).call_tool("wipe", text="all")

    assert refused.is_error
    assert "Nothing was done." in refused.text
    assert wiped == []


def test_staff_can_say_that_a_function_destroys_nothing(staff, wiped):
    ExposedTool.objects.create(name="wipe", annotations={"destructiveHint": False})

    done = Client(user=staff, answers={}).call_tool("wipe", text="all")

    assert done.text == "Wiped."


def test_who_cannot_be_asked_calls_a_function_that_destroys_at_once(client, wiped):
    assert client.call_tool("wipe", text="all").text == "Wiped."


# What cannot be called


WRONG = [{}, {"text": 1}, {"text": None}, {"txt": "a"}, {"text": "a", "more": 1}]


@pytest.mark.parametrize("arguments", WRONG, ids=str)
def test_nobody_is_asked_to_confirm_a_call_that_cannot_run(staff, client, notes, arguments):
    guard("note")
    person = agreeing(staff)

    by_token = client.call_tool("note", **arguments)
    by_question = person.call_tool("note", **arguments)

    for answer in (by_token, by_question):
        assert answer.is_error
        assert "A valid call" in answer.text
        assert "confirmation" not in answer.text
    assert not person.questions
    assert notes == []


def test_a_tool_that_asks_is_not_confirmed_with_arguments_it_cannot_take(staff, asking):
    guard("ship")

    answer = Client(user=staff).call_tool("ship", number="one")

    assert "confirmation" not in answer.text
    assert "number" in answer.text


def test_a_tool_with_a_schema_of_its_own_is_not_confirmed_against_it(client, add_tool):
    schema = {"type": "object", "properties": {"to": {"const": "Ada"}}, "required": ["to"]}

    def greet(arguments: dict[str, object]) -> str:
        """Greet Ada."""
        return f"Hello {arguments['to']}"

    add_tool(greet, read_only=False, input_schema=schema)
    guard("greet")

    assert "question" not in client.call_tool("greet", to="Bob").text
    assert call_with_token(client, "greet", to="Ada").text == "Hello Ada"


def test_a_read_with_unknown_arguments_is_not_confirmed(client):
    guard("find_records")

    answer = client.call_tool("find_records", modell="shop.customer")

    assert "Did you mean model?" in answer.text


@pytest.fixture
def keeper(make_user):
    """May add and change customers."""
    ExposedModel.objects.create(label="shop.customer", level=5)
    names = ("view_customer", "add_customer", "change_customer")
    return Client(user=make_user("keeper", *names, is_staff=True))


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("create_record", {"values": {"nmae": "Ann"}}, "nmae"),
        ("create_record", {"values": {"name": {}}}, "name"),
        ("create_record", {"values": {}, "model": "shop.nothing"}, "There is no model"),
        ("create_record", {"values": {"name": "A"}, "inlines": {"lines": [{}]}}, "lines"),
        ("update_record", {"pk": 0, "values": {"name": "Ann"}}, "0"),
        ("update_record", {"values": {"name": "Ann"}}, "Missing argument: pk"),
    ],
    ids=str,
)
def test_a_write_that_the_form_cannot_take_is_not_confirmed(keeper, name, arguments, told):
    guard(name)

    answer = keeper.call_tool(name, **{"model": "shop.customer", **arguments})

    assert answer.is_error
    assert told in answer.text
    assert "confirmation" not in answer.text
    assert not Customer.objects.exists()


def test_a_write_to_a_record_that_is_read_only_is_not_confirmed(keeper, monkeypatch):
    customer = Customer.objects.create(name="Ann")
    customer_admin = admin.site.get_model_admin(Customer)
    monkeypatch.setattr(
        type(customer_admin), "has_change_permission", lambda self, request, obj=None: obj is None
    )
    guard("update_record")

    answer = keeper.call_tool(
        "update_record", model="shop.customer", pk=customer.pk, values={"name": "Bea"}
    )

    assert "read-only for you" in answer.text
    assert "confirmation" not in answer.text


def test_what_confirms_itself_is_checked_as_well(make_user):
    boss = Client(user=make_user("boss", is_staff=True, is_superuser=True))
    ExposedModel.objects.create(label="shop.customer", level=5)
    for name in ("delete_record", "shop_customer_greet"):
        ExposedTool.objects.update_or_create(
            name=name, defaults={"needs_confirmation": True, "enabled": True}
        )

    deletion = boss.call_tool("delete_record", modell="shop.customer", pk=1)
    greeting = boss.call_tool("shop_customer_greet", pkss=[1])

    assert "Did you mean model?" in deletion.text
    assert "Did you mean pks?" in greeting.text


def test_checking_a_write_runs_no_hook_of_the_site(keeper, monkeypatch):
    ran = []
    customer_admin = admin.site.get_model_admin(Customer)
    monkeypatch.setattr(
        type(customer_admin), "save_form", lambda *args, **kwargs: ran.append("form")
    )
    guard("create_record")

    keeper.call_tool("create_record", model="shop.customer", values={"name": "Ann"})

    assert ran == []

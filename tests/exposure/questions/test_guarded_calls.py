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


def test_what_asks_for_itself_is_not_asked_twice(make_client):
    boss = make_client(is_superuser=True)
    customer = Customer.objects.create(name="Ann")
    guard("delete_record")
    ExposedModel.objects.create(label="shop.customer", level=5)

    call_with_token(boss, "delete_record", model="shop.customer", pk=customer.pk)

    assert not Customer.objects.exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("find_records", {"model": "shop.customer"}), ("echo_later", {"text": "x"})],
)
def test_any_tool_can_be_guarded_and_its_schema_says_how(client, name, arguments):
    def schema():
        return next(one for one in client.list_tools() if one["name"] == name)["inputSchema"]

    before = schema()
    guard(name)

    done = call_with_token(client, name, **arguments)

    assert not done.is_error
    assert set(schema()["properties"]) == {*before["properties"], "confirmation"}
    assert schema()["required"] == before["required"]


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
    client = Client(user=staff, revision="2025-11-25")
    unguarded = client.call_tool("ship", number=1).data["confirmation"]
    guard("ship")

    first = client.call_tool("ship", number=1)
    token = first.data["confirmation"]
    for other in (unguarded, f"{token} {token}"):
        refused = client.call_tool("ship", number=1, confirmation=other)
        assert "is not valid for this call" in refused.text
    second = client.call_tool("ship", number=1, confirmation=token)
    third = client.call_tool("ship", number=1, confirmation=second.data["confirmation"])
    again = client.call_tool("ship", number=1, confirmation=second.data["confirmation"])

    assert first.data["question"] == "Call ship?\n\nNumber: 1"
    assert second.data["question"] == "Ship 1?"
    assert third.text == "Shipped."
    assert "was used already" in again.text
    assert asking == [1]


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


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_asks_the_person_is_confirmed_first_and_asks_then(staff, add_tool, is_async):
    shipped = []

    def ship(ctx: mcp.Context, number: int) -> str:
        """Ship it."""
        ctx.confirm(f"Ship {number}?")
        shipped.append(number)
        return "Shipped."

    async def ship_later(ctx: mcp.Context, number: int) -> str:
        """Ship it."""
        await ctx.aconfirm(f"Ship {number}?")
        shipped.append(number)
        return "Shipped."

    name = "ship_later" if is_async else "ship"
    add_tool(ship_later if is_async else ship, read_only=False, asks=True)
    guard(name)
    client = Client(user=staff, answers={FIRST: YES, "confirm": YES})

    done = client.call_tool(name, number=1)

    assert list(client.questions) == [FIRST, "confirm"]
    assert done.text == "Shipped."
    assert shipped == [1]


@pytest.mark.parametrize("no", [DECLINE, CANCEL, {"confirm": False}])
def test_a_person_who_declines_first_is_asked_no_more(staff, asking, no):
    guard("ship")
    client = Client(user=staff, answers={FIRST: no, "confirm": YES})

    refused = client.call_tool("ship", number=1)

    assert refused.is_error
    assert "confirmation" not in refused.text
    assert list(client.questions) == [FIRST]
    assert asking == []


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_one_agreement_is_good_for_one_call_where_a_tool_that_asks_asks_nothing(
    staff, add_tool, is_async, idempotent
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
    add_tool(ship_later if is_async else ship, read_only=False, asks=True, idempotent=idempotent)
    guard(name)
    talk = Talk.call(Client(user=staff, capabilities=TALKATIVE), name, number=1)

    first = talk.accept(FIRST, confirm=True)
    second = talk.accept(FIRST, confirm=True)

    assert first.text == "Shipped."
    assert "used already" in second.text
    assert shipped == [1]


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


@pytest.mark.parametrize("can_ask", [True, False])
@pytest.mark.parametrize("key", ["confirmation", "confirm", FIRST])
def test_answers_that_nobody_asked_for_confirm_nothing(staff, notes, asking, can_ask, key):
    client = agreeing(staff) if can_ask else Client(user=staff)
    answers = {key: {"action": "accept", "content": {"confirm": True}}}

    for call in (
        {"name": "note", "arguments": {"text": "a"}},
        {"name": "ship", "arguments": {"number": 1}},
    ):
        guard(call["name"])
        (asked,) = client.send("tools/call", {**call, "inputResponses": answers})
        with pytest.raises(ProtocolFailure):
            client.send(
                "tools/call", {**call, "inputResponses": answers, "requestState": "forged"}
            )
        assert "confirm" in str(asked["result"])

    assert notes == asking == []


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


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (YES, "Wiped."),
        (DECLINE, "Nothing was done."),
        (CANCEL, "Nothing was done."),
        ({"confirm": False}, "Nothing was done."),
    ],
)
def test_a_function_that_destroys_is_called_when_the_person_agrees(staff, wiped, answer, said):
    client = Client(user=staff, answers={"confirmation": answer})

    done = client.call_tool("wipe", text="all")

    assert "all" in client.questions["confirmation"]["params"]["message"]
    assert said in done.text
    assert wiped == (["all"] if answer is YES else [])


@pytest.mark.parametrize("can_ask", [True, False])
def test_it_is_called_at_once_where_nobody_can_be_asked_or_staff_say_it_destroys_nothing(
    staff, wiped, can_ask
):
    if can_ask:
        ExposedTool.objects.create(name="wipe", annotations={"destructiveHint": False})
    client = Client(user=staff, answers={} if can_ask else None)

    assert client.call_tool("wipe", text="all").text == "Wiped."


# What cannot be called


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("note", {}, "A valid call"),
        ("note", {"text": 1}, "A valid call"),
        ("note", {"text": "a", "more": 1}, "A valid call"),
        ("ship", {"number": "one"}, "number"),
        ("greet", {"to": "Bob"}, "Argument to"),
        ("find_records", {"modell": "shop.customer"}, "Did you mean model?"),
        # These confirm themselves.
        ("delete_record", {"modell": "shop.customer", "pk": 1}, "Did you mean model?"),
        ("shop_customer_greet", {"pkss": [1]}, "Did you mean pks?"),
    ],
)
@pytest.mark.parametrize("can_ask", [True, False])
def test_nobody_is_asked_to_confirm_a_call_that_cannot_run(
    make_user, add_tool, notes, asking, name, arguments, said, can_ask
):
    schema = {"type": "object", "properties": {"to": {"const": "Ada"}}, "required": ["to"]}

    def greet(arguments: dict[str, object]) -> str:
        """Greet Ada."""
        return f"Hello {arguments['to']}"

    add_tool(greet, read_only=False, input_schema=schema)
    ExposedModel.objects.create(label="shop.customer", level=5)
    ExposedTool.objects.create(name=name, needs_confirmation=True, enabled=True)
    boss = make_user("boss", is_staff=True, is_superuser=True)
    client = Client(user=boss, answers={} if can_ask else None)

    answer = client.call_tool(name, **arguments)

    assert answer.is_error
    assert said in answer.text
    assert '"confirmation":' not in answer.text
    assert notes == asking == []


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


def test_checking_a_write_runs_no_hook_of_the_site(keeper, monkeypatch):
    ran = []
    customer_admin = type(admin.site.get_model_admin(Customer))
    monkeypatch.setattr(customer_admin, "save_form", lambda *args, **kwargs: ran.append("form"))
    guard("create_record")

    keeper.call_tool("create_record", model="shop.customer", values={"name": "Ann"})

    assert ran == []

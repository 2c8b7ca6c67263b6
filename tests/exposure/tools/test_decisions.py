"""What staff decided about tools, the server and single users, as clients notice it."""

from __future__ import annotations

import jsonschema_rs
import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

import mcp_django as mcp
from mcp_django.models import ExposedModel, ExposedTool
from mcp_django.testing import CANCEL, DECLINE, Client
from tests.asking import TALKATIVE, Talk
from tests.clients import CheckedClient, call_with_token
from tests.decisions import decide_on_tool
from tests.shop.models import Customer
from tests.writes.calls import asked

pytestmark = pytest.mark.django_db


def test_a_tool_for_a_group_exists_for_its_members_only_if_it_would_without(
    client, staff, make_user
):
    group, outsider = Group.objects.create(name="talkers"), make_user("outsider")
    decide_on_tool("echo", enabled=True).groups.add(group)
    before = client.tools()

    for user in (staff, outsider):
        user.groups.add(group)

    assert "echo" not in before
    assert "echo" in client.tools()
    assert "echo" not in CheckedClient(user=outsider).tools()


@pytest.mark.parametrize(
    "annotations", [{"readOnlyHint": True}, {"destructiveHint": False}, {"title": "x"}, ["x"]]
)
def test_annotations_that_would_promise_more_are_refused(annotations):
    row = ExposedTool(name="echo", annotations=annotations)

    with pytest.raises(ValidationError, match="stricter"):
        row.full_clean()


# Tools that staff want to be confirmed


FIRST = "mcp_django.asked_first"
YES = {"confirm": True}


def guard(name, **decision):
    return ExposedTool.objects.create(name=name, needs_confirmation=True, **decision)


@pytest.fixture
def ran():
    """What the tools below were really called with."""
    return []


@pytest.fixture(autouse=True)
def tools(add_tool, ran):
    def note(text: str) -> str:
        """Write it down."""
        ran.append(text)
        return "Written."

    def wipe(text: str) -> str:
        """Wipe it."""
        return note(text)

    def ship(ctx: mcp.Context, number: int) -> str:
        """Ship it, and ask first where it is much."""
        if number > 9:
            ctx.confirm(f"Ship {number}?")
        ran.append(number)
        return "Shipped."

    async def ship_later(ctx: mcp.Context, number: int) -> str:
        """Ship it, and ask first where it is much."""
        if number > 9:
            await ctx.aconfirm(f"Ship {number}?")
        ran.append(number)
        return "Shipped."

    add_tool(note, read_only=False)
    add_tool(wipe, read_only=False, destructive=True)
    add_tool(ship, read_only=False, asks=True)
    add_tool(ship_later, read_only=False, asks=True, idempotent=True)


def test_a_confirmation_is_for_one_tool_and_what_asks_for_itself_is_not_asked_twice(
    client, make_client, ran
):
    # The question is the same.
    for name in ("note", "wipe"):
        guard(name, title="Do it")
    guard("delete_record")
    token = client.call_tool("wipe", text="a").data["confirmation"]

    assert client.call_tool("note", text="a", confirmation=token).is_error
    assert ran == []

    boss, customer = make_client(is_superuser=True), Customer.objects.create(name="Ann")
    ExposedModel.objects.create(label="shop.customer", level=5)
    call_with_token(boss, "delete_record", model="shop.customer", pk=customer.pk)
    assert not Customer.objects.exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("find_records", {"model": "shop.customer"}), ("echo_later", {"text": "x"})],
)
def test_any_tool_can_be_guarded_and_its_schema_says_how(client, name, arguments):
    before = client.tools()[name]["inputSchema"]
    guard(name)

    done = call_with_token(client, name, **arguments)

    assert not done.is_error
    schema = client.tools()[name]["inputSchema"]
    assert set(schema["properties"]) == {*before["properties"], "confirmation"}
    assert schema["required"] == before["required"]


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
    schemas = {tool["name"]: tool.get("outputSchema") for tool in client.list_tools()}

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


# Those that ask for themselves, too


def test_a_tool_that_asks_by_tokens_is_confirmed_first_and_asks_then(staff, ran):
    client = Client(user=staff, revision="2025-11-25")
    unguarded = client.call_tool("ship", number=10).data["confirmation"]
    guard("ship")

    first = client.call_tool("ship", number=10)
    token = first.data["confirmation"]
    second = client.call_tool("ship", number=10, confirmation=token)
    last = second.data["confirmation"]
    # Another call, on which it asks nothing.
    less = client.call_tool("ship", number=1, confirmation=last)
    refused = [
        client.call_tool("ship", number=10, confirmation=other)
        for other in (unguarded, f"{token} {token}")
    ]
    third = client.call_tool("ship", number=10, confirmation=last)
    again = client.call_tool("ship", number=10, confirmation=last)

    assert first.data["question"] == "Call ship?\n\nNumber: 10"
    assert second.data["question"] == "Ship 10?"
    assert all("is not valid for this call" in answer.text for answer in (less, *refused))
    assert third.text == "Shipped."
    assert "was used already" in again.text
    assert ran == [10]


@pytest.mark.parametrize("name", ["ship", "ship_later"])
@pytest.mark.parametrize("answer", [YES, DECLINE, CANCEL, {"confirm": False}])
def test_a_tool_that_asks_the_person_is_confirmed_first_and_asks_then(staff, ran, name, answer):
    guard(name)
    client = Client(user=staff, answers={FIRST: answer, "confirm": YES})

    done = client.call_tool(name, number=10)

    agrees = answer is YES
    assert list(client.questions) == [FIRST, "confirm"] if agrees else [FIRST]
    assert (done.text == "Shipped.", done.is_error) == (agrees, not agrees)
    assert "confirmation" not in done.text
    assert ran == ([10] if agrees else [])


@pytest.mark.parametrize("name", ["ship", "ship_later"])
def test_one_agreement_is_good_for_one_call_where_a_tool_that_asks_asks_nothing(staff, ran, name):
    guard(name)
    talk = Talk.call(Client(user=staff, capabilities=TALKATIVE), name, number=1)

    first = talk.accept(FIRST, confirm=True)
    second = talk.accept(FIRST, confirm=True)

    assert first.text == "Shipped."
    assert "used already" in second.text
    assert ran == [1]


# Functions that are declared destructive


@pytest.mark.parametrize(("answer", "said"), [(YES, "Written."), (DECLINE, "Nothing was done.")])
def test_a_function_that_destroys_is_called_when_the_person_agrees(staff, ran, answer, said):
    client = Client(user=staff, answers={"confirmation": answer})

    done = client.call_tool("wipe", text="all")

    assert "all" in asked(client)
    assert said in done.text
    assert ran == (["all"] if answer is YES else [])


@pytest.mark.parametrize("can_ask", [True, False])
def test_it_is_called_at_once_where_nobody_can_be_asked_or_staff_say_it_destroys_nothing(
    staff, can_ask
):
    if can_ask:
        ExposedTool.objects.create(name="wipe", annotations={"destructiveHint": False})
    client = Client(user=staff, answers={} if can_ask else None)

    assert client.call_tool("wipe", text="all").text == "Written."


# What cannot be called


CUSTOMER = {"model": "shop.customer"}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        *(
            ("note", wrong, "A valid call")
            for wrong in ({}, {"text": 1}, {"text": "a", "more": 1})
        ),
        ("ship", {"number": "one"}, "number"),
        ("greet", {"to": "Bob"}, "Argument to"),
        ("find_records", {"modell": "shop.customer"}, "Did you mean model?"),
        # These confirm themselves.
        ("delete_record", {"modell": "shop.customer", "pk": 1}, "Did you mean model?"),
        ("shop_customer_greet", {"pkss": [1]}, "Did you mean pks?"),
        # These are checked by the form.
        ("create_record", {**CUSTOMER, "values": {"nmae": "Ann"}}, "nmae"),
        ("create_record", {**CUSTOMER, "values": {"name": {}}}, "name"),
        ("create_record", {"model": "shop.nothing", "values": {}}, "There is no model"),
        ("create_record", {**CUSTOMER, "values": {"name": "A"}, "inlines": {"x": [{}]}}, "x"),
        ("update_record", {**CUSTOMER, "pk": 0, "values": {"name": "Ann"}}, "0"),
        ("update_record", {**CUSTOMER, "values": {"name": "Ann"}}, "Missing argument: pk"),
        ("update_record", {**CUSTOMER, "pk": 7, "values": {"name": "Bo"}}, "read-only for you"),
    ],
)
@pytest.mark.parametrize("can_ask", [True, False])
def test_nobody_is_asked_to_confirm_a_call_that_cannot_run(
    make_user, add_tool, monkeypatch, ran, name, arguments, said, can_ask
):
    schema = {"type": "object", "properties": {"to": {"const": "Ada"}}, "required": ["to"]}

    def greet(arguments: dict[str, object]) -> str:
        """Greet Ada."""
        return f"Hello {arguments['to']}"

    add_tool(greet, read_only=False, input_schema=schema)
    ExposedModel.objects.create(label="shop.customer", level=5)
    Customer.objects.create(pk=7, name="Ann")
    kind = type(admin.site.get_model_admin(Customer))
    monkeypatch.setattr(kind, "has_change_permission", lambda self, request, obj=None: obj is None)
    guard(name, enabled=True)
    boss = make_user("boss", is_staff=True, is_superuser=True)
    client = Client(user=boss, answers={} if can_ask else None)

    answer = client.call_tool(name, **arguments)

    assert answer.is_error
    assert said in answer.text
    assert '"confirmation":' not in answer.text
    assert ran == []
    assert Customer.objects.get().name == "Ann"


def test_checking_a_write_runs_no_hook_of_the_site(make_client, monkeypatch):
    hooks = []
    customer_admin = type(admin.site.get_model_admin(Customer))
    monkeypatch.setattr(customer_admin, "save_form", lambda *args, **kwargs: hooks.append("form"))
    ExposedModel.objects.create(label="shop.customer", level=5)
    guard("create_record")

    make_client(is_superuser=True).call_tool("create_record", **CUSTOMER, values={"name": "Ann"})

    assert hooks == []

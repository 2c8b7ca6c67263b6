"""Whatever a person has to agree to is asked, confirmed and bound in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

import mcp_django as mcp
from mcp_django.exposure.questions.confirmations import NEXT
from mcp_django.exposure.questions.conversation import SHORTEST_TIME
from mcp_django.models import CallRecord, ExposedModel, ExposedTool, PersonalToken
from mcp_django.principal import SCOPES
from mcp_django.testing import CANCEL, DECLINE
from tests.clients import CheckedClient
from tests.depot import actions
from tests.depot.models import Driver, Parcel
from tests.shop.models import Customer, Memo

# Of packages that were written for Django 6.0.
pytestmark = pytest.mark.filterwarnings("ignore:Overriding get_action")

OTHER = "is not valid for this call, or the call would do something else by now"
AGAIN = "Nothing was done. Call {tool} again without `confirmation`: the answer has the question"


@dataclass(frozen=True, kw_only=True)
class Approved:
    """A call that a person has to agree to."""

    tool: str
    arguments: dict[str, Any]
    question: str
    #: Arguments of other calls of this tool, which nobody has agreed to.
    others: list[dict[str, Any]]
    #: Makes the same call do something else.
    change: Callable[[], object] | None = None
    #: Whether staff want each call to be confirmed.
    is_guarded: bool = False
    members: set[str] = field(default_factory=set)


def another_page():
    actions.page = lambda *args, **context: PAGE(*args, **{**context, "title": "Burn parcels"})


PAGE = actions.page
CUSTOMER = {"model": "shop.customer"}
ANN = {"filters": {"name": "Ann"}}
N0 = {"filters": {"number__startswith": "n"}}
APPROVED = {
    "deletion": Approved(
        tool="delete_record",
        arguments={**CUSTOMER, **ANN},
        question="Delete this customer? 1 record: ",
        others=[{**CUSTOMER, "filters": {"name": "Bea"}}, {**CUSTOMER, "pk": 1}],
        change=lambda: Customer.objects.create(name="Ann"),
        members={"records", "keys", "would_delete"},
    ),
    "bulk update": Approved(
        tool="update_records",
        arguments={**CUSTOMER, **ANN, "values": {"name": "Eve"}},
        question="Change this customer? 1 record: ",
        others=[
            {**CUSTOMER, **ANN, "values": {"name": "Eva"}},
            {**CUSTOMER, "pks": [1], "values": {"name": "Eve"}},
        ],
        change=lambda: Customer.objects.create(name="Ann"),
        members={"records"},
    ),
    "write that staff guard": Approved(
        tool="create_record",
        arguments={**CUSTOMER, "values": {"name": "Eve", "country": "FR"}},
        question="Create this customer?\n\nName: Eve",
        others=[{**CUSTOMER, "values": {"name": "Eva", "country": "FR"}}],
        is_guarded=True,
    ),
    "function that staff guard": Approved(
        tool="note",
        arguments={"text": "a <b>"},
        question="Call note?\n\nText: a <b>",
        others=[{"text": "b"}],
        is_guarded=True,
    ),
    **{
        f"{kind} that asks": Approved(
            tool=tool,
            arguments={"name": "Ann"},
            question="Delete 1 Ann?",
            others=[{"name": "Bea"}],
            change=lambda: Customer.objects.create(name="Ann"),
        )
        for kind, tool in {"function": "clear", "coroutine": "clear_later"}.items()
    },
    "action on filters": Approved(
        tool="depot_parcel_mark_shipped",
        arguments=N0,
        question="Mark selected parcels as shipped? 2 records: ",
        others=[{"filters": {"number": "n0"}}, {**N0, "exclude": {"number": "n1"}}],
        change=lambda: Parcel.objects.create(number="n9"),
        members={"outcome", "records"},
    ),
    "menu": Approved(
        tool="depot_driver_rename",
        arguments={**ANN, "answer": {"reason": "Eve"}},
        question="Rename? 1 record: ",
        others=[{**ANN, "answer": {"reason": "Mallory"}}],
        change=lambda: Driver.objects.create(name="Ann"),
        members={"outcome", "records"},
    ),
    "page with values": Approved(
        tool="depot_parcel_ship",
        arguments={"pks": ["n0"], "answer": {"carrier": "dhl"}},
        question="Ship? 1 record: ",
        others=[
            {"pks": ["n0"], "answer": {"carrier": "ups"}},
            {"pks": ["n0"], "answer": {"carrier": "dhl", "copies": 2}},
            {"pks": ["n1"], "answer": {"carrier": "dhl"}},
        ],
        change=another_page,
        members={"outcome", "records", "page", "answer_schema"},
    ),
}


@pytest.fixture(autouse=True)
def world(request, add_tool, monkeypatch):
    """What the calls are about. Tests that have no database have none of it."""
    if "approved" not in request.fixturenames:
        return
    request.getfixturevalue("db")
    monkeypatch.setattr(actions, "page", PAGE)
    ExposedModel.objects.create(label="shop.customer", level=5)
    for name in ("Ann", "Bea"):
        Customer.objects.create(name=name, country="FR")
        Driver.objects.create(name=name)
    for number in ("n0", "n1", "x2"):
        Parcel.objects.create(number=number)

    def note(text: str) -> str:
        """Write it down."""
        Memo.objects.create(text=text, code=text)
        return "Written."

    def clear(ctx: mcp.Context, name: str) -> str:
        """Delete all of that name."""
        rows = Customer.objects.filter(name=name)
        ctx.confirm(f"Delete {rows.count()} {name}?")
        rows.delete()
        return "Deleted."

    async def clear_later(ctx: mcp.Context, name: str) -> str:
        """Delete all of that name."""
        rows = Customer.objects.filter(name=name)
        await ctx.aconfirm(f"Delete {await rows.acount()} {name}?")
        await rows.adelete()
        return "Deleted."

    add_tool(note, read_only=False)
    add_tool(clear, read_only=False, asks=True)
    add_tool(clear_later, read_only=False, asks=True)


@pytest.fixture(params=APPROVED)
def approved(request):
    approved = APPROVED[request.param]
    if approved.is_guarded:
        request.getfixturevalue("db")
        ExposedTool.objects.create(name=approved.tool, needs_confirmation=True)
    return approved


def call(client, approved, arguments=None, **more):
    arguments = approved.arguments if arguments is None else arguments
    if "pks" in arguments and approved.tool.startswith("depot_parcel"):
        keys = dict(Parcel.objects.values_list("number", "pk"))
        arguments = {**arguments, "pks": [keys[number] for number in arguments["pks"]]}
    return client.call_tool(approved.tool, **arguments, **more)


def stored():
    models = (Customer, Parcel, Driver, Memo)
    return [list(model.objects.order_by("pk").values_list()) for model in models]


@pytest.fixture
def person(boss):
    return get_user_model().objects.get(username="boss")


@pytest.fixture
def asked(boss, approved):
    """The answer to a call that nobody has agreed to yet."""
    return call(boss, approved)


def test_what_nobody_agreed_to_is_a_question_and_no_error(boss, approved):
    before = stored()

    asked = call(boss, approved)

    assert not asked.is_error
    assert set(asked.data) == {"question", "confirmation", "next", *approved.members}
    assert asked.data["question"].startswith(approved.question)
    assert len(asked.data["confirmation"]) == 22
    assert asked.data["next"] == NEXT
    assert stored() == before


def test_with_the_confirmation_it_is_done_once(boss, approved, asked):
    rows = [row for model in (Customer, Parcel, Driver) for row in model.objects.all()]
    before, token = stored(), asked.data["confirmation"]

    done = call(boss, approved, confirmation=token)
    after = stored()
    for row in rows:
        row.save()
    restored = stored()
    again = call(boss, approved, confirmation=token)

    assert not done.is_error, done.text
    assert "confirmation" not in done.text
    assert after != before
    assert again.is_error
    assert stored() == restored


def test_it_is_good_for_no_other_call_and_for_nobody_else(
    boss, person, approved, asked, make_user
):
    eve = make_user("eve", is_staff=True, is_superuser=True)
    _, token = PersonalToken.create(user=person, name="another program", scopes=SCOPES)
    before = stored()

    theirs = [
        call(stranger, approved, confirmation=asked.data["confirmation"])
        for stranger in (CheckedClient(user=eve), CheckedClient(token=token))
    ]
    others = [
        call(boss, approved, other, confirmation=asked.data["confirmation"])
        for other in approved.others
    ]

    assert all(f"This confirmation {OTHER}." in answer.text for answer in theirs)
    assert all(other.is_error for other in others)
    assert stored() == before


def replace_records():
    """Let other records take the place of those that were asked about, with the same values."""
    for row in [row for model in (Customer, Parcel, Driver) for row in model.objects.all()]:
        row.delete()
        row.pk = None
        row.save()


@pytest.mark.parametrize(
    ("approved", "change"),
    [
        pytest.param(name, change, id=f"{name} {change.__name__}")
        for name, approved in APPROVED.items()
        for change in (approved.change, "filters" in approved.arguments and replace_records)
        if change
    ],
    indirect=["approved"],
)
def test_it_is_not_good_when_the_call_would_do_something_else(boss, approved, asked, change):
    change()
    before = stored()

    refused = call(boss, approved, confirmation=asked.data["confirmation"])

    assert f"This confirmation {OTHER}. {AGAIN.format(tool=approved.tool)}" in refused.text
    assert stored() == before


def test_a_model_cannot_make_one_up_and_an_empty_one_is_none(boss, approved):
    before = stored()

    for forged in (True, 1, "yes", "x" * 22, "=" * 22, "é" * 22, "a b", ["x"], {"a": 1}):
        refused = call(boss, approved, confirmation=forged)

        assert refused.is_error
        assert stored() == before
    for empty in ("", None):
        assert "confirmation" in call(boss, approved, confirmation=empty).data


def test_it_is_good_for_ten_minutes(boss, approved, monkeypatch):
    now, before = time.time(), stored()
    monkeypatch.setattr(time, "time", lambda: now)
    token = call(boss, approved).data["confirmation"]

    monkeypatch.setattr(time, "time", lambda: now + 602)
    late = call(boss, approved, confirmation=token)
    untouched = stored()
    monkeypatch.setattr(time, "time", lambda: now + 590)
    done = call(boss, approved, confirmation=token)

    assert "This confirmation is too old." in late.text
    assert untouched == before
    assert not done.is_error


@pytest.mark.parametrize(
    ("answer", "agrees"),
    [(DECLINE, False), (CANCEL, False), ({"confirm": False}, False), ({"confirm": True}, True)],
    ids=["declines", "closes", "says no", "agrees"],
)
def test_where_the_person_can_be_asked_they_decide_and_no_token(
    person, approved, asked, answer, agrees
):
    client = CheckedClient(user=person, answers={"confirmation": answer, "confirm": answer})
    before = stored()

    done = call(client, approved, confirmation=asked.data["confirmation"])

    (question,) = client.questions.values()
    assert question["params"]["message"].startswith(approved.question)
    assert done.is_error is not agrees
    assert ("Do not try again unless they want you to." in done.text) is not agrees
    assert (stored() != before) is agrees


@pytest.mark.parametrize("answers", [None, {}], ids=["by token", "by asking"])
def test_nobody_is_asked_whose_access_ends_before_they_could_answer(person, approved, answers):
    soon = timezone.now() + timedelta(seconds=SHORTEST_TIME - 10)
    client = CheckedClient(user=person, expires_at=soon, answers=answers)
    before = stored()

    refused = call(client, approved)

    assert "your access to this server ends before they could answer" in refused.text
    assert stored() == before


def test_a_question_is_recorded_as_one_and_does_not_count_against_the_limit(person, approved):
    ExposedTool.objects.update_or_create(name=approved.tool, defaults={"calls_per_minute": 2})
    client = CheckedClient(user=person, record=True)
    no = CheckedClient(
        user=person, record=True, answers={"confirmation": DECLINE, "confirm": DECLINE}
    )

    token = call(client, approved).data["confirmation"]
    call(no, approved)
    done = call(client, approved, confirmation=token)
    limited = call(client, approved)

    records = CallRecord.objects.order_by("pk").values_list("outcome", "rows", "reason")
    assert list(records)[:3] == [
        ("asked", None, ""),
        ("asked", None, ""),
        ("refused", None, "The person did not agree"),
    ]
    assert list(records)[3][0] == "done"
    assert not done.is_error, done.text
    assert "may be called 2 times in a minute" in limited.text
    assert "confirmation" not in limited.text

"""A call says what was done, or shows what would be and has it confirmed."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group

from mcp_django.models import ExposedTool
from tests.clients import CheckedClient, call_with_token
from tests.depot.actions import mark_shipped
from tests.depot.admin import ParcelAdmin
from tests.depot.models import Driver, Parcel
from tests.depot.steps import call
from tests.shop.models import Customer

# Of packages that were written for Django 6.0.
pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:Overriding get_action")]


@pytest.fixture
def parcels(db):
    return [Parcel.objects.create(number=f"n{n}", tenant="acme") for n in range(3)]


def statuses():
    return list(Parcel.objects.order_by("pk").values_list("status", flat=True))


@pytest.mark.parametrize(
    ("pks", "more"),
    [
        ([0, "0"], {}),
        ("[0]", {}),
        ("0", {}),
        ([0.0], {}),
        # Records that are named are found whatever else is empty.
        ([0], {"filters": {}, "exclude": {}, "search": "", "answer": {}, "confirmation": ""}),
        ([0], {"filters": "{}", "search": None, "answer": "", "confirmation": None}),
    ],
)
def test_keys_are_read_as_models_write_them(boss, parcels, pks, more):
    key = parcels[0].pk
    sent = pks.replace("0", str(key)) if isinstance(pks, str) else [type(n)(key) for n in pks]

    done = call(boss, "mark_shipped", pks=sent, **more)

    # At once, as no filter could mean more of them.
    messages = [{"level": "success", "text": "1 shipped."}]
    assert done.data == {"outcome": "done", "records": 1, "messages": messages}
    assert statuses() == ["shipped", "waiting", "waiting"]


def test_an_error_message_of_the_admin_is_an_error_and_its_log_names_the_assistant(boss, parcels):
    answer = call(boss, "lose_all", *parcels)
    call(boss, "log_each", *parcels[:1])

    assert answer.is_error
    assert answer.data["messages"] == [{"level": "error", "text": "They cannot be found."}]
    assert "mcp_django.testing" in LogEntry.objects.get().get_change_message()


def test_of_an_action_that_logs_nothing_the_log_says_that_it_ran(boss, parcels, monkeypatch):
    call(boss, "mark_shipped", *parcels[:2])
    monkeypatch.setattr(mark_shipped, "mcp_read_only", True, raising=False)
    call(boss, "mark_shipped", *parcels[2:])
    call(boss, "lose_all", *parcels[:2])

    entries = LogEntry.objects.order_by("object_id")
    assert [entry.object_id for entry in entries] == [str(parcel.pk) for parcel in parcels[:2]]
    assert {entry.get_change_message() for entry in entries} == {
        "Mark selected parcels as shipped (through an assistant: mcp_django.testing)"
    }


def test_filters_do_where_an_action_only_reads_or_the_list_of_keys_is_empty(boss, parcels):
    answer = call(boss, "list_numbers", filters={"number": "n1"})

    assert answer.data == {"outcome": "file", "records": 1}
    assert call(boss, "mark_shipped", pks=[], filters={"number": "n0"}).data["records"] == 1


def test_more_than_a_thousand_records_are_not_for_one_call(boss):
    Parcel.objects.bulk_create(Parcel(number=f"n{n}") for n in range(1001))

    refusal = boss.refusal("depot_parcel_mark_shipped", filters={"status": "waiting"})

    assert "more than 1000 records" in refusal
    assert "Narrow them" in refusal


def test_staff_can_switch_an_action_off_and_another_on(boss):
    ExposedTool.objects.create(name="depot_parcel_mark_shipped", enabled=False)
    ExposedTool.objects.create(name="depot_driver_praise", enabled=True)
    ExposedTool.objects.create(name="depot_parcel_delete_selected", enabled=True)
    driver = Driver.objects.create(name="Ada")

    names = boss.tools().keys()
    praised = boss.call_tool("depot_driver_praise", pks=[driver.pk], answer={"reason": "good"})

    assert "depot_parcel_mark_shipped" not in names
    assert "depot_driver_praise" in names
    assert "depot_parcel_delete_selected" not in names
    assert praised.data["outcome"] == "done"


def test_records_that_are_judged_one_by_one_are_judged_here_too(boss, parcels, monkeypatch):
    def judge(self, request, obj=None):
        return obj is None or obj.number != "n1"

    monkeypatch.setattr(ParcelAdmin, "has_view_permission", judge)

    shown = call(boss, "mark_shipped", filters={"status": "waiting"}).data
    refused = call(boss, "mark_shipped", *parcels)

    assert shown["records"] == 2
    assert shown["question"].endswith(": n0, n2.")
    assert refused.text.startswith(f"Not found: {parcels[1].pk}. Nothing was done.")
    assert set(statuses()) == {"waiting"}


# More in the form of the menu than the action


def test_what_the_menu_asks_beside_the_action_is_part_of_the_answer(boss):
    driver = Driver.objects.create(name="Ada")

    asked = boss.call_tool("depot_driver_rename", pks=[driver.pk])
    done = boss.call_tool(
        "depot_driver_rename", pks=[driver.pk], answer={"reason": "Eve", "weight": 1.5}
    )

    assert asked.is_error
    assert "answer: missing reason. It takes: " in asked.text
    assert '"maxLength":20' in asked.text
    assert done.data["messages"][0]["text"] == "Renamed, 1.5."
    driver.refresh_from_db()
    assert driver.name == "Eve"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"reason": "x" * 21}, '"messages":[{"level":"warning","text":"No action selected."}]'),
        ({"reason": "x", "weight": "heavy"}, "answer: weight: 'heavy' is not a number."),
    ],
)
def test_what_is_wrong_in_the_menu_is_told_and_nothing_is_done(boss, answer, sentence):
    driver = Driver.objects.create(name="Ada")

    assert sentence in boss.refusal("depot_driver_rename", pks=[driver.pk], answer=answer)
    assert Driver.objects.get().name == "Ada"


def test_an_action_that_is_declared_destructive_is_asked_about_for_named_records(
    asker, boss, parcels, monkeypatch
):
    monkeypatch.setattr(mark_shipped, "mcp_destructive", True, raising=False)

    previewed = call(boss, "mark_shipped", parcels[0])
    untouched = statuses()
    done = call(asker, "mark_shipped", parcels[0])

    assert previewed.data["outcome"] == "asks"
    assert set(untouched) == {"waiting"}
    assert asker.questions.keys() == {"confirmation"}
    assert done.data["outcome"] == "done"


# The records are found as find_records finds them, and under the same guard

NOTHING = "An empty value names none."


@pytest.fixture
def greeter(make_user):
    """Greets customers, whose names may be searched."""
    names = ("view_customer", "change_customer")
    for name, country in (("Ada", "FR"), ("Adam", "DE"), ("Bea", "FR")):
        Customer.objects.create(name=name, country=country, credit_rating=7)
    return CheckedClient(user=make_user("greeter", *names, is_staff=True))


def test_filters_exclude_and_search_narrow_together(greeter):
    query = {"search": "ada", "filters": {"country__in": ["FR", "DE"]}, "exclude": {"id": 0}}

    found = greeter.call_tool("shop_customer_greet", **query)
    query["exclude"] = {"country": "DE"}
    fewer = greeter.call_tool("shop_customer_greet", **query)

    assert found.data["records"] == 2
    assert fewer.data["records"] == 1
    assert fewer.data["question"].endswith("1 record: Ada.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, 'Name the records: by "pks", or by "filters", "exclude", "search".'),
        ({"pks": []}, NOTHING),
        ({"pks": list(range(10_000))}, "Argument pks: Expected a list of length <= 1000."),
        *(({"pks": keys}, "Argument pks") for keys in ([True], True)),
        ({"pk": 1}, "Unknown argument 'pk'. Did you mean pks?"),
        ({"pks": [1], "dry_run": True}, "Unknown argument 'dry_run'."),
        *(({"pks": [1], "answer": answer}, "Argument answer") for answer in (5, "yes")),
        ({"filters": {"number": "nope"}}, "These filters find no record. Nothing was done."),
        ({"filters": {"tenant": "acme"}}, "'tenant' cannot be used in filters."),
        ({"exclude": {}}, NOTHING),
        ({"search": ""}, NOTHING),
        ({"search": " \t\u2003"}, "Empty filters would select every record."),
        ({"filters": {}, "exclude": {}, "search": ""}, NOTHING),
        ({"exclude": None, "search": None}, "Name the records"),
        *(
            ({"pks": [1], **more}, "Name the records")
            for more in ({"exclude": {"id": 1}}, {"search": "n"})
        ),
        ({"exclude": {"status__regex": "."}}, "status has the operators exact"),
        ({"exclude": {f"number__{n}": n for n in range(200)}}, "At most"),
        ({"exclude": ["status"]}, "Argument exclude"),
        ({"search": {"a": 1}}, "Argument search"),
        ({"search": "n0"}, "has no search; use filters"),
        ({"any_of": [{"status": "lost"}]}, "Unknown argument 'any_of'."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_selection_that_means_nothing_is_refused_in_words(boss, parcels, arguments, sentence):
    refusal = boss.refusal("depot_parcel_mark_shipped", **arguments)

    assert sentence in refusal
    # That of a change could be taken for an order.
    assert "A valid call" not in refusal
    assert set(statuses()) == {"waiting"}


@pytest.mark.parametrize("term", ["7", "FR", "a " * 9, "x" * 200, "a\x00b"])
def test_a_search_finds_nothing_by_what_is_not_searched(greeter, term):
    assert "Greeted" not in greeter.refusal("shop_customer_greet", search=term)


def test_what_is_excluded_leaves_only_records_of_the_caller(make_user, depot, parcels):
    theirs = Parcel.objects.create(number="n9", tenant="other")
    user = make_user("clerk", "view_parcel", "change_parcel", is_staff=True)
    user.groups.add(Group.objects.create(name="acme"))

    done = call_with_token(
        CheckedClient(user=user), "depot_parcel_mark_shipped", exclude={"number": "n1"}
    )

    theirs.refresh_from_db()
    assert done.data["records"] == 2
    assert theirs.status == "waiting"
    assert statuses() == ["shipped", "waiting", "shipped", "waiting"]

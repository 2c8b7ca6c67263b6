"""A call says what was done, or shows what would be and has it confirmed."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry

from mcp_django.exposure.tools.action_calls import NEEDS_ANSWER
from mcp_django.models import ExposedTool
from mcp_django.testing import DECLINE
from tests.clients import CheckedClient
from tests.depot.actions import mark_shipped
from tests.depot.admin import ParcelAdmin
from tests.depot.models import Driver, Parcel

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def parcels(db):
    return [Parcel.objects.create(number=f"n{n}", tenant="acme") for n in range(3)]


def keys(parcels):
    return [parcel.pk for parcel in parcels]


def statuses():
    return list(Parcel.objects.order_by("pk").values_list("status", flat=True))


def call(client, name, **arguments):
    return client.call_tool(f"depot_parcel_{name}", **arguments)


def test_records_that_are_named_are_acted_on_at_once(boss, parcels):
    done = call(boss, "mark_shipped", pks=keys(parcels[:2]))

    assert done.data == {
        "outcome": "done",
        "records": 2,
        "messages": [{"level": "success", "text": "2 shipped."}],
    }
    assert statuses() == ["shipped", "shipped", "waiting"]


def test_keys_may_be_texts_and_come_twice(boss, parcels):
    done = call(boss, "mark_shipped", pks=[parcels[0].pk, str(parcels[0].pk)])

    assert done.data["records"] == 1


@pytest.mark.parametrize(
    "empty",
    [
        {"filters": {}, "exclude": {}, "search": "", "answer": {}, "confirmation": ""},
        {"filters": "{}", "search": None, "answer": "", "confirmation": None},
    ],
)
def test_records_that_are_named_are_found_whatever_else_is_empty(boss, parcels, empty):
    done = call(boss, "mark_shipped", pks=keys(parcels[:1]), **empty)

    assert not done.is_error, done.text
    assert statuses() == ["shipped", "waiting", "waiting"]


@pytest.mark.parametrize("pks", ["[{0}]", "{0}", [0.0]])
def test_keys_are_read_as_models_write_them(boss, parcels, pks):
    key = parcels[0].pk
    sent = pks.format(key) if isinstance(pks, str) else [float(key)]

    done = call(boss, "mark_shipped", pks=sent)

    assert not done.is_error, done.text
    assert statuses() == ["shipped", "waiting", "waiting"]


def test_no_records_are_all_that_an_empty_list_names(boss, parcels):
    refused = call(boss, "mark_shipped", pks=[])
    shown = call(boss, "mark_shipped", pks=[], filters={"number": "n0"})

    assert refused.is_error
    assert "Name the records" in refused.text
    assert shown.data["records"] == 1
    assert statuses() == ["waiting"] * 3


@pytest.mark.parametrize(
    "wrong", [{"answer": 5}, {"answer": "yes"}, {"pks": True}, {"colour": 1}, {"dry_run": "yes"}]
)
def test_a_refused_call_of_an_action_shows_no_example(boss, parcels, wrong):
    refused = call(boss, "mark_shipped", **{"pks": keys(parcels), **wrong})

    assert refused.is_error
    assert refused.text.startswith(("Argument ", "Unknown argument "))
    assert "A valid call" not in refused.text
    assert statuses() == ["waiting"] * 3


def test_an_error_message_of_the_admin_is_an_error(boss, parcels):
    answer = call(boss, "lose_all", pks=keys(parcels))

    assert answer.is_error
    assert answer.data["messages"] == [{"level": "error", "text": "They cannot be found."}]


def test_the_log_of_the_admin_names_the_assistant(boss, parcels):
    call(boss, "log_each", pks=keys(parcels[:1]))

    assert "mcp_django.testing" in LogEntry.objects.get().get_change_message()


def test_an_action_that_only_reads_takes_filters_at_once(boss, parcels):
    answer = call(boss, "list_numbers", filters={"number": "n1"})

    assert answer.data == {"outcome": "file", "records": 1}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, 'Name the records: by "pks", or by "filters", "exclude", "search".'),
        (
            {"pks": [1], "filters": {"id": 1}},
            'Name the records: by "pks", or by "filters", "exclude", "search".',
        ),
        ({"filters": {}}, "An empty value names none."),
        ({"filters": {"number": "nope"}}, "These filters find no record. Nothing was done."),
        ({"filters": {"tenant": "acme"}}, "'tenant' cannot be used in filters."),
        ({"pks": []}, "An empty value names none."),
        ({"pks": list(range(10_000))}, "Argument pks: Expected array of length <= 1000."),
        ({"pks": [True]}, "Argument pks"),
        ({"pk": 1}, "Unknown argument 'pk'. Did you mean pks?"),
        ({"pks": [1], "dry_run": True}, "Unknown argument 'dry_run'."),
    ],
)
def test_a_selection_that_means_nothing_is_refused_in_words(boss, parcels, arguments, sentence):
    answer = call(boss, "mark_shipped", **arguments)

    assert answer.is_error
    assert sentence in answer.text
    assert set(statuses()) == {"waiting"}


def test_more_than_a_thousand_records_are_not_for_one_call(boss):
    Parcel.objects.bulk_create(Parcel(number=f"n{n}") for n in range(1001))

    answer = call(boss, "mark_shipped", filters={"status": "waiting"})

    assert answer.is_error
    assert "more than 1000 records" in answer.text
    assert "Narrow them" in answer.text


@pytest.mark.thorough
def test_a_thousand_are(boss):
    Parcel.objects.bulk_create(Parcel(number=f"n{n}") for n in range(1000))

    done = call(boss, "mark_shipped", pks=list(Parcel.objects.values_list("pk", flat=True)))

    assert done.data["records"] == 1000
    assert set(statuses()) == {"shipped"}


def test_staff_can_switch_an_action_off_and_another_on(boss):
    ExposedTool.objects.create(name="depot_parcel_mark_shipped", enabled=False)
    ExposedTool.objects.create(name="depot_driver_praise", enabled=True)
    ExposedTool.objects.create(name="depot_parcel_delete_selected", enabled=True)
    driver = Driver.objects.create(name="Ada")

    names = {tool["name"] for tool in boss.list_tools()}
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
    refused = call(boss, "mark_shipped", pks=keys(parcels))

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


def test_what_the_menu_finds_wrong_is_told_and_nothing_is_done(boss):
    driver = Driver.objects.create(name="Ada")

    refused = boss.call_tool("depot_driver_rename", pks=[driver.pk], answer={"reason": "x" * 21})

    assert refused.is_error
    assert refused.data["outcome"] == "not_done"
    assert refused.data["messages"] == [{"level": "warning", "text": "No action selected."}]
    driver.refresh_from_db()
    assert driver.name == "Ada"


def test_a_value_that_the_menu_cannot_hold_is_told(boss):
    driver = Driver.objects.create(name="Ada")

    refused = boss.call_tool(
        "depot_driver_rename", pks=[driver.pk], answer={"reason": "x", "weight": "heavy"}
    )

    assert refused.is_error
    assert "answer: weight: 'heavy' is not a number." in refused.text


# Clients that can ask a person


@pytest.fixture
def asker(depot, make_user):
    user = make_user("asker", is_staff=True, is_superuser=True)

    def make(**answers):
        return CheckedClient(user=user, answers=answers)

    return make


def test_a_person_who_can_be_asked_is_asked_in_place_of_a_token(asker, parcels):
    client = asker(confirmation={"confirm": True})

    done = call(client, "mark_shipped", filters={"number__in": ["n0", "n1"]})

    asked = client.questions["confirmation"]["params"]["message"]
    assert asked == (
        f"Mark selected parcels as shipped? 2 records: {parcels[0].number}, {parcels[1].number}."
    )
    assert done.data["outcome"] == "done"
    assert statuses() == ["shipped", "shipped", "waiting"]


def test_a_person_agrees_to_a_page_with_its_answer(asker, parcels):
    client = asker(confirmation={"confirm": True})
    pks = keys(parcels[:1])

    page = call(client, "ship", pks=pks)
    done = call(client, "ship", pks=pks, answer={"carrier": "dhl"})

    asked = client.questions["confirmation"]["params"]["message"]
    assert page.data["outcome"] == "asks"
    assert asked == (f"Ship? 1 record: {parcels[0].number}.\n\n1 parcels leave.\n\nCarrier: DHL")
    assert done.data["messages"][0]["text"] == "1 by dhl, 1 copies."


def test_a_page_behind_filters_is_agreed_to_once(asker, parcels):
    client = asker(confirmation={"confirm": True})

    done = call(client, "ship", filters={"number": "n0"}, answer={"carrier": "ups"})

    assert done.data["messages"][0]["text"] == "1 by ups, 1 copies."


@pytest.mark.parametrize("given", [{}, {"filters": {"number": "n0"}}])
def test_a_client_that_can_ask_gets_no_token(asker, parcels, given):
    client = asker(confirmation={"confirm": True})

    page = call(client, "ship", **(given or {"pks": keys(parcels[:1])}))

    assert page.data["outcome"] == "asks"
    assert "confirmation" not in page.data
    assert page.data["next"] == NEEDS_ANSWER


def test_an_action_that_is_declared_destructive_is_asked_about_for_named_records(
    asker, boss, parcels, monkeypatch
):
    monkeypatch.setattr(mark_shipped, "mcp_destructive", True, raising=False)
    pks = keys(parcels[:1])

    refused = call(asker(confirmation=DECLINE), "mark_shipped", pks=pks)
    previewed = call(boss, "mark_shipped", pks=pks)
    untouched = statuses()
    done = call(asker(confirmation={"confirm": True}), "mark_shipped", pks=pks)

    assert refused.is_error
    assert previewed.data["outcome"] == "asks"
    assert set(untouched) == {"waiting"}
    assert done.data["outcome"] == "done"

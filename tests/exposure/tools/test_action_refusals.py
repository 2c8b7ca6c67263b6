"""What an action with pages refuses, before anybody confirms it and with nothing done."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from mcp_django.models import Upload
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.depot.models import Driver, Parcel, Van
from tests.depot.steps import UNTOUCHED, call, go_through, state

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def parcel(db):
    return Parcel.objects.create(number="n1")


@pytest.fixture
def asker(depot, make_user):
    """A client that asks its person, who agrees."""
    user = make_user("asker", is_staff=True, is_superuser=True)
    return CheckedClient(user=user, answers={"confirmation": {"confirm": True}})


# A form that refuses is asked before a person is


def test_a_combination_that_the_form_refuses_is_refused_before_there_is_a_confirmation(
    boss, parcel
):
    refused = call(boss, "ship_checked", parcel, answer={"carrier": "ups", "copies": 3})

    assert refused.is_error
    assert refused.data["errors"] == {
        "": [{"message": "UPS takes at most 2 copies.", "code": "too_many"}]
    }
    assert refused.data["answer_schema"]["properties"]["copies"]["maximum"] == 5
    assert refused.data["next"] == (
        "Nothing was done. Correct carrier and copies in answer, as errors and answer_schema say, "
        "and call again with the corrected arguments."
    )
    assert "confirmation" not in refused.data
    assert state(parcel) == UNTOUCHED


def test_a_person_is_not_asked_about_what_the_form_refuses(asker, parcel):
    refused = call(asker, "ship_checked", parcel, answer={"carrier": "ups", "copies": 3})
    asked = dict(asker.questions)
    done = call(asker, "ship_checked", parcel, answer={"carrier": "dhl", "copies": 3})

    assert refused.is_error
    assert asked == {}
    assert done.data["outcome"] == "done"
    assert state(parcel) == ("shipped", "dhl")


def test_a_confirmation_survives_a_combination_that_the_form_refuses(boss, parcel):
    token = call(boss, "ship_checked", parcel).data["confirmation"]
    wrong, right = {"carrier": "ups", "copies": 3}, {"carrier": "ups", "copies": 2}

    refused = call(boss, "ship_checked", parcel, answer=wrong, confirmation=token)
    done = call(boss, "ship_checked", parcel, answer=right, confirmation=token)

    assert refused.data["next"].endswith("the corrected arguments and the same confirmation.")
    assert state(parcel) == ("shipped", "ups")
    assert done.data["outcome"] == "done"


def test_a_confirmation_of_values_is_for_no_others(boss, parcel):
    token = call(boss, "ship_checked", parcel, answer={"carrier": "dhl"}).data["confirmation"]

    other = call(boss, "ship_checked", parcel, answer={"carrier": "ups"}, confirmation=token)
    before = state(parcel)
    same = call(boss, "ship_checked", parcel, answer={"carrier": "dhl"}, confirmation=token)

    assert "This confirmation was given for another call." in other.text
    assert before == UNTOUCHED
    assert same.data["outcome"] == "done"


def test_a_declared_form_is_checked_before_the_records_are_confirmed(boss, asker, parcel):
    wrong, unknown = {"carrier": "ups", "copies": 3}, {"carrier": "ups", "speed": 1}

    shown = call(boss, "ship_checked_first", parcel, answer=wrong)
    asked = call(asker, "ship_checked_first", parcel, answer=wrong)
    strange = call(boss, "ship_checked_first", parcel, answer=unknown)
    right = go_through(boss, "ship_checked_first", parcel, *[{"carrier": "ups"}] * 2)

    assert shown.data["errors"][""][0]["message"] == "UPS takes at most 2 copies."
    assert "page" not in shown.data
    assert "confirmation" not in shown.data
    assert asked.is_error
    assert asker.questions == {}
    assert "answer: the page has no 'speed'. The page asks: carrier, copies." in strange.text
    assert right.data["outcome"] == "done"


def test_a_form_that_cannot_be_checked_is_left_to_its_view(boss, parcel, caplog):
    wrong = go_through(boss, "ship_with_stock", parcel, *[{"carrier": "ups"}] * 2)
    right = go_through(boss, "ship_with_stock", parcel, *[{"carrier": "dhl"}] * 2)

    assert "The form of the page 'Ship' cannot be checked." in caplog.text
    assert wrong.data["errors"][""][0]["message"] == "Sold out."
    assert right.data["outcome"] == "done"


def test_what_the_view_refuses_of_a_declared_form_is_told_for_that_form(boss, parcel):
    wrong = go_through(boss, "ship_declared_stock", parcel, *[{"carrier": "ups"}] * 2)
    token = wrong.data["confirmation"]
    right = call(
        boss, "ship_declared_stock", parcel, answer={"carrier": "dhl"}, confirmation=token
    )

    assert wrong.data["outcome"] == "asks again"
    assert wrong.data["errors"][""][0]["message"] == "Sold out."
    assert list(wrong.data["answer_schema"]["properties"]) == ["carrier"]
    assert right.data["outcome"] == "done"


def test_a_form_of_which_the_page_shows_a_part_is_left_to_its_view(boss, parcel):
    done = go_through(boss, "load_van", parcel, None, {"plate": "SOLD"})

    assert done.data["outcome"] == "done"
    assert state(parcel) == ("waiting", "SOLD")


def test_the_form_of_a_record_is_checked_and_saves_nothing(boss, parcel):
    answer = {"plate": "SOLD", "kilometres": 1}

    refused = call(boss, "register_van", parcel, answer=answer)
    done = go_through(boss, "register_van", parcel, *[{**answer, "plate": "A 1"}] * 2)

    assert list(refused.data["errors"]) == ["plate"]
    assert "Correct plate in answer" in refused.data["next"]
    assert done.data["outcome"] == "done"
    assert [van.plate for van in Van.objects.all()] == ["A 1"]


def test_a_file_that_the_form_has_read_is_whole_for_its_view(boss, parcel):
    answer = {
        "at": "2026-01-31T14:30:00+00:00",
        "proof": {"filename": "a.txt", "data": "aGVsbG8="},
    }
    wrong = {**answer, "proof": {"filename": "a.txt", "data": "bm8="}}

    refused = call(boss, "date_it", parcel, answer=wrong)
    done = go_through(boss, "date_it", parcel, answer, answer)

    assert refused.data["errors"]["proof"][0]["message"] == "This is no proof."
    assert done.data["messages"][0]["text"] == "2026-01-31"


def test_an_upload_is_a_file_of_a_page_and_has_its_name_in_the_question(boss, parcel):
    user = get_user_model().objects.get(username="boss")
    upload, other = (
        Upload.objects.create(user=user, filename=f"{name}.txt", data=b"hello", size=5)
        for name in ("proof", "other")
    )
    answer = {"at": "2026-01-31T14:30:00+00:00", "proof": upload.address}

    asked = call(boss, "date_it", parcel, answer=answer)
    token = asked.data["confirmation"]
    replaced = call(
        boss, "date_it", parcel, answer={**answer, "proof": other.address}, confirmation=token
    )
    done = call(boss, "date_it", parcel, answer=answer, confirmation=token)

    assert "Proof: proof.txt" in asked.data["question"]
    assert "This confirmation was given for another call." in replaced.text
    assert done.data["messages"][0]["text"] == "2026-01-31"


# Hostile


def test_the_confirmation_of_somebody_else_is_none_and_no_page_is_sent(boss, clerk, parcel):
    first = {"carrier": "dhl"}
    whole = {**first, "page_2": {"service": "paket"}}
    token = go_through(boss, "write_each", parcel, first).data["confirmation"]
    stolen = call(clerk, "write_each", parcel, answer=first, confirmation=token)
    before = state(parcel)
    token = call(boss, "write_each", parcel, answer=first, confirmation=token).data["confirmation"]
    Parcel.objects.update(carrier="")

    later = call(clerk, "write_each", parcel, answer=whole, confirmation=token)

    assert "This confirmation is not valid." in stolen.text
    assert before == UNTOUCHED
    assert "This confirmation is not valid." in later.text
    assert state(parcel) == UNTOUCHED


def test_a_confirmation_of_the_second_page_is_good_once(boss, parcel):
    first = {"carrier": "dhl"}
    whole = {**first, "page_2": {"service": "paket"}}
    token = go_through(boss, "write_each", parcel, first, first).data["confirmation"]
    call(boss, "write_each", parcel, answer=whole, confirmation=token)
    Parcel.objects.update(status="waiting", carrier="")

    second = call(boss, "write_each", parcel, answer=whole, confirmation=token)

    assert "This confirmation was used already." in second.text
    assert state(parcel) == UNTOUCHED


def test_a_confirmation_of_the_second_page_is_for_no_other_first_one(boss, parcel):
    token = go_through(boss, "write_each", parcel, *[{"carrier": "dhl"}] * 2).data["confirmation"]
    Parcel.objects.update(carrier="")
    other = {"carrier": "ups", "page_2": {"service": "saver"}}

    refused = call(boss, "write_each", parcel, answer=other, confirmation=token)

    assert "This confirmation was given for another call." in refused.text
    assert state(parcel) == UNTOUCHED


def test_a_confirmation_does_not_repeat_what_a_page_has_written(boss, parcel):
    first = {"carrier": "dhl"}
    token = go_through(boss, "write_each", parcel, first, first).data["confirmation"]
    bad = {**first, "page_2": {"service": "paket", "note": "bad"}}
    refused = call(boss, "write_each", parcel, answer=bad, confirmation=token)
    Parcel.objects.update(carrier="")

    second = call(boss, "write_each", parcel, answer=bad, confirmation=token)

    assert refused.data["next"].endswith("call again with the corrected arguments.")
    assert "This confirmation was used already." in second.text
    assert state(parcel) == UNTOUCHED


def test_a_confirmation_of_the_second_page_is_for_the_first_as_it_was_shown(boss, parcel):
    answer = {"reason": "late"}
    token = go_through(boss, "refund", parcel, answer, answer).data["confirmation"]
    Driver.objects.create(name="Recession")

    refused = call(boss, "refund", parcel, answer=answer, confirmation=token)

    assert "This confirmation was given for another call." in refused.text
    assert state(parcel) == UNTOUCHED


def test_a_confirmation_of_the_first_page_does_not_send_the_second(boss, parcel):
    whole = {"carrier": "dhl", "page_2": {"service": "paket"}}

    shown = go_through(boss, "send_hidden", parcel, None, whole)

    assert shown.data["outcome"] == "asks"
    assert shown.data["page"]["number"] == 2
    assert state(parcel) == UNTOUCHED


def test_a_right_that_is_lost_between_two_pages_ends_the_wizard(clerk, parcel, django_user_model):
    first = {"carrier": "dhl"}
    whole = {**first, "page_2": {"service": "paket"}}
    token = go_through(clerk, "write_each", parcel, first, first).data["confirmation"]
    Parcel.objects.update(carrier="")
    user = django_user_model.objects.get(username="clerk")
    user.user_permissions.remove(*user.user_permissions.filter(codename="change_parcel"))

    with pytest.raises(ProtocolFailure, match="Unknown tool: depot_parcel_write_each"):
        call(clerk, "write_each", parcel, answer=whole, confirmation=token)

    assert state(parcel) == UNTOUCHED


def test_a_record_that_is_gone_between_two_pages_ends_the_wizard(boss, parcel):
    first = {"carrier": "dhl"}
    whole = {**first, "page_2": {"service": "paket"}}
    token = go_through(boss, "send_hidden", parcel, first, first).data["confirmation"]
    key = parcel.pk
    Parcel.objects.all().delete()

    refused = boss.call_tool(
        "depot_parcel_send_hidden", pks=[key], answer=whole, confirmation=token
    )

    assert refused.text.startswith(f"Not found: {key}. Nothing was done.")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("widen_late", "The page would act on other records than you named."),
        ("across_late", "The page would act on more records than you named."),
        ("away_late", "The page leads out of this admin."),
        ("aside_late", "The page leads out of this admin."),
    ],
)
def test_a_second_page_that_does_more_than_was_asked_is_not_sent(boss, parcel, name, sentence):
    other = Parcel.objects.create(number="n2")

    refused = call(boss, name, parcel)

    assert refused.is_error
    assert sentence in refused.text
    assert state(parcel) == UNTOUCHED
    assert state(other) == UNTOUCHED


def test_a_wizard_without_an_end_ends_after_ten_pages(boss, parcel):
    refused = call(boss, "go_on", parcel)

    assert refused.text == (
        "The action shows more than 10 pages, which is the most for one call. "
        "Tell the person to run it in the admin."
    )


def test_a_megabyte_of_values_is_not_said_again(boss, parcel):
    long = {"reason": "x" * 1_000_000}
    many = {"reason": "x", "page_2": {f"f{n}": "x" * 90 for n in range(10_000)}}

    refused = call(boss, "refund", parcel, answer=long)
    token = call(boss, "refund", parcel).data["confirmation"]
    strange = call(boss, "refund", parcel, answer=many, confirmation=token)

    assert refused.data["errors"]["reason"][0]["code"] == "max_length"
    assert len(refused.text) < 2_000
    assert strange.text == "answer.page_2: the page has no 'f0'. The page asks: nothing."
    assert state(parcel) == UNTOUCHED

"""What an action with pages refuses, before anybody confirms it and with nothing done."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from mcp_django.models import Upload
from tests.clients import CheckedClient
from tests.depot.models import Parcel, Van
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
    right = go_through(boss, "ship_declared_stock", parcel, *[{"carrier": "dhl"}] * 2)

    assert wrong.data["outcome"] == "asks again"
    assert wrong.data["errors"][""][0]["message"] == "Sold out."
    assert list(wrong.data["answer_schema"]["properties"]) == ["carrier"]
    assert right.data["outcome"] == "done"


def test_a_form_of_which_the_page_shows_a_part_is_left_to_its_view(boss, parcel):
    done = go_through(boss, "load_van", parcel, *[{"plate": "SOLD"}] * 2)

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
    assert "This confirmation is not valid for this call" in replaced.text
    assert done.data["messages"][0]["text"] == "2026-01-31"


# Hostile


def test_a_megabyte_of_values_is_not_said_again(boss, parcel):
    long = {"plate": "x" * 1_000_000, "kilometres": 1}
    many = {"plate": "A 1", **{f"f{n}": "x" * 90 for n in range(10_000)}}

    refused = call(boss, "register_van", parcel, answer=long)
    strange = call(boss, "register_van", parcel, answer=many)

    assert refused.data["errors"]["plate"][0]["code"] == "max_length"
    assert len(refused.text) < 2_000
    assert strange.text == "answer: the page has no 'f0'. The page asks: plate, kilometres."
    assert not Van.objects.exists()

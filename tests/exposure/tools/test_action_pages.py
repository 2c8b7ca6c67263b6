"""What an action answers to its page: it ends, refuses, or goes on with another page."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from mcp_django.models import Upload
from tests.depot.models import Van
from tests.depot.steps import UNTOUCHED, call, go_through, state
from tests.writes.calls import asked

# Of packages that were written for Django 6.0.
pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore:Overriding get_action")]


@pytest.mark.parametrize("kind", ["other", "bound", "same", "question"])
def test_an_action_that_goes_on_after_its_page_leads_a_person_to_the_admin(boss, parcel, kind):
    answer = {"kind": kind}

    shown = go_through(boss, "go_on", parcel, answer, answer)

    assert not shown.is_error
    told = shown.data
    assert told.pop("page")["title"] == "And then?"
    assert told == {
        "outcome": "goes on",
        "records": 1,
        "messages": [{"level": "info", "text": f"Begun with {kind}."}],
        "link": "http://testserver/depot/depot/parcel/",
        "next": "This action goes on with another page of the admin, which only a person can "
        "answer: they can go on at link, where they choose the action again.",
    }
    assert state(parcel) == ("waiting", kind)


@pytest.mark.parametrize(
    ("name", "kind", "calls", "is_error"),
    [
        ("go_on", "failure", 2, True),
        ("go_on_first", "other", 2, False),
        ("go_on_freely", "other", 1, False),
    ],
)
def test_an_action_goes_on_whenever_its_records_are_confirmed_and_may_say_an_error(
    boss, parcel, name, kind, calls, is_error
):
    shown = go_through(boss, name, parcel, *[{"kind": kind}] * calls)

    assert shown.data["outcome"] == "goes on"
    assert shown.is_error is is_error
    assert state(parcel) == ("waiting", kind)


def test_a_person_is_asked_about_the_first_page_only(depot, asker, parcel):
    shown = call(asker, "go_on", parcel, answer={"kind": "question"})

    assert asked(asker) == f"Go on? 1 record: {parcel.number}.\n\nWhich kind?\n\nKind: question"
    assert shown.data["outcome"] == "goes on"


def test_html_that_comes_again_is_a_page_that_took_no_value(boss, parcel):
    again = go_through(boss, "stand_still", parcel, {"word": "a"}, {"word": "a"})

    assert again.is_error
    assert again.data["outcome"] == "asks again"
    assert again.data["next"].startswith("The admin asks again. Correct word in answer, as errors")


def test_a_page_to_be_read_is_the_end(boss, parcel):
    done = go_through(boss, "end_reading", parcel, None, None)

    assert done.data["outcome"] == "page"
    assert "Nothing to fill in, 1 parcels." in done.data["page"]["text"]
    # What the page before said is said at the end, too.
    assert done.data["messages"][0]["text"] == "Begun."
    assert state(parcel)[0] == "shipped"


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


@pytest.mark.parametrize(
    ("name", "fields"),
    [("ship_with_stock", ["carrier", "note"]), ("ship_declared_stock", ["carrier"])],
)
def test_a_form_that_cannot_be_checked_is_left_to_its_view_which_tells_what_it_refuses(
    boss, parcel, caplog, name, fields
):
    wrong = go_through(boss, name, parcel, *[{"carrier": "ups"}] * 2)
    right = go_through(boss, name, parcel, *[{"carrier": "dhl"}] * 2)

    could_not = "The form of the page 'Ship' cannot be checked." in caplog.text
    assert could_not is (name == "ship_with_stock")
    assert wrong.data["outcome"] == "asks again"
    assert wrong.data["errors"][""][0]["message"] == "Sold out."
    assert list(wrong.data["answer_schema"]["properties"]) == fields
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

"""What an action answers to its page: it ends, refuses, or goes on with another page."""

from __future__ import annotations

import pytest

from tests.clients import CheckedClient
from tests.depot.models import Parcel
from tests.depot.steps import call, go_through, state

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]


@pytest.fixture
def parcel(db):
    return Parcel.objects.create(number="n1")


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


def test_without_a_public_url_the_link_is_a_path(boss, parcel, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "PUBLIC_URL": ""}

    shown = go_through(boss, "go_on", parcel, *[{"kind": "other"}] * 2)

    assert shown.data["link"] == "/depot/depot/parcel/"


def test_an_action_that_goes_on_with_an_error_message_is_an_error(boss, parcel):
    shown = go_through(boss, "go_on", parcel, *[{"kind": "failure"}] * 2)

    assert shown.data["outcome"] == "goes on"
    assert shown.is_error


@pytest.mark.parametrize(("name", "calls"), [("go_on_first", 2), ("go_on_freely", 1)])
def test_an_action_goes_on_whenever_its_records_are_confirmed(boss, parcel, name, calls):
    shown = go_through(boss, name, parcel, *[{"kind": "other"}] * calls)

    assert shown.data["outcome"] == "goes on"
    assert state(parcel) == ("waiting", "other")


def test_a_person_is_asked_about_the_first_page_only(depot, make_user, parcel):
    user = make_user("asker", is_staff=True, is_superuser=True)
    asker = CheckedClient(user=user, answers={"confirmation": {"confirm": True}})

    shown = call(asker, "go_on", parcel, answer={"kind": "question"})

    asked = asker.questions["confirmation"]["params"]["message"]
    assert asked == f"Go on? 1 record: {parcel.number}.\n\nWhich kind?\n\nKind: question"
    assert shown.data["outcome"] == "goes on"


def test_a_confirmation_does_not_send_the_first_page_twice(boss, parcel):
    answer = {"kind": "other"}
    token = call(boss, "go_on", parcel, answer=answer).data["confirmation"]
    call(boss, "go_on", parcel, answer=answer, confirmation=token)
    Parcel.objects.update(carrier="")

    refused = call(boss, "go_on", parcel, answer=answer, confirmation=token)

    assert "This confirmation was used already." in refused.text
    assert state(parcel) == ("waiting", "")


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

"""Actions with several pages are answered page after page, and each page is confirmed first."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from mcp_django.models import SpentConfirmation
from mcp_django.testing import DECLINE
from tests.clients import CheckedClient
from tests.depot.models import Driver, Parcel
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


# Several pages


def test_the_second_page_asks_what_depends_on_the_first(boss, parcel):
    shown = go_through(boss, "send_hidden", parcel, {"carrier": "dhl"}, {"carrier": "dhl"})

    assert shown.data["outcome"] == "asks"
    assert not shown.is_error
    assert shown.data["page"]["number"] == 2
    assert shown.data["page"]["title"] == "Service of dhl"
    assert shown.data["kept"] == ["carrier"]
    services = shown.data["answer_schema"]["properties"]["page_2"]["properties"]["service"]
    assert services["enum"] == ["paket", "express"]
    assert shown.data["next"] == (
        "Nothing was done yet. If this is wanted, call again with the same arguments, page_2 in "
        "answer that fits answer_schema and this confirmation."
    )
    assert state(parcel) == UNTOUCHED


def test_two_pages_with_hidden_controls_are_answered(boss, parcel):
    first = {"carrier": "dhl"}

    done = go_through(
        boss, "send_hidden", parcel, None, first, {**first, "page_2": {"service": "express"}}
    )

    assert done.data["outcome"] == "done"
    assert state(parcel) == ("shipped", "dhl express")


@pytest.mark.thorough
def test_three_pages_that_keep_their_answers_in_the_session_are_answered(boss, parcel):
    first = {"carrier": "ups"}
    second = {**first, "page_2": {"service": "saver", "note": "a"}}
    third = {**second, "page_3": {"copies": 2, "note": "b"}}

    shown = go_through(boss, "send_session", parcel, None, first, second)
    token = shown.data["confirmation"]
    before = state(parcel)
    done = call(boss, "send_session", parcel, answer=third, confirmation=token)

    assert shown.data["kept"] == ["carrier", "page_2.service", "page_2.note"]
    assert before == UNTOUCHED
    # Fields of one name on two pages have a value each.
    assert done.data["messages"] == [{"level": "info", "text": "a 2 b"}]
    assert state(parcel) == ("shipped", "ups saver")


@pytest.mark.thorough
def test_values_that_are_given_ahead_are_checked_and_shown_with_their_page(boss, parcel):
    answer = {"carrier": "dhl", "page_2": {"service": "paket"}}
    wrong = {"carrier": "dhl", "page_2": {"service": "saver"}}

    first = call(boss, "send_hidden", parcel, answer=answer)
    second = call(
        boss, "send_hidden", parcel, answer=answer, confirmation=first.data["confirmation"]
    )
    before = state(parcel)
    done = call(
        boss, "send_hidden", parcel, answer=answer, confirmation=second.data["confirmation"]
    )
    token = call(boss, "send_hidden", parcel).data["confirmation"]
    refused = call(boss, "send_hidden", parcel, answer=wrong, confirmation=token)

    assert second.data["page"]["number"] == 2
    assert second.data["question"].endswith("Carrier: DHL\nService: paket")
    assert second.data["next"].endswith("the same arguments and this confirmation.")
    assert before == UNTOUCHED
    assert done.data["outcome"] == "done"
    assert "answer.page_2: service: 'saver' is not one of: paket, express." in refused.text


def test_a_last_page_that_only_asks_whether_is_confirmed_too(boss, parcel):
    answer = {"reason": "late"}

    shown = go_through(boss, "refund", parcel, answer, answer)
    before = state(parcel)
    token = shown.data["confirmation"]
    done = call(boss, "refund", parcel, answer=answer, confirmation=token)

    assert "Really refund 20 euros?" in shown.data["page"]["text"]
    assert "answer_schema" not in shown.data
    assert before == UNTOUCHED
    assert done.data["messages"][0]["text"] == "Refunded."
    assert state(parcel)[0] == "lost"


def test_a_page_that_has_changed_is_shown_again_in_place_of_being_sent(boss, parcel):
    answer = {"reason": "late"}
    token = go_through(boss, "refund", parcel, answer, answer).data["confirmation"]
    Driver.objects.create(name="Inflation")

    shown = call(boss, "refund", parcel, answer=answer, confirmation=token)
    before = state(parcel)
    done = call(boss, "refund", parcel, answer=answer, confirmation=shown.data["confirmation"])

    assert "Really refund 30 euros?" in shown.data["page"]["text"]
    assert before == UNTOUCHED
    assert done.data["outcome"] == "done"


def test_a_refusal_of_the_second_page_names_its_fields_and_keeps_the_confirmation(boss, parcel):
    first = {"carrier": "ups"}
    shown = go_through(boss, "send_hidden", parcel, first, first)
    token = shown.data["confirmation"]

    bad = {**first, "page_2": {"service": "saver", "note": "bad"}}
    refused = call(boss, "send_hidden", parcel, answer=bad, confirmation=token)
    before = state(parcel)
    good = {**first, "page_2": {"service": "saver", "note": "good"}}
    done = call(boss, "send_hidden", parcel, answer=good, confirmation=token)

    assert refused.is_error
    assert refused.data["errors"] == {"note": [{"message": "No such note.", "code": ""}]}
    assert "Correct note in answer.page_2" in refused.data["next"]
    assert before == UNTOUCHED
    assert done.data["messages"][0]["text"] == "Note: good"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"carrier": "fedex", "page_2": {"service": "saver"}}, "answer: carrier: 'fedex' is"),
        ({"page_2": {"service": "saver"}}, "answer: missing carrier. The page asks: carrier."),
        ({"carrier": "ups", "colour": 1}, "answer: the page has no 'colour'."),
        ({"carrier": "ups", "page_1": {}}, "answer: the page has no 'page_1'."),
        ({"carrier": "ups", "page_11": {}}, "answer: the page has no 'page_11'."),
        ({"carrier": "ups", "page_2": "saver"}, "answer: the page has no 'page_2'."),
    ],
)
def test_what_the_first_page_does_not_take_is_refused_and_no_page_is_sent(
    boss, parcel, answer, sentence
):
    token = call(boss, "write_each", parcel).data["confirmation"]

    refused = call(boss, "write_each", parcel, answer=answer, confirmation=token)

    assert refused.is_error
    assert sentence in refused.text
    assert state(parcel) == UNTOUCHED
    assert not SpentConfirmation.objects.exists()


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ({"service": "saver", "colour": 1}, "answer.page_2: the page has no 'colour'."),
        ({"note": "x"}, "answer.page_2: missing service. The page asks: service, note."),
        ({"service": "saver", "_selected_action": 1}, "the page has no '_selected_action'."),
        ({"service": "saver", "carrier": "dhl"}, "answer.page_2: the page has no 'carrier'."),
    ],
)
def test_what_the_second_page_does_not_take_is_refused_and_the_confirmation_stays_good(
    boss, parcel, second, sentence
):
    first = {"carrier": "ups"}
    token = go_through(boss, "send_hidden", parcel, first, first).data["confirmation"]

    wrong = {**first, "page_2": second}
    refused = call(boss, "send_hidden", parcel, answer=wrong, confirmation=token)
    before = state(parcel)
    right = {**first, "page_2": {"service": "saver"}}
    done = call(boss, "send_hidden", parcel, answer=right, confirmation=token)

    assert refused.is_error
    assert sentence in refused.text
    assert before == UNTOUCHED
    assert done.data["outcome"] == "done"


def test_values_for_a_page_that_never_came_are_named_when_all_is_done(boss, parcel):
    first = {"carrier": "ups"}
    answer = {**first, "page_2": {"service": "saver"}, "page_3": {"copies": 1}}

    done = go_through(boss, "send_hidden", parcel, answer, answer, answer)

    assert done.data["outcome"] == "done"
    assert done.data["note"] == (
        "There was no page for page_3 in answer: these values were not used."
    )


def test_a_control_of_the_same_name_is_another_page_where_hidden_ones_differ(boss, parcel):
    answer = {"word": "one", "page_2": {"word": "two"}}

    done = go_through(boss, "ask_twice", parcel, answer, answer, answer)

    assert done.data["messages"][0]["text"] == "one two"


def test_html_that_comes_again_is_a_page_that_took_no_value(boss, parcel):
    again = go_through(boss, "stand_still", parcel, {"word": "a"}, {"word": "a"})

    assert again.is_error
    assert again.data["outcome"] == "asks again"
    assert "number" not in again.data["page"]
    assert "confirmation" in again.data
    assert again.data["next"].startswith("The admin asks again. Correct the answer and call again")


def test_a_page_to_be_read_is_the_end(boss, parcel):
    done = go_through(boss, "end_reading", parcel, None, None)

    assert done.data["outcome"] == "page"
    assert "Nothing to fill in, 1 parcels." in done.data["page"]["text"]
    # What earlier pages said is said at the end, too.
    assert done.data["messages"][0]["text"] == "Begun."
    assert state(parcel)[0] == "shipped"


def test_a_wizard_without_confirmations_takes_all_values_in_one_call(boss, parcel):
    missing = call(boss, "send_freely", parcel)
    before = state(parcel)
    done = call(boss, "send_freely", parcel, answer={"reason": "late"})

    assert list(missing.data["answer_schema"]["properties"]) == ["reason"]
    assert before == UNTOUCHED
    assert done.data["messages"][0]["text"] == "Refunded."


def test_records_that_are_confirmed_first_are_so_for_all_pages_that_were_seen(boss, parcel):
    answer = {"reason": "late"}
    shown = go_through(boss, "refund_first", parcel, answer, answer)
    token = shown.data["confirmation"]

    unseen = call(boss, "refund_first", parcel, answer=answer, confirmation=token)
    before = state(parcel)
    seen = {**answer, "page_2": {}}
    token = unseen.data["confirmation"]
    done = call(boss, "refund_first", parcel, answer=seen, confirmation=token)

    assert shown.data["page"]["number"] == 2
    assert shown.data["answer_schema"]["required"] == ["page_2"]
    assert before == UNTOUCHED
    assert done.data["outcome"] == "done"


@pytest.mark.thorough
def test_a_declared_form_is_that_of_the_first_page_only(boss, parcel):
    answer = {"reason": "late"}

    listed = next(
        one["inputSchema"]["properties"]["answer"]
        for one in boss.list_tools()
        if one["name"] == "depot_parcel_refund_declared"
    )
    done = go_through(boss, "refund_declared", parcel, *[answer] * 3)

    # Clients that check what they send must let page_2 pass.
    assert listed.get("additionalProperties", True) is True
    assert done.data["messages"][0]["text"] == "Refunded."


# A client that can ask its person


def test_a_person_is_asked_once_about_each_page(asker, parcel):
    first = {"carrier": "dhl"}
    whole = {**first, "page_2": {"service": "express"}}

    shown = call(asker, "send_hidden", parcel, answer=first)
    about_first = asker.questions["confirmation"]["params"]["message"]
    before = state(parcel)
    token = shown.data["confirmation"]
    done = call(asker, "send_hidden", parcel, answer=whole, confirmation=token)
    about_second = asker.questions["confirmation"]["params"]["message"]

    assert about_first == (
        f"Send hidden? 1 record: {parcel.number}.\n\nWho carries them?\n\nCarrier: DHL"
    )
    assert before == UNTOUCHED
    assert about_second == (
        f"Send hidden? 1 record: {parcel.number}.\n\nService of dhl\n\n"
        "Carrier: DHL\nService: express"
    )
    assert done.data["outcome"] == "done"
    assert state(parcel) == ("shipped", "dhl express")


@pytest.mark.thorough
def test_a_person_agrees_to_the_text_of_a_last_page_that_asks_nothing(asker, parcel):
    answer = {"reason": "late"}

    token = call(asker, "refund", parcel, answer=answer).data["confirmation"]
    done = call(asker, "refund", parcel, answer=answer, confirmation=token)

    asked = asker.questions["confirmation"]["params"]["message"]
    assert asked == (
        f"Refund? 1 record: {parcel.number}.\n\nReally refund 20 euros?\n\nReason: late"
    )
    assert done.data["outcome"] == "done"


def test_what_a_person_agreed_to_is_good_for_these_values_only(asker, parcel):
    token = call(asker, "send_hidden", parcel, answer={"carrier": "dhl"}).data["confirmation"]
    asker.questions.clear()
    other = {"carrier": "ups", "page_2": {"service": "saver"}}

    shown = call(asker, "send_hidden", parcel, answer=other, confirmation=token)

    asked = asker.questions["confirmation"]["params"]["message"]
    assert asked == (
        f"Send hidden? 1 record: {parcel.number}.\n\nWho carries them?\n\nCarrier: UPS"
    )
    assert shown.data["page"]["number"] == 2
    assert state(parcel) == UNTOUCHED


def test_a_client_that_can_ask_cannot_use_a_confirmation_that_no_person_gave(asker, parcel):
    mute = CheckedClient(token=asker.token)
    first = {"carrier": "dhl"}
    whole = {**first, "page_2": {"service": "express"}}
    token = go_through(mute, "send_hidden", parcel, first, first).data["confirmation"]
    asker.answers["confirmation"] = DECLINE

    refused = call(asker, "send_hidden", parcel, answer=whole, confirmation=token)

    assert "The person declined. Nothing was done." in refused.text
    assert "Service" not in asker.questions["confirmation"]["params"]["message"]
    assert state(parcel) == UNTOUCHED


@pytest.mark.thorough
def test_a_person_who_declines_the_second_page_learns_what_the_first_has_changed(asker, parcel):
    first = {"carrier": "dhl"}
    token = call(asker, "write_each", parcel, answer=first).data["confirmation"]
    asker.answers["confirmation"] = DECLINE

    whole = {**first, "page_2": {"service": "express"}}
    refused = call(asker, "write_each", parcel, answer=whole, confirmation=token)

    assert refused.text == (
        "The person declined. The pages that were sent changed records of depot.parcel already. "
        "Do not try again unless they want you to."
    )
    assert state(parcel) == ("waiting", "dhl")


def test_a_client_that_can_ask_asks_once_in_a_call_where_records_come_first(asker, parcel):
    answer = {"reason": "late"}

    shown = call(asker, "refund_first", parcel, answer=answer)
    done = call(asker, "refund_first", parcel, answer={**answer, "page_2": {}})

    asked = asker.questions["confirmation"]["params"]["message"]
    assert "confirmation" not in shown.data
    assert asked == f"Refund first? 1 record: {parcel.number}.\n\nReason: late\nPage 2:\n    None"
    assert done.data["outcome"] == "done"


# Pages that write before the last one


def test_an_answer_says_which_records_the_pages_before_have_changed(boss, parcel):
    first = {"carrier": "dhl"}

    shown = go_through(boss, "write_each", parcel, first, first)

    assert shown.data["changed"] == ["depot.parcel"]
    assert shown.data["next"].startswith(
        "The pages that were sent changed records of depot.parcel already. If the rest is wanted, "
    )
    assert state(parcel) == ("waiting", "dhl")


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ({"service": "none"}, "answer.page_2: service: 'none' is not one of: paket, express."),
        ({"service": "paket", "note": "bad"}, "No such note."),
        ({"service": "paket", "note": "refuse"}, "The admin asks again."),
        ({"service": "paket", "note": "deny"}, "The admin does not let you do this."),
    ],
)
def test_a_refusal_says_it_as_well(boss, parcel, second, sentence):
    first = {"carrier": "dhl"}
    token = go_through(boss, "write_each", parcel, first, first).data["confirmation"]

    refused = call(
        boss, "write_each", parcel, answer={**first, "page_2": second}, confirmation=token
    )

    assert refused.is_error
    assert sentence in refused.text
    assert "The pages that were sent changed records of depot.parcel already." in refused.text
    assert state(parcel) == ("waiting", "dhl")


@pytest.mark.thorough
def test_a_page_that_leads_away_says_it_as_well(boss, parcel):
    first = {"carrier": "dhl"}
    second = {**first, "page_2": {"service": "paket", "note": "aside"}}

    shown = go_through(boss, "write_each", parcel, first, first, second)
    token = shown.data["confirmation"]
    refused = call(boss, "write_each", parcel, answer=second, confirmation=token)

    assert shown.data["page"]["title"] == "Away"
    assert refused.text == (
        "The page leads out of this admin. Run the action in a browser. "
        "The pages that were sent changed records of depot.parcel already."
    )


def test_what_pages_of_an_atomic_action_write_is_taken_back_until_the_last_is_sent(boss, parcel):
    first = {"carrier": "dhl"}
    token = go_through(boss, "write_whole", parcel, first, first).data["confirmation"]
    before = state(parcel)

    whole = {**first, "page_2": {"service": "paket"}}
    done = call(boss, "write_whole", parcel, answer=whole, confirmation=token)

    assert before == UNTOUCHED
    assert done.data["outcome"] == "done"
    assert state(parcel) == ("shipped", "dhl")


@pytest.mark.thorough
def test_an_atomic_action_does_not_say_that_it_changed_what_was_taken_back(boss, parcel):
    first = {"carrier": "dhl"}

    shown = go_through(boss, "write_whole", parcel, first, first)

    assert "changed" not in shown.data
    assert shown.data["next"].startswith("Nothing was done yet.")


def test_models_that_the_caller_may_not_see_are_not_named_among_the_changed(boss, parcel):
    shown = go_through(boss, "write_unseen", parcel, None, None)

    assert Group.objects.filter(name="secret").exists()
    assert "changed" not in shown.data
    assert shown.data["next"].startswith("The pages that were sent changed records already.")


def test_records_that_are_confirmed_first_with_values_are_so_with_these_values_only(boss, parcel):
    shown = call(boss, "refund_first", parcel, answer={"reason": "late"})
    token = shown.data["confirmation"]

    other = {"reason": "never mind", "page_2": {}}
    refused = call(boss, "refund_first", parcel, answer=other, confirmation=token)
    before = state(parcel)
    done = call(
        boss, "refund_first", parcel, answer={"reason": "late", "page_2": {}}, confirmation=token
    )

    assert shown.data["question"].endswith("Reason: late")
    assert "This confirmation was given for another call." in refused.text
    assert before == UNTOUCHED
    assert done.data["outcome"] == "done"


def test_values_of_later_pages_that_were_shown_are_held_as_well(boss, parcel):
    given = {"reason": "late", "page_2": {"amount": 5}}
    shown = call(boss, "refund_first", parcel, answer=given)
    token = shown.data["confirmation"]

    refused = [
        call(boss, "refund_first", parcel, answer=other, confirmation=token)
        for other in ({**given, "page_2": {"amount": 500}}, {"reason": "late"})
    ]

    for one in refused:
        assert "This confirmation was given for another call." in one.text
    assert state(parcel) == UNTOUCHED

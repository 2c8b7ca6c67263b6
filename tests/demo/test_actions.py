from __future__ import annotations

import csv
import io


def test_delaying_asks_for_minutes_first(demo):
    asked = demo.ask("delay", "dispatcher", [{}])

    assert asked["pages"] == [[200, "text/html; charset=utf-8"]]
    assert 'name="minutes"' in asked["texts"][0]
    assert "1 other selected flight is not on the ground any more" in asked["texts"][0]
    assert asked["after"] == asked["before"]


def test_delaying_adds_minutes_to_waiting_flights_and_leaves_landed_ones(demo):
    pages = [{}, {"post": "yes", "minutes": "25", "reason": "Fog at the origin"}]

    done = demo.ask("delay", "dispatcher", pages)

    assert done["after"] == [["delayed", done["before"][0][1] + 25], done["before"][1]]
    assert done["messages"] == [
        "Delayed 1 flight.",
        "Left 1 as before: departed, landed, diverted or cancelled.",
    ]
    assert done["log"] == ["Fog at the origin"]


def test_a_delay_of_nonsense_comes_back_with_the_form(demo):
    asked = demo.ask("delay", "dispatcher", [{"post": "yes", "minutes": "-1"}])

    assert "Ensure this value is greater than or equal to 1" in asked["texts"][0]
    assert asked["after"] == asked["before"]


def test_all_flights_of_a_filter_can_be_delayed_at_once(demo):
    scheduled, left = demo.ask("delay_all_scheduled")

    assert scheduled > 500
    assert left == 0


def test_cancelling_asks_and_then_cancels(demo):
    asked = demo.ask("cancel", "dispatcher", [{}])
    done = demo.ask("cancel", "dispatcher", [{}, {"post": "yes"}])

    assert "Yes, cancel 1 flight" in asked["texts"][0]
    assert asked["after"] == asked["before"]
    assert done["after"] == [["cancelled", 0]]
    assert done["messages"] == ["Cancelled 1 flight."]


def test_the_manifest_names_passengers_and_keeps_passports_to_itself(demo):
    answer = demo.ask("manifest", "dispatcher")

    rows = list(csv.DictReader(io.StringIO(answer["texts"][0])))
    assert answer["pages"] == [[200, "text/csv; charset=utf-8"]]
    assert len(rows) == answer["seats"] > 0
    assert set(rows[0]) == {"flight", "departure", "from", "to", "seat", "passenger", "reference"}


def test_everybody_on_board_gets_an_e_mail(demo):
    answer = demo.ask("notify", "dispatcher")

    assert answer["mails"] == answer["seats"] > 0
    assert answer["messages"] == [f"Notified {answer['seats']} passengers."]


def test_who_may_only_look_is_offered_no_action(demo):
    assert demo.ask("offered_actions", "analyst") == []
    assert demo.ask("offered_actions", "manager") == []


def test_the_dispatcher_is_offered_all_but_deleting(demo):
    assert demo.ask("offered_actions", "dispatcher") == [
        "cancel_flights",
        "delay_flights",
        "notify_passengers",
        "passenger_manifest",
    ]


def test_closing_incidents_closes_those_that_were_selected(demo):
    opened, left = demo.ask("close_incidents")

    assert opened > 0
    assert left == 0


def test_a_reported_delay_is_kept(demo):
    answer, status, minutes = demo.ask("report_delay", "dispatcher", "rf 100", "2026-11-20", 40)

    assert answer.startswith("RF100 of 2026-11-20 now leaves at ")
    assert (status, minutes) == ("delayed", 40)


def test_a_delay_of_a_landed_flight_is_refused_in_words(demo):
    answer, status, _ = demo.ask("report_delay", "dispatcher", "RF100", "2026-11-03", 40)

    assert "cannot be delayed any more" in answer
    assert status == "landed"


def test_an_unknown_flight_is_answered_with_a_call_that_finds_it(demo):
    answer, _, _ = demo.ask("report_delay", "dispatcher", "RF999", "2026-11-20", 40)

    assert answer.startswith("No flight 'RF999' leaves on 2026-11-20.")
    assert "find_records" in answer

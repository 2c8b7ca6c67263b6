"""What assistants of each user of the demo see and do."""

from __future__ import annotations

import json
from operator import gt

import pytest

PLACES = {f"flights.{name}" for name in ("aircraft", "airline", "airport", "country", "flight")}
INCIDENTS = {"flights.incident", "flights.tag"}
PEOPLE = {"flights.booking", "flights.passenger", *INCIDENTS}
EVERY = ["create_record", "delete_record", "update_record"]
ACTIONS = [
    "flights_flight_cancel_flights",
    "flights_flight_delay_flights",
    "flights_flight_notify_passengers",
    "flights_flight_passenger_manifest",
    "flights_incident_close_incidents",
]
OF_DISPATCHER = {
    "flights.flight": ["update_record"],
    "flights.incident": ["create_record", "update_record"],
}
USERS = ["admin", "dispatcher", "analyst", "manager"]


@pytest.mark.parametrize(
    ("username", "models", "writes", "own_tools"),
    [
        ("admin", PLACES | PEOPLE, dict.fromkeys(PLACES | PEOPLE, EVERY), ACTIONS),
        ("dispatcher", PLACES | PEOPLE, OF_DISPATCHER, ACTIONS),
        ("analyst", PLACES, {}, []),
        ("manager", PLACES | INCIDENTS, {}, []),
    ],
)
def test_an_assistant_sees_and_writes_what_its_user_may_and_no_field_that_stays_in_the_admin(
    demo, username, models, writes, own_tools
):
    tools, seen = demo.ask("seen_by_assistant", username)

    assert {"on_time_performance", "distance", "check_schedule", "find_records"} <= {*tools}
    assert ("report_delay" in tools) is bool(own_tools)
    assert sorted(name for name in tools if name.startswith("flights_")) == own_tools
    assert seen.keys() == models
    assert {name: one["writes"] for name, one in seen.items() if one["writes"]} == writes
    counts = {name: one["count"] for name, one in seen.items()}
    assert counts == demo.ask("counted_in_admin", username)
    if models >= PEOPLE:
        assert set(seen["flights.passenger"]["fields"]) == {"id", "name", "notes"}
        assert "reported_by" not in seen["flights.incident"]["fields"]


def test_the_manager_sees_one_country_and_what_touches_it(demo):
    rows = demo.ask("counted_in_admin", "manager")

    assert rows["flights.country"] == 1
    assert 400 < rows["flights.airport"] < 1_000
    assert 0 < rows["flights.flight"] < 5_000
    assert 0 < rows["flights.incident"] < 240
    assert demo.ask("rows_outside", "manager", "DE") == 0


@pytest.mark.parametrize("username", USERS)
def test_lists_of_the_admin_and_answers_of_the_tools_are_the_same(demo, username):
    found = demo.ask("admin_and_assistant", username)

    assert found["differences"] == []
    rows, columns, _ = found["compared"]["flights.flight"]
    assert rows == 20
    assert set(columns) >= {"number", "route", "scheduled_departure", "status"}
    assert len(found["compared"]) >= 3
    for label in ("flights.incident where", "flights.passenger passport_number"):
        model, _ = label.split()
        assert (label in found["left_out"]) == (model in found["compared"])


@pytest.mark.parametrize("username", USERS)
def test_inline_rows_are_the_same(demo, username):
    on_page, by_tool = demo.ask("bookings_of", username)

    assert by_tool == on_page
    assert bool(on_page) == (username in ("admin", "dispatcher"))


@pytest.mark.parametrize("username", USERS)
def test_the_search_for_leaks_finds_nothing(demo, username):
    assert demo.ask("leaks_of", username) == []


def test_prompts_are_about_the_shift_and_know_no_airport_that_the_user_does_not_see(demo):
    found = demo.ask("prompts_of", "dispatcher")
    of_manager = demo.ask("prompts_of", "manager")["airports"]

    assert found["names"] == ["delay_announcement", "shift_handover"]
    assert found["handover"][1]["content"]["text"].count(" minutes late") > 1
    _, embedded, promise, task = found["announcement"]
    assert f'"{found["flight"]}"' in embedded["content"]["resource"]["text"]
    assert "for crew." in task["content"]["text"]
    # Some models refuse to go on with what seems to be their own answer.
    assert (promise["role"], task["role"]) == ("assistant", "user")
    assert "FRA" in of_manager
    assert set(of_manager) < set(found["airports"])


def test_the_timetable_of_a_day_has_what_the_reader_sees(demo):
    whole, days = demo.ask("timetable", "analyst", "2026-11-02")
    part, _ = demo.ask("timetable", "manager", "2026-11-02")

    assert whole[0] == "flight,from,to,departs,gate,status"
    assert 1 < len(part) < len(whole)
    assert set(part) < set(whole)
    assert "2026-11-02" in days


def test_an_assistant_is_asked_for_minutes_before_it_delays_a_flight(demo):
    answer = {"minutes": 25, "reason": "Fog at the origin"}

    done = demo.ask("act", "dispatcher", "delay_flights", ["scheduled", "landed"], answer)

    asked = done["asked"]
    assert asked["outcome"] == "asks"
    assert "1 other selected flight is not on the ground any more" in asked["page"]["text"]
    assert asked["answer_schema"]["properties"]["minutes"]["minimum"] == 1
    assert done["after"] == [["delayed", done["before"][0][1] + 25], done["before"][1]]
    said = json.loads(done["result"]["content"][0]["text"])
    assert [one["text"] for one in said["messages"]] == [
        "Delayed 1 flight.",
        "Left 1 as before: departed, landed, diverted or cancelled.",
    ]
    assert done["log"] == ["Fog at the origin (through an assistant: mcp_django.testing)"]


def test_an_assistant_gets_the_manifest_as_a_file_and_hears_how_far_mails_are(demo):
    manifest = demo.ask("act", "dispatcher", "passenger_manifest", ["landed"])
    notified = demo.ask("act", "dispatcher", "notify_passengers", ["delayed"])

    resource = manifest["result"]["content"][1]["resource"]
    assert resource["mimeType"] == "text/csv"
    assert resource["text"].startswith("flight,departure,from,to,seat,passenger,reference")
    assert "passport" not in resource["text"]
    assert len(resource["text"].splitlines()) > 20
    assert notified["progress"][-1] == notified["mails"] > 0


@pytest.mark.parametrize("username", ["admin", "dispatcher"])
def test_an_incident_is_reported_corrected_and_closed(demo, username):
    assert demo.ask("incident_by_assistant", username) == ["FRA", 3, True, username, True]


@pytest.mark.parametrize("task", ["gate", "function", "action", "cancel", "incident"])
def test_each_write_of_a_task_is_found_in_the_admin_and_taken_back(demo, task):
    places, is_undone_by_assistant, is_as_before = demo.ask("write_of_task", "dispatcher", task)

    assert places == ["history", "record", "user", "token"]
    assert is_undone_by_assistant is (task == "gate")
    assert is_as_before


def test_a_broken_rule_is_told_in_words_of_people(demo):
    said = [text.splitlines()[1] for text in demo.ask("refusals")]

    assert said == [
        "destination: A flight leaves one airport and arrives at another.",
        "The arrival is not after the departure. Both are UTC.",
        "This seat of the flight is booked already.",
        "Another airport has this IATA code.",
    ]


def test_a_database_of_an_older_demo_lets_the_dispatcher_report_incidents(own_demo):
    own_demo.ask("take_away_right", "Dispatch", "add_incident")

    own_demo.ask("run", "demo", "--no-serve")

    assert own_demo.ask("incident_by_assistant", "dispatcher")[:2] == ["FRA", 3]


def test_calls_of_the_dispatcher_s_assistant_cost_so_much_and_no_more(demo):
    # Reads of the record, statements, and calls of our functions.
    most = {
        "find_records": [1, 2, 900],
        "get_record": [2, 6, 1000],
        "update_record": [4, 12, 1850],
    }

    costs = demo.ask("costs_of", "dispatcher")

    assert [tool for tool in most if any(map(gt, costs[tool], most[tool]))] == [], costs


def test_pages_and_definitions_are_short(demo):
    """What an assistant has to read costs its user money."""
    most = {"page": 5 * 1024, "description": 3 * 1024, "tools": 15 * 1024, "action": 600}

    sizes = {key: len(text.encode()) for key, text in demo.ask("texts_for", "dispatcher").items()}

    assert {name: size for name, size in sizes.items() if size > most[name]} == {}

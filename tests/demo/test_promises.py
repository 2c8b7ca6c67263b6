"""The demo keeps its word: what its page in docs, its start page and the terminal say is so."""

from __future__ import annotations

import html
import json
from operator import gt

import pytest

SEES = {
    "admin": "all records of the desk, and may create, change and delete them",
    "dispatcher": (
        "all records of the desk, may change flights, and may report and change incidents"
    ),
    "analyst": "flights, airports, airlines and countries, but nothing of people",
    "manager": "airports in Germany, the flights that touch them and their incidents",
}
QUESTIONS = [
    "Which flights from Munich are delayed, and which incidents are open there?",
    "Which airline was least punctual in the first week of November?",
    "Delay RF100 of 19 November by 40 minutes.",
]
MODELS = ["Country", "Airport", "Airline", "Flight", "Passenger", "Booking", "Incident"]
EVERY = ["create_record", "delete_record", "update_record"]


def test_terminal_and_start_page_promise_each_user_the_same(demo):
    page = html.unescape(demo.ask("start_page"))

    for name, sees in SEES.items():
        assert f"<td>{name}</td><td>Sees {sees}.</td>" in page
        assert f"Sees {sees}." in demo.first_run


@pytest.mark.parametrize("username", SEES)
def test_an_assistant_counts_the_records_that_its_user_sees_in_the_admin(demo, username):
    in_admin = {
        f"flights.{name.lower()}": rows
        for name, (perms, rows) in demo.ask("rights", username).items()
        if perms
    }

    assert demo.ask("counted_by_assistant", username) == in_admin


def test_calls_of_the_dispatcher_s_assistant_cost_so_much_and_no_more(demo):
    # Reads of the record, statements, and calls of our functions.
    most = {
        "find_records": [1, 2, 900],
        "get_record": [2, 6, 1000],
        "update_record": [4, 14, 2050],
    }

    costs = demo.ask("costs_of", "dispatcher")

    assert [tool for tool in most if any(map(gt, costs[tool], most[tool]))] == [], costs


@pytest.mark.parametrize(
    ("username", "writes"),
    [
        ("admin", {f"flights.{name.lower()}": EVERY for name in MODELS}),
        (
            "dispatcher",
            {
                "flights.flight": ["update_record"],
                "flights.incident": ["create_record", "update_record"],
            },
        ),
        ("analyst", {}),
        ("manager", {}),
    ],
)
def test_an_assistant_writes_what_its_user_may_write(demo, username, writes):
    assert demo.ask("writing_of", username) == writes


def test_the_admin_s_assistant_creates_changes_and_deletes_records(demo):
    lives = demo.ask("lives_by_assistant", "admin")

    assert lives == {name: [True, False] for name in ("Airline", "Booking", "Incident")}


@pytest.mark.parametrize("username", ["admin", "dispatcher"])
def test_an_incident_is_reported_corrected_and_closed(demo, username):
    done = demo.ask("incident_by_assistant", username)

    assert done["stored"] == {
        "airport": "FRA",
        "severity": 3,
        "closed": True,
        "reported_by": username,
    }
    assert [text.startswith(("Added", "Changed")) for text in done["log"]] == [True, True]


def test_a_database_of_an_older_demo_lets_the_dispatcher_report_incidents(own_demo):
    own_demo.ask("take_away_right", "Dispatch", "add_incident")
    before = own_demo.ask("writing_of", "dispatcher")["flights.incident"]

    own_demo.ask("run", "demo", "--no-serve")

    assert before == ["update_record"]
    assert own_demo.ask("writing_of", "dispatcher")["flights.incident"] == [
        "create_record",
        "update_record",
    ]


def test_the_start_page_asks_what_can_be_answered(demo):
    page = demo.ask("start_page")
    answers, expected = demo.ask("answers_of_start_page", "dispatcher")

    assert all(question in page for question in QUESTIONS)
    assert {name: sorted(one) for name, one in answers.items() if name.endswith("s")} == {
        name: sorted(one) for name, one in expected.items() if name.endswith("s")
    }
    assert answers["flights"]
    assert answers["incidents"]
    assert answers["airline"] == expected["airline"]
    assert answers["delayed"] == expected["delayed"]


def test_the_clock_of_the_start_page_parts_what_left_from_what_waits(demo):
    last, first = demo.ask("ends_of_clock")

    assert "18 November 2026, 12:00 UTC" in demo.ask("start_page")
    assert last <= "2026-11-18T12:00:00+00:00" <= first


def test_the_start_page_counts_flights_and_airports_as_they_are(demo):
    counts = demo.ask("counts")

    assert "every airport of the world and 5,000 flights" in demo.ask("start_page")
    assert counts["Flight"] == 5_000


def test_printed_and_kept_passwords_open_the_admin(demo):
    file = demo.state / "passwords.json"
    passwords = json.loads(file.read_text())

    assert f"  admin  {passwords['admin']}\n" in demo.first_run
    assert str(file.name) in demo.first_run
    assert set(passwords) == set(SEES)
    for username, password in passwords.items():
        assert demo.ask("logs_in", username, password)
        assert not demo.ask("logs_in", username, f"{password}x")

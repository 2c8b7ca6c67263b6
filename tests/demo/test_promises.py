"""The demo keeps its word: what its page in docs, its start page and the terminal say is so."""

from __future__ import annotations

import html
import json

import pytest

from tests.demo.test_assistant import USERS
from tests.docs.pages import ROOT, table

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
    "Which flights have the most bookings, and how full is RF100 tomorrow?",
    "Which airline was least punctual in the last seven days?",
    "Which five flights were delayed the longest, and why?",
    "Delay RF100 of tomorrow by 40 minutes.",
]
DIGESTS = {
    "flights": "f6a7d9f45cf21eafe5bf1454224f338ea6edbc38c249e1df39d2ff5a7ae0b5d5",
    "incidents": "a7775cf5afdc0190daf940a64bbf7ff6b2510de3e137bc0a853478c66a370fdf",
    "passengers": "6103a864f7d65f121e517f69548d50b525b8a19c8604dcfa184b38a124a86a32",
    "bookings": "447facb81d4e467267511ab1647576a8b8ee7bf25097da2e5528a64644029369",
}


def test_docs_terminal_and_start_page_promise_each_user_the_same(demo):
    page = html.unescape(demo.ask("start_page"))
    told = table(ROOT / "docs" / "howto" / "demo.md", "# How to try the demo")

    assert told == [[f"`{name}`", sees] for name, sees in SEES.items()]
    for name, sees in SEES.items():
        assert f"<td>{name}</td><td>Sees {sees}.</td>" in page
        assert f"Sees {sees}." in demo.first_run


def test_the_start_page_asks_what_can_be_answered(demo):
    page = demo.ask("start_page")
    pairs = demo.ask("answers_of_start_page", "dispatcher")

    assert all(question in page for question in QUESTIONS)
    assert all(expected and answer == expected for answer, expected in pairs), pairs


def test_the_clock_of_the_start_page_parts_what_left_from_what_waits(demo):
    last, first = demo.ask("ends_of_clock")

    assert "18 November 2026, 12:00 UTC" in demo.ask("start_page")
    assert last <= "2026-11-18T12:00:00+00:00" <= first


def test_a_start_on_another_day_moves_all_times_by_whole_days_and_keeps_the_rest(own_demo):
    before, counts = own_demo.ask("times"), own_demo.ask("counts")

    # Summer time has begun in between.
    moved = own_demo.manage("seed", DEMO_TODAY="2027-03-30").stdout

    assert "Moved its flights by 132 days." in moved
    assert "30 March 2027, 12:00 UTC" in own_demo.ask("start_page")
    assert own_demo.ask("times") == [moment + 132 * 24 * 60 * 60 for moment in before]
    own_demo.manage("seed")
    assert [own_demo.ask("times"), own_demo.ask("counts")] == [before, counts]


def test_every_airport_and_5000_flights_are_there_and_a_second_seed_adds_nothing(demo):
    import airportsdata

    before = demo.ask("counts")
    demo.ask("run", "seed")

    assert "every airport of the world and 5,000 flights" in demo.ask("start_page")
    assert before["Airport"] == len(airportsdata.load("ICAO")) > 28_000
    others = [before[name] for name in ("Flight", "Booking", "Passenger", "Incident", "Airline")]
    assert others == [5_000, 76_715, 32_000, 240, 24]
    assert demo.ask("counts") == before


def test_every_machine_invents_the_same_rows_which_explain_delays_and_seat_everybody(demo):
    assert demo.ask("digests") == DIGESTS
    assert demo.ask("oddities") == [0, 0, []]


def test_printed_and_kept_passwords_open_the_admin(demo):
    file = demo.state / "passwords.json"
    passwords = json.loads(file.read_text())

    assert f"  admin  {passwords['admin']}\n" in demo.first_run
    assert file.name in demo.first_run
    assert sorted(passwords) == sorted(USERS)
    assert len(set(passwords.values())) == 4
    for username, password in passwords.items():
        assert demo.ask("logs_in", username, password)
        assert not demo.ask("logs_in", username, f"{password}x")


def test_tokens_open_no_more_than_their_user_needs(demo):
    scopes = demo.ask("token_scopes")

    assert scopes["analyst"] == scopes["manager"] == ["mcp:read"]
    assert len(scopes["admin"]) == len(scopes["dispatcher"]) == 4


@pytest.mark.parametrize("name", ["tokens.json", "passwords.json", "secret_key"])
def test_secrets_are_for_their_owner_only(demo, name):
    assert demo.mode(name) == 0o600

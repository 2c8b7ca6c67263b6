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
    "Which airline was least punctual in the first week of November?",
    "Delay RF100 of 19 November by 40 minutes.",
]
DIGESTS = {
    "flights": "0c181e1fd3c6abb1d14ef37e10a66fee1888ae2e22333ef708bc490c665c16e0",
    "incidents": "cd63ba8034a4cf19369cc80d5120454eb6444e8160820b37eeda5aa85f47336f",
    "passengers": "b232d10e10bce25441d7698e2a33f15e0f2878be557819abf07825a1a6c0eaea",
    "bookings": "3127fdefaf70d698117e649165ef5b2fd4f65d4785755b808ffdf3bf25c0add8",
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
    answers, expected = demo.ask("answers_of_start_page", "dispatcher")

    assert all(question in page for question in QUESTIONS)
    assert all(expected)
    assert answers == expected


def test_the_clock_of_the_start_page_parts_what_left_from_what_waits(demo):
    last, first = demo.ask("ends_of_clock")

    assert "18 November 2026, 12:00 UTC" in demo.ask("start_page")
    assert last <= "2026-11-18T12:00:00+00:00" <= first


def test_every_airport_and_5000_flights_are_there_and_a_second_seed_adds_nothing(demo):
    import airportsdata

    before = demo.ask("counts")
    demo.ask("run", "seed")

    assert "every airport of the world and 5,000 flights" in demo.ask("start_page")
    assert before["Airport"] == len(airportsdata.load("ICAO")) > 28_000
    others = [before[name] for name in ("Flight", "Booking", "Passenger", "Incident", "Airline")]
    assert others == [5_000, 20_025, 8_000, 240, 24]
    assert demo.ask("counts") == before


def test_every_machine_invents_the_same_rows_and_reports_that_can_be_read(demo):
    assert demo.ask("digests") == DIGESTS
    assert demo.ask("unreadable_reports") == []


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

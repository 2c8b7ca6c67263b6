from __future__ import annotations

from datetime import date

import airportsdata

DIGESTS = {
    "flights": "cad39751578e0f67779e1725895f833e68a50b76ac6e9cba1c4ed01615fa75a4",
    "incidents": "2b0c2a6aea96133da1bea2a520a2d8d96bf964fd9d70be16a7ecee1573a08621",
    "passengers": "b232d10e10bce25441d7698e2a33f15e0f2878be557819abf07825a1a6c0eaea",
    "bookings": "312f9c921cebbac307944123f8b82c34f2927392a44bf9ab790942c6435cdb1f",
}


def test_every_airport_and_5000_flights_are_there(demo):
    counts = demo.ask("counts")

    assert counts["Airport"] == len(airportsdata.load("ICAO")) > 28_000
    assert counts["Flight"] == 5_000
    assert counts["Booking"] == 20_025
    assert counts["Passenger"] == 8_000
    assert counts["Incident"] == 240
    assert counts["Airline"] == 24


def test_every_machine_invents_the_same_rows(demo):
    assert demo.ask("digests") == DIGESTS


def test_a_second_seed_changes_nothing_and_takes_less_than_a_second(demo):
    before = demo.ask("counts")

    assert demo.ask("seconds_to_seed_again") < 1

    assert demo.ask("counts") == before


def test_every_incident_has_a_report_that_can_be_read(demo):
    assert demo.ask("unreadable_reports") == []


def test_no_migration_is_missing(demo):
    assert demo.manage("makemigrations", "--check", "flights", check=False).returncode == 0


def test_on_time_performance_counts_the_flights_of_the_first_week(demo):
    days = (date(2026, 11, 8) - date(2026, 11, 2)).days + 1

    # 250 a day; a few return flights leave after midnight, so the first day has fewer.
    assert 250 * (days - 1) < demo.ask("punctuality", "admin") <= 250 * days

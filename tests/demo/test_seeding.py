from __future__ import annotations

from datetime import date

DIGESTS = {
    "flights": "0c181e1fd3c6abb1d14ef37e10a66fee1888ae2e22333ef708bc490c665c16e0",
    "incidents": "cd63ba8034a4cf19369cc80d5120454eb6444e8160820b37eeda5aa85f47336f",
    "passengers": "b232d10e10bce25441d7698e2a33f15e0f2878be557819abf07825a1a6c0eaea",
    "bookings": "3127fdefaf70d698117e649165ef5b2fd4f65d4785755b808ffdf3bf25c0add8",
}


def test_every_airport_and_5000_flights_are_there(demo):
    import airportsdata

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
    assert demo.ask("run", "makemigrations", "--dry-run", "flights") == (
        "No changes detected in app 'flights'\n"
    )


def test_on_time_performance_counts_the_flights_of_the_first_week(demo):
    days = (date(2026, 11, 8) - date(2026, 11, 2)).days + 1

    # 250 a day; a few return flights leave after midnight, so the first day has fewer.
    assert 250 * (days - 1) < demo.ask("punctuality", "admin") <= 250 * days

from __future__ import annotations

READING = {"on_time_performance", "distance", "check_schedule", "find_records"}


def test_the_analyst_s_assistant_knows_nothing_of_people_and_writes_nothing(demo):
    tools, fields = demo.ask("seen_by_assistant", "analyst")

    assert set(tools) >= READING
    assert "report_delay" not in tools
    assert set(fields) == {
        "flights.airline",
        "flights.airport",
        "flights.country",
        "flights.flight",
    }


def test_the_dispatcher_s_assistant_may_report_delays(demo):
    tools, _ = demo.ask("seen_by_assistant", "dispatcher")

    assert set(tools) >= {*READING, "report_delay"}


def test_passports_and_e_mail_addresses_and_reporters_stay_in_the_admin(demo):
    _, fields = demo.ask("seen_by_assistant", "admin")

    assert fields["flights.passenger"] == ["id", "name", "notes"]
    assert "report" in fields["flights.incident"]
    assert "reported_by" not in fields["flights.incident"]

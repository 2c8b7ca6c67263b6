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


def test_the_dispatcher_s_prompts_are_about_the_shift(demo):
    found = demo.ask("prompts_of", "dispatcher")

    assert found["names"] == ["delay_announcement", "shift_handover"]
    assert [one["role"] for one in found["handover"]] == ["user", "user", "assistant"]
    assert found["handover"][1]["content"]["text"].count(" minutes late") > 1
    _, embedded, task, promise = found["announcement"]
    assert f'"number":"{found["flight"]}"' in embedded["content"]["resource"]["text"]
    assert "for crew." in task["content"]["text"]
    assert promise["role"] == "assistant"
    assert "FRA" in found["airports"]


def test_the_manager_s_prompts_know_no_other_airports(demo):
    everybody = demo.ask("prompts_of", "dispatcher")["airports"]

    found = demo.ask("prompts_of", "manager")["airports"]

    assert "FRA" in found
    assert set(found) < set(everybody)


def test_passports_and_e_mail_addresses_and_reporters_stay_in_the_admin(demo):
    _, fields = demo.ask("seen_by_assistant", "admin")

    assert fields["flights.passenger"] == ["id", "name", "notes"]
    assert "report" in fields["flights.incident"]
    assert "reported_by" not in fields["flights.incident"]


def test_the_timetable_of_a_day_has_what_the_reader_sees(demo):
    whole, days = demo.ask("timetable", "analyst", "2026-11-02")
    part, _ = demo.ask("timetable", "manager", "2026-11-02")

    assert whole[0] == "flight,from,to,departs,gate,status"
    assert 1 < len(part) < len(whole)
    assert set(part) < set(whole)
    assert "2026-11-02" in days


def test_there_is_no_timetable_of_a_day_without_flights(demo):
    for day in ("1999-01-01", "yesterday"):
        assert demo.ask("timetable", "analyst", day)[0] == ["Resource not found."]

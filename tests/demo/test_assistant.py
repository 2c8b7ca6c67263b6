from __future__ import annotations

import json

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


def test_the_dispatcher_s_assistant_changes_the_gate_of_a_flight_and_nothing_else(demo):
    found = demo.ask("gate_by_assistant", "dispatcher")

    assert "update_record" in found["writes"]
    assert found["changed"] == {"gate": "Z9"}


def test_the_analyst_s_assistant_has_no_tool_that_changes_records(demo):
    assert demo.ask("gate_by_assistant", "analyst") == {"writes": [], "changed": {}}


def test_the_dispatcher_s_prompts_are_about_the_shift(demo):
    found = demo.ask("prompts_of", "dispatcher")

    assert found["names"] == ["delay_announcement", "shift_handover"]
    assert [one["role"] for one in found["handover"]] == ["user", "user"]
    assert found["handover"][1]["content"]["text"].count(" minutes late") > 1
    _, embedded, promise, task = found["announcement"]
    assert f'"{found["flight"]}"' in embedded["content"]["resource"]["text"]
    assert "for crew." in task["content"]["text"]
    assert promise["role"] == "assistant"
    assert "FRA" in found["airports"]


def test_no_prompt_ends_with_words_of_the_assistant(demo):
    # Some models refuse to go on with what seems to be their own answer.
    found = demo.ask("prompts_of", "dispatcher")

    assert found["handover"][-1]["role"] == "user"
    assert found["announcement"][-1]["role"] == "user"


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


def test_each_person_finds_the_actions_that_the_admin_offers(demo):
    flights = [
        "flights_flight_cancel_flights",
        "flights_flight_delay_flights",
        "flights_flight_notify_passengers",
        "flights_flight_passenger_manifest",
    ]

    assert demo.ask("action_tools_of", "dispatcher") == [
        *flights,
        "flights_incident_close_incidents",
    ]
    assert demo.ask("action_tools_of", "analyst") == []
    assert demo.ask("action_tools_of", "manager") == []


def test_an_assistant_is_asked_for_minutes_before_it_delays_a_flight(demo):
    answer = {"minutes": 25, "reason": "Fog at the origin"}

    done = demo.ask("act", "dispatcher", "delay_flights", ["scheduled", "landed"], answer)

    asked = done["asked"]
    assert asked["outcome"] == "asks"
    assert "1 other selected flight is not on the ground any more" in asked["page"]["text"]
    assert asked["answer_schema"]["properties"]["minutes"]["minimum"] == 1
    assert done["after"] == [["delayed", done["before"][0][1] + 25], done["before"][1]]
    answer = json.loads(done["result"]["content"][0]["text"])
    assert [one["text"] for one in answer["messages"]] == [
        "Delayed 1 flight.",
        "Left 1 as before: departed, landed, diverted or cancelled.",
    ]
    assert done["log"] == ["Fog at the origin (through an assistant: mcp_django.testing)"]


def test_an_assistant_confirms_before_it_cancels_a_flight(demo):
    done = demo.ask("act", "admin", "cancel_flights", ["scheduled"])

    assert done["asked"]["outcome"] == "asks"
    assert "answer_schema" not in done["asked"]
    assert done["after"] == [["cancelled", 0]]


def test_an_assistant_gets_the_manifest_as_a_file(demo):
    done = demo.ask("act", "dispatcher", "passenger_manifest", ["landed"])

    resource = done["result"]["content"][1]["resource"]
    assert resource["mimeType"] == "text/csv"
    assert resource["text"].startswith("flight,departure,from,to,seat,passenger,reference")
    assert "passport" not in resource["text"]


def test_an_assistant_hears_how_far_the_mails_are(demo):
    done = demo.ask("act", "dispatcher", "notify_passengers", ["delayed"])

    assert done["mails"] > 0
    assert done["progress"][-1] == done["mails"]


def test_an_assistant_sees_how_many_incidents_it_would_close(demo):
    count, shown, between, left = demo.ask("close_incidents_by_assistant", "dispatcher")

    assert count == shown == between > 0
    assert left == 0


def test_a_flight_comes_with_its_bookings(demo):
    text, references = demo.ask("flight_with_bookings", "dispatcher")

    assert references
    assert all(f'"{reference}"' in text for reference in references)


def test_who_may_not_see_bookings_cannot_include_them(demo):
    text, references = demo.ask("flight_with_bookings", "analyst")

    assert "'bookings' cannot be used in include." in text
    assert not [reference for reference in references if reference in text]

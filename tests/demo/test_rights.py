from __future__ import annotations

VIEW = ["view"]


def test_the_dispatcher_sees_all_changes_flights_and_reports_incidents(demo):
    rights = demo.ask("rights", "dispatcher")

    assert {name for name, (_, rows) in rights.items() if rows} == set(rights)
    assert {name: perms for name, (perms, _) in rights.items() if perms != VIEW} == {
        "Flight": ["change", "view"],
        "Incident": ["add", "change", "view"],
    }


def test_the_analyst_sees_flights_and_places_but_nothing_of_people(demo):
    rights = demo.ask("rights", "analyst")

    visible = {name for name, (perms, _) in rights.items() if perms}
    assert visible == {"Country", "Airport", "Airline", "Flight"}
    assert all(perms in ([], VIEW) for perms, _ in rights.values())
    assert rights["Flight"][1] == 5_000
    assert rights["Passenger"][1] == rights["Booking"][1] == rights["Incident"][1] == 0


def test_the_manager_sees_one_country_and_what_touches_it(demo):
    rights = demo.ask("rights", "manager")

    assert rights["Country"] == [VIEW, 1]
    assert 400 < rights["Airport"][1] < 1_000
    assert 0 < rights["Flight"][1] < 5_000
    assert 0 < rights["Incident"][1] < 240
    assert rights["Passenger"] == rights["Booking"] == [[], 0]
    assert demo.ask("rows_outside", "manager", "DE") == 0


def test_tools_count_only_what_the_caller_sees(demo):
    assert 0 < demo.ask("punctuality", "manager") < demo.ask("punctuality", "analyst")


def test_tokens_open_no_more_than_their_user_needs(demo):
    scopes = demo.ask("token_scopes")

    assert scopes["analyst"] == scopes["manager"] == ["mcp:read"]
    assert len(scopes["admin"]) == len(scopes["dispatcher"]) == 4

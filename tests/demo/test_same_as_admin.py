"""An assistant sees what its user sees in the admin: the same rows, cells, counts and inlines."""

from __future__ import annotations

import pytest

USERS = ["admin", "dispatcher", "analyst", "manager"]


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

    assert (by_tool or []) == on_page
    assert bool(on_page) == (username in ("admin", "dispatcher"))

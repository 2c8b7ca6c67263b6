"""Questions about many flights, asked for numbers and not for records."""

from __future__ import annotations

import pytest

#: Monday to Sunday, seen from the Wednesday on which the demo stands still.
LAST_WEEK = ["2026-11-09", "2026-11-15"]


@pytest.fixture(params=["admin", "analyst", "manager"])
def user(request):
    return request.param


@pytest.mark.asyncio
async def test_how_many_flights_were_cancelled_by_airline(desk, era, user):
    expected = desk.orm.ask("cancelled_by_airline", user)

    async with desk.connect(user, era) as assistant:
        answer = await assistant.call(
            "aggregate_records",
            model="flights.flight",
            filters={"status": "cancelled"},
            group_by=["airline"],
            metrics={"cancelled": {"count": "*"}},
            order_by=["-cancelled"],
        )

    assert len(expected) > 1
    found = [[one["airline"]["label"], one["cancelled"]] for one in answer["groups"]]
    assert found == expected
    assert not answer["truncated"]


@pytest.mark.asyncio
async def test_average_delay_by_origin_for_last_week(desk, era, user):
    expected = desk.orm.ask("average_delays", user, *LAST_WEEK)

    async with desk.connect(user, era) as assistant:
        answer = await assistant.call(
            "aggregate_records",
            model="flights.flight",
            filters={"scheduled_departure__date__range": LAST_WEEK},
            group_by=["origin"],
            metrics={
                "average": {"avg": "delay_minutes"},
                "most": {"max": "delay_minutes"},
                "flights": {"count": "*"},
            },
            order_by=["-average"],
            limit=200,
        )

    assert len(expected) > 10
    groups = answer["groups"]
    assert expected == {
        str(one["origin"]["pk"]): [round(one["average"], 6), one["most"], one["flights"]]
        for one in groups
    }
    averages = [one["average"] for one in groups]
    assert averages == sorted(averages, reverse=True)
    if user != "manager":  # who sees no airports abroad
        assert all(one["origin"]["label"] for one in groups)

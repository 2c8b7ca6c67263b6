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
    names = answer["labels"]["flights.airline"]
    found = [[names[str(one["airline"])], one["cancelled"]] for one in answer["records"]]
    assert found == expected
    assert "truncated" not in answer


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
    groups = answer["records"]
    assert expected == {
        str(one["origin"]): [pytest.approx(one["average"], rel=1e-5), one["most"], one["flights"]]
        for one in groups
    }
    averages = [one["average"] for one in groups]
    assert averages == sorted(averages, reverse=True)
    if user != "manager":  # who sees no airports abroad
        names = answer["labels"]["flights.airport"]
        assert all(names[str(one["origin"])] for one in groups)

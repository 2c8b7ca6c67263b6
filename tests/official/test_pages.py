"""A walk through thousands of airports, while somebody else adds and removes some."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

PAGE = 200
#: The key of the last airport on the walk, but for those that come behind all others.
LAST = 8_000


@pytest.fixture(scope="module")
def somebody_else(desk):
    """Another process, which leaves the airports as they were."""
    with desk.inside() as process:
        yield process
        process.ask("come_and_go", -1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "order", [["id"], ["country", "-elevation"]], ids=["by key", "by country and height"]
)
async def test_every_airport_that_stays_comes_exactly_once_while_others_come_and_go(
    desk, era, somebody_else, order
):
    somebody_else.ask("come_and_go", -1)
    stays = desk.ask("airport_keys", LAST)
    query = {
        "model": "flights.airport",
        "any_of": [{"id__lte": LAST}, {"id__gte": 30_000}],
        "order_by": order,
        "limit": PAGE,
        "fields": ["id"],
    }
    seen: Counter[int] = Counter()
    changes = pages = 0

    async with desk.connect("dispatcher", era) as assistant:
        cursor: dict[str, str] = {}
        while True:
            somebody_else.start("come_and_go", pages, LAST)
            page = await assistant.call("find_records", **query, **cursor)
            changes += await asyncio.to_thread(somebody_else.answer)
            pages += 1
            seen.update(record["id"] for record in page["records"])
            if "next" not in page:
                break
            cursor = {"cursor": page["next"]}

    assert len(stays) > 7_500
    assert pages >= len(stays) / PAGE
    assert changes > 10 * pages
    assert Counter(dict.fromkeys(stays, 1)) == Counter({key: seen[key] for key in stays})

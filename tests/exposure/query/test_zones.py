"""Parts of points in time, on databases that may not know the time zone of the site."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.utils import timezone

from mcp_django.exceptions import QueryError
from tests.nasty.site import numbers

pytestmark = pytest.mark.database


PARTS = {
    "placed_at__month": 7,
    "placed_at__hour": 7,
    "placed_at__quarter__in": [4],
    "placed_at__week_day__in": [4],
    "placed_at__year__in": [2026],
}


@pytest.fixture
def without_tables(monkeypatch):
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", False)


@pytest.mark.parametrize("key", PARTS)
def test_without_zone_tables_parts_are_refused_and_not_wrong(shop, without_tables, key):
    with timezone.override("Europe/Paris"), pytest.raises(QueryError) as refused:
        numbers(filters={key: PARTS[key]})

    assert "no time zone tables" in str(refused.value)
    offered = json.loads(re.search(r"\{.*\}", str(refused.value))[0])
    with timezone.override("Europe/Paris"):
        assert numbers(filters=offered) == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"placed_at__year": 2026}, ["A1"]),
        ({"placed_at__year__range": [2025, 2026]}, ["A1"]),
        ({"placed_at__date": "2026-02-01"}, ["A1"]),
        ({"placed_at__date": "2026-01-31"}, []),
        ({"due__month": 2}, []),
    ],
    ids=str,
)
def test_years_and_days_need_no_zone_tables(shop, without_tables, filters, found):
    # A1 was placed at half past midnight of the first of February, in Paris.
    with timezone.override("Europe/Paris"):
        assert numbers(filters=filters) == found


def test_in_the_zone_of_the_database_parts_need_no_tables(shop, without_tables):
    assert numbers(filters={"placed_at__month": 1, "placed_at__hour": 23}) == ["A1"]

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.db.models import IntegerField
from django.test import override_settings
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exceptions import QueryError
from mcp_django.exposure.fields import convert, quoted, scalar
from tests.nasty.models import Order

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
COLUMNS = [field for field in Order._meta.fields if field.name != "double"]
OPERATORS = ("exact", "in", "range", "isnull")


@given(st.sampled_from(COLUMNS), st.sampled_from(OPERATORS), JSON)
def test_any_json_value_converts_or_raises_query_error(field, operator, value):
    with suppress(QueryError):
        convert(field, operator, value, using="default")


GOOD = [
    ("number", "x", "x"),
    ("number", 42, "42"),
    ("total", "1.50", Decimal("1.50")),
    ("total", 0.1, Decimal("0.1")),
    ("quantity", 7.0, 7),
    ("placed_at", "2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ("due", "2026-01-31", date(2026, 1, 31)),
    ("at", "12:30", time(12, 30)),
    ("took", "P1DT1H", timedelta(days=1, hours=1)),
    ("ref", "12345678123456781234567812345678", UUID("12345678123456781234567812345678")),
    ("ip", "::1", "::1"),
    ("customer", "5", 5),
    *(("gift", sent, sent == "true") for sent in ("true", "false")),
]


@pytest.mark.parametrize(("name", "given", "expected"), GOOD, ids=str)
def test_a_good_value_becomes_what_the_column_holds(name, given, expected):
    found = scalar(Order._meta.get_field(name), given, using="default")

    assert found == expected
    assert type(found) is type(expected)


BAD = [
    ("number", "exact", None, "cannot be null; use isnull"),
    ("number", "exact", "a" * 101, "at most 100 characters; this has 101"),
    ("number", "exact", "a\x00", "is not text"),
    ("status", "exact", "lost", "not a choice. Choices: new, paid, void"),
    ("quantity", "exact", "١٢", "is not a whole number"),
    ("quantity", "exact", 10**5000, "number must be between"),
    ("total", "exact", 10**5000, "This value is not a number"),
    ("total", "exact", "NaN", "is not a number"),
    ("gift", "exact", "yes", "is not true or false"),
    ("due", "exact", "0999-01-01", "is not a date"),
    ("placed_at", "exact", "9999-01-01T00:00", "is not a date and time such as"),
    ("took", "exact", "P110000000D", "is not a duration such as"),
    ("ref", "exact", 5, "is not a UUID"),
    ("ip", "exact", "fe80::1%eth0", "is not an IP address"),
    ("payload", "exact", "x", "This field has only contains, has_key, isnull"),
    ("quantity", "in", "abc", "in takes a list with at least one value"),
    ("quantity", "in", [1] * 101, "at most 100 values; this one has 101"),
    ("quantity", "range", [1], "range takes a list of two values"),
    ("quantity", "isnull", 1, "1 is not true or false"),
    # A day stands for its first instant only where that does not mislead.
    *(
        ("placed_at", operator, value, "is a day and not a point in time")
        for operator, value in {
            **dict.fromkeys(("exact", "gt", "lte"), "2026-01-31"),
            **dict.fromkeys(("in", "range"), ["2026-01-31"] * 2),
        }.items()
    ),
]


@pytest.mark.parametrize(("name", "operator", "value", "sentence"), BAD, ids=range(len(BAD)))
def test_a_bad_value_is_refused_with_what_would_do(name, operator, value, sentence):
    with pytest.raises(QueryError, match=sentence):
        convert(Order._meta.get_field(name), operator, value, using="default")


@override_settings(TIME_ZONE="Europe/Paris")
def test_a_day_stands_for_its_first_instant_and_hours_that_are_not_or_are_twice_are_no_error():
    field = Order._meta.get_field("placed_at")

    with timezone.override("UTC"):
        for operator in ("gte", "lt"):
            found = convert(field, operator, "2026-01-31", using="default")
            assert found == datetime(2026, 1, 31, tzinfo=UTC)
    for text in ("2026-03-29T02:30", "2026-10-25T02:30"):
        assert scalar(field, text, using="default").tzinfo is UTC


@override_settings(USE_TZ=False, TIME_ZONE="Europe/Paris")
def test_without_time_zones_instants_become_local_and_naive():
    field = Order._meta.get_field("placed_at")

    assert scalar(field, "2026-01-31T12:00:00Z", using="default") == datetime(2026, 1, 31, 13)
    assert scalar(field, "2026-01-31T12:00", using="default") == datetime(2026, 1, 31, 12)


def test_integers_of_the_sites_own_classes_have_the_widest_bounds():
    class Counter(IntegerField):  # type: ignore[type-arg]
        def get_internal_type(self):
            return "Counter"

    assert scalar(Counter(), 2**63 - 1, using="default") == 2**63 - 1
    with pytest.raises(QueryError, match="number must be between"):
        scalar(Counter(), 2**63, using="default")


def test_anything_can_be_quoted():
    nest: list[object] = []
    for _ in range(100_000):
        nest = [nest]

    assert quoted(nest) == quoted(10**5000) == "This value"
    assert quoted("é" * 100) == "'" + "\\xe9" * 14 + "\\xe"

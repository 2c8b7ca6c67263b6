"""Numbers about records: over any queryset, through any filter, as records show their values."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from tests.exposure.query.test_find import BASES
from tests.nasty.models import Order, PaidOrder, RushOrder, Seat, Tag
from tests.nasty.site import ORDER, aggregate, caller, groups, refusal, registry

pytestmark = pytest.mark.database


SUMS = {"revenue": {"sum": "total"}, "n": {"count": "*"}}


@pytest.fixture
def _zones(db):
    if not connection.features.has_zoneinfo_database:
        pytest.skip("The database has no time zone tables.")


def test_sums_are_not_multiplied_by_relations_with_many_values(shop):
    # A1 has two tags and two lines: joins would count its total four times.
    filters = {"tags__slug__in": ["red", "blue"], "lines__sku__in": ["x", "y"]}

    assert groups(filters=filters, metrics=SUMS) == [{"revenue": "30.00", "n": 2}]
    assert groups(search="b", metrics=SUMS) == [{"revenue": "30.00", "n": 2}]
    assert groups(exclude={"tags__slug": "red"}, metrics=SUMS) == [{"revenue": "20.00", "n": 3}]
    assert groups(any_of=[{"tags__slug": "red"}, {"lines__sku": "y"}]) == [{"count": 1}]


@pytest.mark.parametrize("name", BASES)
def test_numbers_are_right_whatever_the_queryset_of_the_site_does(shop, name):
    who = caller(narrow={Order: BASES[name]})

    assert groups(who, metrics=SUMS) == [{"revenue": "10.00", "n": 1}]
    assert groups(who, metrics=SUMS, filters={"lines__sku__in": ["x", "y"]}) == [
        {"revenue": "10.00", "n": 1}
    ]
    by_customer = groups(who, group_by=["customer__name", "status"], metrics=SUMS)
    assert [(one["customer__name"], one["revenue"], one["n"]) for one in by_customer] == [
        ("Anne", "10.00", 1)
    ]
    assert groups(who, group_by=["status"], filters={"customer__country": "DE"}) == []


def test_groups_have_metrics_conditions_and_an_order(shop):
    metrics = {"n": {"count": "*"}, "q": {"sum": "quantity"}}

    found = groups(group_by=["status"], metrics=metrics, order_by=["-q", "status"])

    assert found == [{"status": "paid", "n": 2, "q": 4}, {"status": "new", "n": 2, "q": 2}]
    assert groups(group_by=["status"], metrics=metrics, having={"q__gt": 3}) == found[:1]
    assert groups(group_by=["status"], metrics=metrics, having={"q": 2, "n__lte": 2}) == found[1:]
    assert groups(group_by=["status"], metrics=metrics, order_by=["q"]) == found[::-1]
    assert groups() == [{"count": 4}]
    # More than the column could hold.
    assert groups(group_by=["status"], metrics=metrics, having={"q__gt": 3 * 10**9}) == []


def test_what_is_null_comes_last_in_one_query_and_a_cut_is_said(shop, django_assert_num_queries):
    who, group_by = caller(), ["customer__name"]
    aggregate(who)

    with django_assert_num_queries(2):
        rising, falling = (
            groups(who, group_by=group_by, metrics=SUMS, order_by=[order])
            for order in ("revenue", "-revenue")
        )
    some = aggregate(who, group_by=["number"], limit=3)
    with override_settings(MCP_DJANGO={"MAX_RESPONSE": 100}):
        short = aggregate(who, group_by=["number"])

    assert rising[-1] == falling[-1] == {"customer__name": None, "revenue": None, "n": 2}
    assert [one["number"] for one in some["groups"]] == ["A1", "A2", "A3"]
    assert 0 < len(short["groups"]) < 4
    assert some["truncated"]
    assert short["truncated"]
    assert not aggregate(who, group_by=["number"], limit=4)["truncated"]


def test_a_group_has_one_name_however_it_is_spelled(shop):
    for name in ("customer", "customer_id", "customer__pk", "customer__id"):
        found = groups(group_by=[name, "customer"], order_by=[f"-{name}"])

        assert [one["customer"] for one in found] == [
            {"pk": shop.bert.pk, "label": "Bert"},
            {"pk": shop.anne.pk, "label": "Anne"},
            None,
        ]
        assert [one["count"] for one in found] == [1, 1, 2]
    bare = groups(caller(may=lambda perm: "customer" not in perm), group_by=["customer"])
    assert [one["customer"] for one in bare] == [shop.anne.pk, shop.bert.pk, None]


def test_every_function_shows_values_as_records_do(shop):
    Order.objects.filter(pk=shop.a1.pk).update(
        took=timedelta(hours=1), weight=0.5, due=date(2026, 1, 2), at=time(9), big=2**60
    )
    Order.objects.filter(pk=shop.a2.pk).update(
        took=timedelta(hours=3), weight=1.0, due=date(2026, 3, 4), at=time(8), big=2**60
    )
    fields = "number total quantity took weight due at placed_at status big"
    options = {"fields": fields, "metric_fields": fields}
    who = caller(tables=registry({Order: options}))

    def one(function, path):
        return groups(who, metrics={"x": {function: path}})[0]["x"]

    assert (one("sum", "total"), one("avg", "total")) == ("30.00", "15.0000")
    assert (one("min", "total"), one("max", "total")) == ("10.00", "20.00")
    assert (one("sum", "quantity"), one("avg", "quantity"), one("max", "quantity")) == (6, 1.5, 3)
    assert (one("sum", "took"), one("avg", "took")) == ("P0DT04H00M00S", "P0DT02H00M00S")
    assert (one("sum", "weight"), one("min", "weight")) == (1.5, 0.5)
    assert (one("min", "due"), one("max", "due")) == ("2026-01-02", "2026-03-04")
    assert (one("min", "at"), one("max", "placed_at")) == ("08:00:00", "2026-01-31T23:30Z")
    assert (one("min", "number"), one("max", "number")) == ("A1", "R1")
    assert one("max", "status") == "paid"
    # No digits that say nothing.
    for order, weight in ((shop.a1, 0.1), (shop.a2, 0.2)):
        Order.objects.filter(pk=order.pk).update(weight=weight)
    assert (one("avg", "weight"), one("sum", "weight")) == (0.15, 0.3)
    # Beyond what JSON readers hold exactly.
    assert one("sum", "big") == str(2**61)
    assert (one("count", "took"), one("count_distinct", "status")) == (2, 2)


def test_nothing_to_add_up_is_null_and_counts_are_zero(shop):
    metrics = {"s": {"sum": "total"}, "a": {"avg": "total"}, "m": {"max": "due"}, **SUMS}

    found = groups(filters={"number": "nope"}, metrics=metrics)

    assert found == [{"s": None, "a": None, "m": None, "revenue": None, "n": 0}]
    assert groups(filters={"number": "nope"}, metrics=metrics, group_by=["status"]) == []


@pytest.mark.parametrize(
    ("metric", "having", "expected"),
    [
        ({"avg": "quantity"}, {"x__gt": 2.5}, "A3"),
        ({"sum": "took"}, {"x__gt": "PT1H"}, "A2"),
        ({"min": "placed_at"}, {"x__gt": "2026-01-01T00:00:00Z"}, "A1"),
        ({"count": "took"}, {"x__exact": 1}, "A1 A2"),
    ],
    ids=str,
)
def test_having_compares_each_metric_in_its_own_kind(shop, metric, having, expected):
    Order.objects.filter(pk=shop.a1.pk).update(took=timedelta(hours=1), due=date(2026, 1, 2))
    Order.objects.filter(pk=shop.a2.pk).update(took=timedelta(hours=3), due=date(2026, 3, 4))
    options = {**ORDER, "metric_fields": "total quantity took due placed_at status"}
    who = caller(tables=registry({Order: options}))

    found = groups(who, group_by=["number"], metrics={"x": metric}, having=having)

    assert [one["number"] for one in found] == expected.split()


@pytest.mark.usefixtures("_zones")
@override_settings(TIME_ZONE="Europe/Paris")
def test_buckets_begin_in_the_current_time_zone(shop):
    Order.objects.filter(pk=shop.a2.pk).update(placed_at=datetime(2026, 7, 15, 12, 40, tzinfo=UTC))
    filters = {"placed_at__isnull": False}
    expected = {
        "trunc_year": ["2026-01-01T00:00:00+01:00"],
        "trunc_quarter": ["2026-01-01T00:00:00+01:00", "2026-07-01T00:00:00+02:00"],
        # The last hour of January in UTC is the first of February in Paris.
        "trunc_month": ["2026-02-01T00:00:00+01:00", "2026-07-01T00:00:00+02:00"],
        "trunc_week": ["2026-01-26T00:00:00+01:00", "2026-07-13T00:00:00+02:00"],
        "trunc_day": ["2026-02-01T00:00:00+01:00", "2026-07-15T00:00:00+02:00"],
        "trunc_hour": ["2026-02-01T00:00:00+01:00", "2026-07-15T14:00:00+02:00"],
        "year": [2026],
        "month": [2, 7],
        "week_day": [1, 4],
        "hour": [0, 14],
    }
    for part, values in expected.items():
        name = f"placed_at__{part}"

        found = groups(group_by=[name], filters=filters, order_by=[name])

        assert [one[name] for one in found] == values


def test_days_have_buckets_without_hours_also_without_time_zone_tables(shop, monkeypatch):
    Order.objects.update(due=date(2026, 5, 14))

    assert groups(group_by=["due__trunc_month"])[0]["due__trunc_month"] == "2026-05-01"
    assert groups(group_by=["due__week_day"])[0]["due__week_day"] == 5
    assert "due can be grouped by trunc_year" in refusal(groups, group_by=["due__trunc_hour"])
    # As MariaDB is where nobody has loaded them.
    monkeypatch.setattr(connection.features, "has_zoneinfo_database", False)
    assert "no time zone tables" in refusal(groups, group_by=["placed_at__trunc_month"])
    assert groups(group_by=["due__trunc_month"], filters={"number": "nope"}) == []


def test_a_sum_that_the_database_cannot_hold_is_answered(shop):
    Order.objects.update(big=2**62)
    who = caller(tables=registry({Order: {"fields": "big"}}))

    if connection.vendor == "sqlite":
        assert "as large as these" in refusal(groups, who, metrics={"x": {"sum": "big"}})
    else:
        assert groups(who, metrics={"x": {"sum": "big"}}) == [{"x": str(2**64)}]


def test_inherited_proxied_and_composite_models_are_counted(shop):
    Seat.objects.create(hall=1, number=1, price=5)
    Seat.objects.create(hall=1, number=2, price=6)

    assert groups(None, RushOrder, group_by=["number"]) == [{"number": "R1", "count": 1}]
    assert groups(None, PaidOrder, filters={"lines__sku": "y"}) == [{"count": 1}]
    assert groups(None, Seat, group_by=["hall"], metrics={"x": {"sum": "price"}}) == [
        {"hall": 1, "x": "11.00"}
    ]


# What may be asked


WRONG: list[dict[str, Any]] = [
    {"group_by": "status"},
    *({"group_by": [name]} for name in (None, "placed_at__trunc_second", "_g0")),
    {"group_by": ["status", "gift", "due", "at"]},
    {"metrics": {}},
    {"metrics": {f"m{n}": {"count": "*"} for n in range(9)}},
    *({"metrics": {"x": metric}} for metric in ("total", {"sum": "total", "avg": "total"})),
    *({"metrics": {"x": {"sum": path}}} for path in ("*", "placed_at__year")),
    *({"metrics": {"x": metric}} for metric in ({"stddev": "total"}, {"max": "gift"})),
    {"group_by": ["status"], "metrics": {"status": {"count": "*"}}},
    {"group_by": ["status"], "having": {"count": None}},
    {"group_by": ["status"], "having": {"count__regex": 1}},
    {"group_by": ["status"], "having": {"count__in": [1]}},
    {"group_by": ["status"], "having": {"_m0__gte": 1}},
    {"group_by": ["status"], "having": {f"count__{n}": 1 for n in range(9)}},
    *({"group_by": ["status"], "order_by": [name]} for name in ("?", "--count", "_m0")),
    {"group_by": ["status"], "order_by": ["count"] * 5},
    {"having": {"count__gte": 1}},
    {"limit": 0},
]


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_a_hostile_shape_is_refused_in_words(db, at):
    assert 10 < len(refusal(groups, **WRONG[at])) < 900


@pytest.mark.parametrize(
    "name", ['a"; DROP TABLE nasty_order', "", "1a", "a__gte", "é", "a" * 41, "%s", None]
)
def test_a_name_of_a_metric_is_a_plain_word(db, name):
    assert "no name for a metric" in refusal(groups, metrics={name: {"count": "*"}})


def test_names_of_callers_are_no_part_of_any_sql(shop, decisions_are_known):
    metrics, order = {"canary_of_a_metric": {"sum": "total"}}, ["-canary_of_a_metric"]
    having = {"canary_of_a_metric__gt": 0}
    with CaptureQueriesContext(connection) as queries:
        groups(group_by=["status"], metrics=metrics, having=having, order_by=order)
        groups(metrics=metrics)

    assert len(queries) == 2
    assert not any("canary" in one["sql"] for one in queries)


def test_declared_groups_show_their_values_and_hide_the_others(shop):
    options = {**ORDER, "group_fields": "customer__country", "metric_fields": "quantity"}
    who = caller(tables=registry({Order: options}))

    found = groups(who, group_by=["customer__country"], metrics={"q": {"sum": "quantity"}})

    assert [(one["customer__country"], one["q"]) for one in found] == [
        ("DE", 2),
        ("FR", 1),
        (None, 3),
    ]
    assert "Use one of: customer__country" in refusal(groups, who, group_by=["status"])
    assert "Use one of: quantity" in refusal(groups, who, metrics={"x": {"sum": "total"}})
    assert groups(who, metrics={"x": {"count_distinct": "customer__country"}}) == [{"x": 2}]


def test_a_path_with_many_values_says_which_model_to_ask(shop):
    assert "Ask nasty.tag for it" in refusal(groups, group_by=["tags__slug"])
    assert "Ask nasty.line for it" in refusal(groups, metrics={"x": {"sum": "lines__amount"}})
    alone = caller(tables=registry({Tag: None}))
    assert refusal(groups, alone, group_by=["tags__slug"]).endswith("cannot be aggregated here.")

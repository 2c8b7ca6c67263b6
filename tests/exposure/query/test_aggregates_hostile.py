"""Nothing hidden is grouped, measured, compared or ordered by, and no answer depends on it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import (
    Avg,
    Count,
    F,
    Max,
    Min,
    Q,
    StdDev,
    Sum,
    Value,
    Variance,
)
from django.db.models.functions import Coalesce, Length, TruncDate, TruncMonth, TruncSecond
from django.test.utils import CaptureQueriesContext

from mcp_django.exceptions import Leak, QueryError
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.guard import guarded
from tests.exposure.query.test_guard import NARROW
from tests.nasty.models import Order
from tests.nasty.site import ORDER, REGISTRY, aggregate, caller, groups, registry


def refusal(**arguments):
    """The sentence that refuses a call, or None where it ran. Anything else is raised."""
    try:
        with transaction.atomic():
            aggregate(caller(), **arguments)
    except QueryError as error:
        return str(error)
    return None


WRONG: list[dict[str, Any]] = [
    {"group_by": "status"},
    {"group_by": {"status": 1}},
    {"group_by": [None]},
    {"group_by": [["status"]]},
    {"group_by": ["status", "gift", "due", "at"]},
    {"group_by": ["placed_at__trunc_second"]},
    {"group_by": ["placed_at__date"]},
    {"group_by": ["at__trunc_hour"]},
    {"group_by": ["_g0"]},
    {"group_by": [10**5000]},
    {"metrics": {}},
    {"metrics": []},
    {"metrics": "count"},
    {"metrics": {f"m{n}": {"count": "*"} for n in range(9)}},
    {"metrics": {"x": "total"}},
    {"metrics": {"x": {}}},
    {"metrics": {"x": {"sum": "total", "avg": "total"}}},
    {"metrics": {"x": {"sum": "*"}}},
    {"metrics": {"x": {"sum": ["total"]}}},
    {"metrics": {"x": {"sum": None}}},
    {"metrics": {"x": {"stddev": "total"}}},
    {"metrics": {"x": {5: "total"}}},
    {"metrics": {"x": {"sum": "placed_at__year"}}},
    {"metrics": {"x": {"sum": "placed_at"}}},
    {"metrics": {"x": {"max": "gift"}}},
    {"group_by": ["status"], "metrics": {"status": {"count": "*"}}},
    {"group_by": ["status"], "having": []},
    {"group_by": ["status"], "having": {"count": None}},
    {"group_by": ["status"], "having": {"count__regex": 1}},
    {"group_by": ["status"], "having": {"count__in": [1]}},
    {"group_by": ["status"], "having": {"status": "paid"}},
    {"group_by": ["status"], "having": {"_m0__gte": 1}},
    {"group_by": ["status"], "having": {5: 1}},
    {"group_by": ["status"], "having": {f"count__{n}": 1 for n in range(9)}},
    {"group_by": ["status"], "order_by": "count"},
    {"group_by": ["status"], "order_by": ["?"]},
    {"group_by": ["status"], "order_by": [None]},
    {"group_by": ["status"], "order_by": ["--count"]},
    {"group_by": ["status"], "order_by": ["_m0"]},
    {"group_by": ["status"], "order_by": ["number"]},
    {"group_by": ["status"], "order_by": ["count"] * 5},
    {"having": {"count__gte": 1}},
    {"order_by": ["count"]},
    {"limit": 0},
    {"limit": True},
    {"limit": "many"},
]


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_a_hostile_shape_is_refused_in_words(db, at):
    assert 10 < len(refusal(**WRONG[at]) or "") < 900


@pytest.mark.parametrize(
    "name",
    [
        'a"; DROP TABLE nasty_order',
        "a b",
        "",
        "1a",
        "a__gte",
        "é",
        "a" * 41,
        "a-b",
        "a\x00",
        "%s",
        None,
    ],
)
def test_a_name_of_a_metric_is_a_plain_word(db, name):
    assert "no name for a metric" in refusal(metrics={name: {"count": "*"}})


def test_names_of_callers_are_no_part_of_any_sql(shop, decisions_are_known):
    metrics = {"canary_of_a_metric": {"sum": "total"}}
    with CaptureQueriesContext(
        connection,
    ) as queries:
        groups(
            group_by=["status"],
            metrics=metrics,
            having={"canary_of_a_metric__gt": 0},
            order_by=["-canary_of_a_metric"],
        )
        groups(metrics=metrics)

    assert len(queries) == 2
    assert not any("canary" in one["sql"] for one in queries)


# Noninterference


# Stage two alone


def by_status(rows):
    return rows.order_by().values(_g0=F("status"))


EVIL = {
    "group hidden": lambda r: r.values(_g0=F("api_token")).annotate(n=Count("*")),
    "group related": lambda r: r.values(_g0=F("owner__username")).annotate(n=Count("*")),
    "group what is filtered": lambda r: r.values(_g0=F("tags__slug")).annotate(n=Count("*")),
    "group transformed": lambda r: r.values(_g0=Length("number")).annotate(n=Count("*")),
    "group by day": lambda r: r.values(_g0=TruncDate("placed_at")).annotate(n=Count("*")),
    "group by second": lambda r: r.values(_g0=TruncSecond("placed_at")).annotate(n=Count("*")),
    "bucket of hidden": lambda r: r.values(_g0=TruncMonth("owner__orders__placed_at")).annotate(
        n=Count("*")
    ),
    "every column": lambda r: r.annotate(n=Count("*")).values("n"),
    "sum hidden": lambda r: by_status(r).annotate(x=Sum("margin")),
    "sum multiplied": lambda r: by_status(r).annotate(x=Sum("lines__amount")),
    "average hidden": lambda r: by_status(r).annotate(x=Avg("customer__credit_rating")),
    "min hidden": lambda r: by_status(r).annotate(x=Min("api_token")),
    "max of a group": lambda r: by_status(r).annotate(x=Max("number")),
    "sum of a group": lambda r: by_status(r).annotate(x=Sum("customer_id")),
    "count hidden": lambda r: by_status(r).annotate(x=Count("api_token")),
    "count related": lambda r: by_status(r).annotate(x=Count("tags")),
    "conditional": lambda r: by_status(r).annotate(x=Count("pk", filter=Q(api_token="x"))),
    "conditional total": lambda r: by_status(r).annotate(x=Sum("total", filter=Q(margin=1))),
    "distinct sum": lambda r: by_status(r).annotate(x=Sum("total", distinct=True)),
    "default": lambda r: by_status(r).annotate(x=Sum("total", default=F("margin"))),
    "sum of more": lambda r: by_status(r).annotate(x=Sum(F("total") + F("margin"))),
    "sum of a value": lambda r: by_status(r).annotate(x=Sum(Value(1))),
    "coalesce": lambda r: by_status(r).annotate(x=Coalesce(Sum("total"), Sum("margin"))),
    "deviation": lambda r: by_status(r).annotate(x=StdDev("total")),
    "variance": lambda r: by_status(r).annotate(x=Variance("total")),
    "having hidden": lambda r: by_status(r).annotate(n=Count("*")).filter(api_token="x"),
    "having a hidden sum": lambda r: by_status(r).alias(x=Sum("margin")).filter(x__gt=1),
    "order hidden": lambda r: by_status(r).annotate(n=Count("*")).order_by("api_token"),
    "records": lambda r: r.order_by().values("remark"),
}


def guarded_orders(narrow=None):
    who = caller(narrow={Order: narrow} if narrow else None)
    return guarded(who.rows(Order), allowed_paths(who, REGISTRY.exposures[Order]).group_policy)


@pytest.mark.parametrize("name", EVIL)
def test_no_undeclared_aggregate_compiles(db, name):
    for narrow in NARROW.values():
        rows = EVIL[name](guarded_orders(narrow).order_by())
        with pytest.raises(Leak):
            rows.query.get_compiler("default").as_sql()


def test_no_undeclared_total_runs(db):
    for aggregate_of in (Sum("margin"), Max("number"), Count("lines__cost"), Count("api_token")):
        with pytest.raises(Leak):
            guarded_orders().aggregate(x=aggregate_of)


def test_a_query_for_records_has_no_groups_and_no_aggregates(db):
    who = caller()
    rows = guarded(who.rows(Order), allowed_paths(who, REGISTRY.exposures[Order]).policy)
    grouped = rows.order_by().values("number")
    grouped.query.group_by = ()

    for run in (lambda: rows.aggregate(n=Count("*")), lambda: list(grouped)):
        with pytest.raises(Leak):
            run()


def test_groups_by_every_column_are_refused(db):
    rows = by_status(guarded_orders()).annotate(n=Count("*"))
    rows.query.group_by = True

    with pytest.raises(Leak):
        list(rows)


def test_a_column_that_only_adds_up_has_no_smallest_value_in_stage_two_either(db):
    tables = registry({Order: {**ORDER, "metric_fields": "margin"}})
    who = caller(tables=tables)
    rows = guarded(who.rows(Order), allowed_paths(who, tables.exposures[Order]).group_policy)

    assert rows.aggregate(x=Sum("margin")) == {"x": None}
    for extreme in (Min("margin"), Max("margin")):
        with pytest.raises(Leak):
            rows.aggregate(x=extreme)


def test_what_is_declared_compiles_whatever_the_site_added(db):
    for narrow in NARROW.values():
        rows = guarded_orders(narrow).filter(customer__country="FR")
        grouped = rows.values(_g0=F("customer__name"), _g1=TruncMonth("placed_at"))
        found = grouped.annotate(s=Sum("total"), n=Count("*"), d=Count("status", distinct=True))

        sql, _ = found.filter(s__gt=1).order_by("-s").query.get_compiler("default").as_sql()

        assert "GROUP BY" in sql
        assert "HAVING" in sql

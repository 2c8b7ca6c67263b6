"""Stage two alone: whatever slips past the dictionaries must not compile."""

from __future__ import annotations

import pytest
from django.db import models as m
from django.db.models import (
    Avg,
    Count,
    Exists,
    F,
    FilteredRelation,
    Func,
    Max,
    Min,
    OuterRef,
    Q,
    StdDev,
    Subquery,
    Sum,
    Value,
    Variance,
    Window,
)
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KT
from django.db.models.functions import (
    Coalesce,
    Length,
    Lower,
    RowNumber,
    TruncDate,
    TruncMonth,
    TruncSecond,
)
from django.db.models.sql.datastructures import Join

from mcp_django.exceptions import Leak
from mcp_django.exposure.query import guard
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.guard import guarded
from tests.nasty.models import Customer, Order, PaidOrder, Person
from tests.nasty.site import ORDER, REGISTRY, caller, registry


class Backwards(m.Transform):
    """A transform that the site registers."""

    lookup_name = "backwards"
    function = "REVERSE"


@pytest.fixture(autouse=True, scope="module")
def site_transform():
    m.CharField.register_lookup(Backwards)
    yield
    m.CharField._unregister_lookup(Backwards)  # type: ignore[arg-type]


def plain(rows):
    return rows.order_by().values("number")


EVIL = {
    "hidden filter or": lambda r: r.filter(Q(number="A") | Q(api_token="x")),
    "attname of undeclared key": lambda r: r.filter(owner_id=1),
    "undeclared relation": lambda r: r.filter(owner=1),
    "related undeclared isnull": lambda r: r.filter(customer__account_manager__isnull=True),
    "declared many to many as join": lambda r: r.filter(tags__slug="x"),
    "generic": lambda r: r.filter(notes__author__password="x"),
    "child table": lambda r: r.filter(rushorder__order_ptr__api_token="x"),
    "round trip": lambda r: r.filter(customer__orders__api_token="x"),
    "round trip back to itself": lambda r: r.filter(customer__orders__number="x"),
    "regex": lambda r: r.filter(number__regex="^(a+)+$"),
    "iregex": lambda r: r.filter(number__iregex="a"),
    "site transform": lambda r: r.filter(number__backwards="x"),
    "second transform": lambda r: r.filter(placed_at__date__year=2000),
    "json key": lambda r: r.filter(payload__password="x"),
    "json deep": lambda r: r.filter(payload__a__b__0="x"),
    "json has_keys": lambda r: r.filter(payload__has_keys=["x"]),
    "json contains": lambda r: r.filter(payload__password__icontains="x"),
    "json key select": lambda r: r.annotate(x=KT("payload__password")).values("x"),
    "json order": lambda r: r.order_by("payload__password").values("number"),
    "F on the right": lambda r: r.filter(number=F("api_token")),
    "F in a list": lambda r: r.filter(number__in=[F("api_token")]),
    "F combined": lambda r: r.filter(quantity__gt=F("margin") + 1),
    "function": lambda r: r.filter(number=Lower("api_token")),
    "text of a function": lambda r: r.filter(number=Func(Value("x"), template="api_token")),
    "array": lambda r: r.filter(number=Func(F("api_token"), **guard.ARRAY)),
    "length": lambda r: r.annotate(x=Length("api_token")).filter(x__gt=1).values("number"),
    "coalesce": lambda r: r.order_by(Coalesce("number", "api_token")).values("number"),
    "order nulls": lambda r: r.order_by(F("margin").desc(nulls_last=True)).values("number"),
    "order by Meta.ordering": lambda r: r.order_by("owner").values("number"),
    "order by filter-only": lambda r: r.order_by("customer__country").values("number"),
    "order random": lambda r: r.order_by("?").values("number"),
    "whole instances": lambda r: r.order_by("number"),
    "only": lambda r: r.order_by("number").only("api_token"),
    "defer": lambda r: r.order_by("number").defer("number"),
    "values filter-only": lambda r: r.order_by("number").values("customer__country"),
    "values json key": lambda r: r.order_by("number").values("payload__password"),
    "select_related": lambda r: r.order_by("number").select_related("owner"),
    "annotate": lambda r: r.order_by().annotate(x=F("owner__password")).values("x"),
    "annotate count": lambda r: r.order_by().annotate(x=Count("lines__cost")).values("x"),
    "alias": lambda r: plain(r.alias(x=F("api_token")).filter(x="a")),
    "aggregate": lambda r: r.values("status").annotate(x=Max("api_token")).values("x").order_by(),
    "group shown": lambda r: r.values("number").annotate(x=Count("*")).order_by(),
    "bucket": lambda r: r.order_by().annotate(b=TruncMonth("placed_at")).values("b"),
    "having": lambda r: r.values("status").annotate(x=Max("number")).filter(x="a").order_by(),
    "subquery": lambda r: r.filter(pk__in=Person.objects.filter(password="x").values("pk")),
    "exists": lambda r: r.filter(
        Exists(Person.objects.filter(pk=OuterRef("owner_id"), password="x"))
    ),
    "subquery select": lambda r: (
        r.order_by()
        .annotate(x=Subquery(Person.objects.filter(pk=OuterRef("pk")).values("password")[:1]))
        .values("x")
    ),
    "queryset value": lambda r: r.filter(id__in=Order.objects.filter(api_token="x")),
    "filtered relation": lambda r: plain(
        r.annotate(s=FilteredRelation("lines", condition=Q(lines__cost=1))).filter(s__sku="x")
    ),
    "raw": lambda r: r.filter(RawSQL("api_token = 'x'", [], output_field=m.BooleanField())),
    "extra where": lambda r: r.extra(where=["api_token = 'x'"]),
    "extra select": lambda r: r.extra(select={"n": "api_token"}).values("n").order_by(),
    "extra tables": lambda r: r.extra(tables=["nasty_person"]).values("number").order_by(),
    "extra order": lambda r: r.extra(order_by=["api_token"]).values("number"),
    "distinct": lambda r: plain(r).distinct(),
    "union": lambda r: plain(r).union(Order.objects.order_by().values("api_token")),
    "window": lambda r: (
        r.order_by().annotate(x=Window(RowNumber(), order_by="api_token")).values("x")
    ),
    "dates": lambda r: r.dates("owner__orders__due", "year"),
    "case": lambda r: (
        r.order_by().annotate(x=m.Case(m.When(api_token="x", then=1), default=0)).values("x")
    ),
    "conditional count": lambda r: (
        r.order_by().values("status").annotate(x=Count("pk", filter=Q(api_token="x")))
    ),
    "label column of another path": lambda r: r.order_by().values("owner__username"),
}
NARROW = {
    "plain": None,
    "merged": lambda rows: rows.filter(owner__salary=1, customer__credit_rating=1, api_token="t"),
    "sealed": lambda rows: rows.filter(tags__internal_note="x").distinct(),
}


def guarded_orders(narrow=None, model=Order):
    who = caller(narrow={model: narrow} if narrow else None)
    return guarded(who.rows(model), allowed_paths(who, REGISTRY.exposures[model]).policy)


def compiled(rows):
    """Compile without running; an empty result still compiles."""
    return rows.query.get_compiler("default").as_sql()


#: Bad by themselves. All others select what may be shown, so that only their evil part is bad.
INSTANCES = ("whole instances", "only", "defer", "select_related", "distinct", "union")


@pytest.mark.parametrize("name", EVIL)
def test_nothing_undeclared_compiles(db, name):
    for narrow in NARROW.values():
        rows = EVIL[name](guarded_orders(narrow))
        if rows._fields is None and name not in INSTANCES:
            rows = plain(rows)
        with pytest.raises(Leak):
            compiled(rows)


def test_a_join_without_any_column_of_it_or_of_a_class_of_the_sites_own_is_refused_too(db):
    class OddJoin(Join):
        pass

    rows = plain(guarded_orders())
    query = rows.query
    query.setup_joins(["lines"], query.get_meta(), query.get_initial_alias())
    odd = guarded_orders().filter(customer__country="FR").order_by().values("number")
    odd.query.alias_map["nasty_customer"].__class__ = OddJoin

    with pytest.raises(Leak, match="An undeclared join: nasty_line"):
        compiled(rows)
    with pytest.raises(Leak, match="unexpected join"):
        compiled(odd)


def test_a_guarded_queryset_is_checked_however_it_is_run_and_makes_no_objects(shop):
    rows = guarded_orders()
    hidden = rows.filter(api_token="x")

    for run in (
        lambda: rows.aggregate(Max("api_token")),
        lambda: hidden.count(),
        lambda: hidden.exists(),
        lambda: hidden[:1].count(),
        lambda: rows.values_list("api_token").explain(),
        lambda: list(rows.values_list("api_token")),
        lambda: list(Order.objects.order_by().filter(pk__in=hidden.values("pk"))),
        lambda: list(rows.iterator()),
        lambda: list(rows),
        lambda: rows.first(),
        lambda: rows.in_bulk([1]),
        lambda: rows.update(status="void"),
        lambda: rows.delete(),
        lambda: rows._raw_delete("default"),
        lambda: rows.create(number="x"),
        lambda: rows.raw("SELECT 1"),
        lambda: rows.get_or_create(number="x"),
        lambda: list(guarded_orders(model=Customer).filter(name="Anne")),
    ):
        with pytest.raises(Leak):
            run()

    assert set(Order.objects.values_list("status", flat=True)) == {"new", "paid"}


def test_the_ordering_of_the_model_and_of_the_site_is_dropped(db):
    for narrow in (*NARROW.values(), lambda rows: rows.order_by("api_token")):
        sql, _ = compiled(guarded_orders(narrow).values("number"))

        assert "ORDER BY" not in sql


def test_rows_of_another_model_and_columns_of_an_outer_query_are_refused(db):
    with pytest.raises(Leak):
        guarded_orders(lambda rows: Customer.objects.all())
    assert compiled(guarded_orders(lambda rows: PaidOrder.objects.all()).values("number"))

    inner = guarded_orders().filter(number=OuterRef("username")).values("pk")
    with pytest.raises(Leak):
        compiled(Person.objects.filter(Exists(inner)))


# Groups and what is measured of them


def by_status(rows):
    return rows.order_by().values(_g0=F("status"))


EVIL_GROUPS = {
    "group related": lambda r: r.values(_g0=F("owner__username")).annotate(n=Count("*")),
    "group what is filtered": lambda r: r.values(_g0=F("tags__slug")).annotate(n=Count("*")),
    "group transformed": lambda r: r.values(_g0=Length("number")).annotate(n=Count("*")),
    "group by day": lambda r: r.values(_g0=TruncDate("placed_at")).annotate(n=Count("*")),
    "group by second": lambda r: r.values(_g0=TruncSecond("placed_at")).annotate(n=Count("*")),
    "bucket of hidden": lambda r: r.values(_g0=TruncMonth("owner__orders__placed_at")).annotate(
        n=Count("*")
    ),
    "every column": lambda r: r.annotate(n=Count("*")).values("n"),
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


def guarded_groups(narrow=None):
    who = caller(narrow={Order: narrow} if narrow else None)
    return guarded(who.rows(Order), allowed_paths(who, REGISTRY.exposures[Order]).group_policy)


@pytest.mark.parametrize("name", EVIL_GROUPS)
def test_no_undeclared_aggregate_compiles(db, name):
    for narrow in NARROW.values():
        rows = EVIL_GROUPS[name](guarded_groups(narrow).order_by())
        with pytest.raises(Leak):
            rows.query.get_compiler("default").as_sql()


def test_a_query_for_records_has_no_groups_and_none_is_by_every_column(db):
    rows = guarded_orders()
    grouped = rows.order_by().values("number")
    grouped.query.group_by = ()
    by_all = by_status(guarded_groups()).annotate(n=Count("*"))
    by_all.query.group_by = True

    for run in (lambda: rows.aggregate(n=Count("*")), lambda: list(grouped), lambda: list(by_all)):
        with pytest.raises(Leak):
            run()


def test_a_column_that_only_adds_up_has_no_smallest_value_in_stage_two_either(db):
    tables = registry({Order: {**ORDER, "metric_fields": "margin"}})
    who = caller(tables=tables)
    rows = guarded(who.rows(Order), allowed_paths(who, tables.exposures[Order]).group_policy)

    assert rows.aggregate(x=Sum("margin")) == {"x": None}
    for extreme in (Min("margin"), Max("margin")):
        with pytest.raises(Leak):
            rows.aggregate(x=extreme)

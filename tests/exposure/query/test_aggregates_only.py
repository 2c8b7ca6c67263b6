"""Models that show numbers and no records, and groups too small to be shown."""

from __future__ import annotations

import pytest

from mcp_django.exceptions import QueryError
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.resources import models as resources
from mcp_django.levels import Level
from tests.exposure.query.test_find import judged
from tests.nasty.models import Customer, Line, Order, Person, Tenant
from tests.nasty.site import ORDER, caller, groups, record, records, refusal, registry

ONLY = {**ORDER, "aggregates_only": True}
HIDDEN = {**ORDER, "metric_fields": "total margin"}


@pytest.fixture
def orders(db):
    """Six paid ones, of which five have totals and margins, and four new ones."""
    owner = Person.objects.create(username="o")
    tenant = Tenant.objects.create(name="t")
    customer = Customer.objects.create(tenant=tenant, name="Anne", country="FR")
    return Order.objects.bulk_create(
        Order(
            owner=owner,
            customer=customer,
            number=str(n),
            status="paid" if n < 6 else "new",
            total=None if n == 5 else n,
            margin=None if n == 5 else 1000 + n,
        )
        for n in range(10)
    )


def who(options, changes=None):
    return caller(tables=registry({Order: options, **(changes or {})}))


def statuses(options, **arguments):
    return [one["status"] for one in groups(who(options), group_by=["status"], **arguments)]


# Groups that are too small


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (ORDER, ["new", "paid"]),
        ({**ORDER, "smallest_group": 6}, ["paid"]),
        (ONLY, ["paid"]),
        ({**ONLY, "smallest_group": 7}, []),
        ({**ORDER, "level": Level.AGGREGATES}, ["paid"]),
    ],
    ids=range(5),
)
def test_groups_of_few_records_vanish_and_without_records_five_are_the_least(
    orders, options, shown
):
    assert statuses(options) == shown


def test_a_total_of_few_is_refused_like_one_of_none(orders):
    four = refusal(groups, who(ONLY), filters={"status": "new"})

    assert four == refusal(groups, who(ONLY), filters={"number": "nope"})
    assert "fewer than 6" in refusal(
        groups, who({**ORDER, "smallest_group": 6}), filters={"status": "new"}
    )
    assert groups(who(ONLY), filters={"status": "paid"}) == [{"count": 6}]


def test_a_sum_of_fewer_than_five_values_vanishes_in_a_group_of_many_records(orders):
    metrics = {"x": {"sum": "total"}}
    assert statuses(ONLY, metrics=metrics) == ["paid"]

    Order.objects.filter(pk=orders[0].pk).update(total=None)

    assert statuses(ONLY) == ["paid"]
    assert statuses(ONLY, metrics=metrics) == []
    assert refusal(groups, who(ONLY), metrics=metrics, filters={"status": "paid"})


# Columns that records do not show


def test_a_column_that_records_do_not_show_has_sum_and_average_of_many_only(orders):
    metrics = {"s": {"sum": "margin"}, "a": {"avg": "margin"}}

    assert groups(who(HIDDEN), group_by=["status"], metrics=metrics) == [
        {"status": "paid", "s": "5010.00", "a": "1002.0000"}
    ]
    few = {"status": "new"}
    assert "fewer than 5" in refusal(groups, who(HIDDEN), metrics=metrics, filters=few)
    for function in ("min", "max", "count", "count_distinct"):
        sentence = refusal(groups, who(HIDDEN), metrics={"x": {function: "margin"}})
        assert sentence == f"metrics: margin has no {function}. It has: sum, avg."
    # What records show has no floor beside it; where they show nothing, all is hidden.
    found = groups(who(HIDDEN), group_by=["status"], metrics={"x": {"max": "total"}})
    assert [one["x"] for one in found] == ["9.00", "4.00"]
    assert "total has no min" in refusal(groups, who(ONLY), metrics={"x": {"min": "total"}})
    assert groups(who(ONLY), metrics={"x": {"count_distinct": "status"}}) == [{"x": 2}]


# Records that are not shown


def test_every_way_to_a_record_answers_with_one_sentence(orders):
    rights, pk = who(ONLY), orders[0].pk
    uris = [
        "objects/nasty.order",
        "objects/nasty.order?nonsense=1",
        f"objects/nasty.order/{pk}",
        "objects/nasty.order/nonsense",
        f"files/nasty.order/{pk}/attachment",
    ]
    ways = [
        lambda: records(rights, Order, filters={"api_token": 1}, limit="nonsense"),
        lambda: record(rights, Order, pk),
        lambda: record(rights, Order, 10**9, fields=["nonsense"]),
        *(lambda uri=uri: resources.read_resource(rights, f"django://{uri}") for uri in uris),
    ]

    assert {refusal(way) for way in ways} == {
        "Records of nasty.order are not shown, only numbers about groups of them. "
        'Call aggregate_records with {"model": "nasty.order"}.'
    }


def test_the_overview_says_that_there_are_numbers_only_and_counts_no_few(orders):
    def summary():
        models = resources.overview(who(ONLY))["models"]
        return next(one for one in models if one["model"] == "nasty.order")

    assert summary().items() >= {"records": 10, "aggregates_only": True}.items()
    assert "uri" not in summary()
    Order.objects.filter(pk__in=[one.pk for one in orders[4:]]).delete()
    assert summary()["records"] is None


@pytest.mark.parametrize(
    "options", [{**ONLY, "label_fields": "number"}, {**ORDER, "level": Level.AGGREGATES}], ids=str
)
def test_no_path_of_another_model_passes_to_the_records(orders, options):
    lines = {"fields": "sku order order__number", "filter_fields": "sku order order__status"}
    Line.objects.create(order=orders[0], sku="x", amount=1)
    rights = who(options, {Line: lines})

    assert records(rights, Line) == [{"sku": "x", "order": orders[0].pk}]
    for arguments in ({"filters": {"order__status": "paid"}}, {"fields": ["order__number"]}):
        with pytest.raises(QueryError):
            records(rights, Line, **arguments)
    assert groups(rights, Line, group_by=["order"]) == [{"order": orders[0].pk, "count": 1}]


def test_a_model_without_records_may_have_paths_through_itself(orders):
    people = {"fields": "username manager__username", "aggregates_only": True}
    boss = Person.objects.create(username="boss")
    Person.objects.bulk_create(Person(username=str(n), manager=boss) for n in range(5))

    assert groups(who(ORDER, {Person: people}), Person, group_by=["manager__username"]) == [
        {"manager__username": "boss", "count": 5}
    ]


# What is described


def described(rights):
    found = describe(rights, rights.registry.exposures[Order])
    return found, {one["name"]: one for one in found["fields"]}


def test_a_definition_marks_what_can_be_grouped_and_measured(orders):
    found, fields = described(who(HIDDEN))

    assert "ordered and grouped by" in found["uses"]
    assert "Numbers have sum, avg, min and max" in found["uses"]
    for name in ("status", "total"):
        assert not {"not", "metric"} & fields[name].keys()
    assert fields["id"].items() >= {"not": ["order", "group"], "metric": []}.items()
    [margin] = found["more_aggregates"]
    assert margin.items() >= {"name": "margin", "metric": ["sum", "avg"]}.items()
    _, fields = described(who({**ORDER, "group_fields": "status", "metric_fields": "ref"}))
    assert fields["ref"]["metric"] == ["count", "count_distinct"]
    # Rows that are judged one by one are in no group.
    found, fields = described(judged())
    assert "grouped" not in found["uses"]
    assert not any("metric" in one for one in fields.values())


def test_a_definition_without_records_tells_of_no_orders_and_its_example_works(orders):
    found, fields = described(who(ONLY))

    assert (found["aggregates_only"], found["smallest_group"]) == (True, 5)
    assert "default_order" not in found
    assert "ordered" not in found["uses"]
    assert not any("content" in one for one in fields.values())
    assert found["example"]["tool"] == "aggregate_records"
    call = found["example"]["arguments"]
    assert call.pop("model") == "nasty.order"
    assert groups(who(ONLY), **call) == [{"status": "paid", "count": 6, "sum": "10.00"}]

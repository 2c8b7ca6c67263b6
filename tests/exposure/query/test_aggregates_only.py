"""Models that show numbers and no records, and groups too small to be shown."""

from __future__ import annotations

import msgspec
import pytest

from mcp_django.exceptions import NotFound, QueryError, ToolError
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.resources import models as resources
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.levels import Level
from tests.exposure.query.test_find import judged
from tests.nasty.models import Customer, Line, Order, Person, Tenant
from tests.nasty.site import ORDER, REGISTRY, aggregate, caller, groups, record, records, registry

ONLY = {**ORDER, "aggregates_only": True}
HIDDEN = {**ORDER, "metric_fields": "total margin"}


@pytest.fixture
def orders(db):
    """Six paid ones, of which five have totals and margins, and four new ones."""
    owner = Person.objects.create(username="o")
    customer = Customer.objects.create(
        tenant=Tenant.objects.create(name="t"), name="Anne", country="FR"
    )
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


def only(**options):
    return caller(tables=registry({Order: {**ONLY, **options}}))


def hidden(**options):
    return caller(tables=registry({Order: {**HIDDEN, **options}}))


def refusal(who, **arguments):
    with pytest.raises(QueryError) as caught:
        aggregate(who, **arguments)
    return str(caught.value)


def statuses(who, **arguments):
    return [one["status"] for one in groups(who, group_by=["status"], **arguments)]


# Groups that are too small


def test_groups_of_fewer_than_five_records_vanish(orders):
    assert statuses(only()) == ["paid"]
    assert statuses(caller()) == ["new", "paid"]


@pytest.mark.thorough
def test_a_total_of_four_is_refused_like_one_of_none(orders):
    four = refusal(only(), filters={"status": "new"})

    assert four == refusal(only(), filters={"number": "nope"})
    assert four == refusal(only(), filters={"number": "1"})
    assert groups(only(), filters={"status": "paid"}) == [{"count": 6}]


def test_a_smallest_group_may_be_set_and_is_never_less_than_five_without_records(orders):
    shown = caller(tables=registry({Order: {**ORDER, "smallest_group": 6}}))

    assert statuses(shown) == ["paid"]
    assert statuses(only(smallest_group=2)) == ["paid"]
    assert statuses(only(smallest_group=7)) == []
    assert "fewer than 6" in refusal(shown, filters={"status": "new"})


def test_a_sum_of_fewer_than_five_values_vanishes_in_a_group_of_many_records(orders):
    metrics = {"x": {"sum": "total"}}
    assert statuses(only(), metrics=metrics) == ["paid"]

    Order.objects.filter(pk=orders[0].pk).update(total=None)

    assert statuses(only()) == ["paid"]
    assert statuses(only(), metrics=metrics) == []
    assert refusal(only(), metrics=metrics, filters={"status": "paid"})


def test_a_truncated_answer_counts_only_groups_that_are_shown(orders):
    assert not aggregate(only(), group_by=["status"], limit=1)["truncated"]
    assert aggregate(caller(), group_by=["status"], limit=1)["truncated"]


# Columns that records do not show


def test_a_column_that_records_do_not_show_has_sum_and_average_of_many_only(orders):
    metrics = {"s": {"sum": "margin"}, "a": {"avg": "margin"}}

    assert groups(hidden(), group_by=["status"], metrics=metrics) == [
        {"status": "paid", "s": "5010.00", "a": "1002.0000"}
    ]
    assert "fewer than 5" in refusal(hidden(), metrics=metrics, filters={"status": "new"})
    for function in ("min", "max", "count", "count_distinct"):
        sentence = refusal(hidden(), metrics={"x": {function: "margin"}})
        assert sentence == f"metrics: margin has no {function}. It has: sum, avg."


def test_a_column_that_records_show_has_no_floor_beside_a_model_with_hidden_ones(orders):
    found = groups(hidden(), group_by=["status"], metrics={"x": {"max": "total"}})

    assert [one["x"] for one in found] == ["9.00", "4.00"]


def test_without_records_there_is_no_smallest_and_no_largest_value(orders):
    for function in ("min", "max"):
        assert f"total has no {function}" in refusal(only(), metrics={"x": {function: "total"}})
    # What can be grouped by can be counted.
    assert groups(only(), metrics={"x": {"count_distinct": "status"}}) == [{"x": 2}]


def test_a_field_that_this_caller_does_not_see_is_measured_by_others_only(orders):
    who = caller(shown={Order: ["number", "status"]})

    assert "cannot be used in sum" in refusal(who, metrics={"x": {"sum": "total"}})


# Records that are not shown


def test_every_way_to_a_record_answers_with_one_sentence(orders):
    who = only()
    pk = orders[0].pk
    ways = [
        lambda: records(who, Order),
        lambda: records(who, Order, filters={"api_token": 1}, limit="nonsense"),
        lambda: record(who, Order, pk),
        lambda: record(who, Order, 10**9),
        lambda: record(who, Order, pk, fields=["nonsense"]),
        lambda: resources.read_resource(who, "django://objects/nasty.order"),
        lambda: resources.read_resource(who, "django://objects/nasty.order?nonsense=1"),
        lambda: resources.read_resource(who, f"django://objects/nasty.order/{pk}"),
        lambda: resources.read_resource(who, "django://objects/nasty.order/nonsense"),
        lambda: resources.read_resource(who, f"django://files/nasty.order/{pk}/attachment"),
        lambda: resources.read_resource(who, f"django://files/nasty.order/{pk}/nonsense"),
    ]
    sentences = set()
    for way in ways:
        with pytest.raises(QueryError) as caught:
            way()
        sentences.add(str(caught.value))

    (sentence,) = sentences
    assert sentence == (
        "Records of nasty.order are not shown, only numbers about groups of them. "
        'Call aggregate_records with {"model": "nasty.order"}.'
    )


def test_who_may_not_view_the_model_does_not_hear_the_sentence(orders):
    who = caller(may=lambda perm: False, tables=only().registry)

    for way in (lambda: who.exposure("nasty.order"), lambda: aggregate(who)):
        with pytest.raises(NotFound):
            way()


def test_a_collection_that_cannot_be_read_is_not_listed(orders):
    uris = [one.uri for one in resources.list_resources(only())]

    assert "django://models/nasty.order" in uris
    assert "django://objects/nasty.order" not in uris
    assert "file" not in [one.name for one in resources.list_templates(only())]
    assert "file" in [one.name for one in resources.list_templates(caller())]


def test_the_overview_says_that_there_are_numbers_only_and_counts_no_few(orders):
    def summary():
        models = resources.overview(only())["models"]
        return next(one for one in models if one["model"] == "nasty.order")

    assert summary()["records"] == 10
    assert summary()["aggregates_only"] is True
    assert "uri" not in summary()
    Order.objects.filter(pk__in=[one.pk for one in orders[4:]]).delete()
    assert summary()["records"] is None


def test_no_path_of_another_model_passes_to_the_records(orders):
    lines = {"fields": "sku order order__number", "filter_fields": "sku order order__status"}
    tables = registry({Order: {**ONLY, "label_fields": "number"}, Line: lines})
    Line.objects.create(order=orders[0], sku="x", amount=1)
    who = caller(tables=tables)

    assert records(who, Line) == [{"sku": "x", "order": orders[0].pk}]
    for arguments in ({"filters": {"order__status": "paid"}}, {"fields": ["order__number"]}):
        with pytest.raises(QueryError):
            records(who, Line, **arguments)
    assert groups(who, Line, group_by=["order"]) == [{"order": orders[0].pk, "count": 1}]


def test_a_level_of_code_without_records_shows_none(orders):
    below = {**ORDER, "level": Level.AGGREGATES}
    lines = {"fields": "sku order order__number"}
    who = caller(tables=registry({Order: below, Line: lines}))
    Line.objects.create(order=orders[0], sku="x", amount=1)

    assert statuses(who) == ["paid"]
    with pytest.raises(QueryError):
        records(who, Order)
    with pytest.raises(QueryError):
        record(who, Order, orders[0].pk)
    with pytest.raises(QueryError):
        records(who, Line, fields=["order__number"])


def test_a_model_without_records_may_have_paths_through_itself(orders):
    people = {"fields": "username manager__username", "aggregates_only": True}
    who = caller(tables=registry({Person: people}))
    boss = Person.objects.create(username="boss")
    Person.objects.bulk_create(Person(username=str(n), manager=boss) for n in range(5))

    assert groups(who, Person, group_by=["manager__username"]) == [
        {"manager__username": "boss", "count": 5}
    ]


# What is described


def test_a_definition_marks_what_can_be_grouped_and_measured(orders):
    found = describe(hidden(), hidden().registry.exposures[Order])
    fields = {one["name"]: one for one in found["fields"]}

    assert "ordered and grouped by" in found["uses"]
    assert "Numbers have sum, avg, min and max" in found["uses"]
    for name in ("status", "total"):
        assert not {"not", "metric"} & fields[name].keys()
    assert fields["id"].items() >= {"not": ["order", "group"], "metric": []}.items()
    assert found["more_aggregates"] == [
        {
            "name": "margin",
            "type": "decimal",
            "null": True,
            "not": ["filter", "order", "group"],
            "metric": ["sum", "avg"],
        }
    ]


@pytest.mark.django_db
def test_a_column_that_only_counts_says_so():
    options = {**ORDER, "group_fields": "status", "metric_fields": "ref"}
    tables = registry({Order: options})

    fields = describe(caller(tables=tables), tables.exposures[Order])["fields"]

    assert next(one for one in fields if one["name"] == "ref")["metric"] == [
        "count",
        "count_distinct",
    ]


def test_a_definition_without_records_tells_of_no_orders_and_its_example_works(orders):
    found = describe(only(), only().registry.exposures[Order])

    assert found["aggregates_only"] is True
    assert found["smallest_group"] == 5
    assert "default_order" not in found
    assert "ordered" not in found["uses"]
    assert not any("content" in one for one in found["fields"])
    assert "remark" not in [one["name"] for one in found["fields"]]
    assert found["example"]["tool"] == "aggregate_records"
    call = found["example"]["arguments"]
    assert call.pop("model") == "nasty.order"
    assert groups(only(), **call) == [{"status": "paid", "count": 6, "sum": "10.00"}]


@pytest.mark.django_db
def test_a_date_has_nothing_to_add_up_where_no_record_is_shown():
    tables = only(group_fields="status").registry

    fields = describe(only(group_fields="status"), tables.exposures[Order])["fields"]

    metrics = {one["name"]: one["metric"] for one in fields if "metric" in one}
    assert metrics["placed_at"] == []
    assert metrics["total"] == ["sum", "avg"]


def test_a_definition_of_rows_that_are_judged_one_by_one_promises_no_groups(db):
    found = describe(judged(), judged().registry.exposures[Order])

    assert "grouped" not in found["uses"]
    assert not any("metric" in one for one in found["fields"])


def test_a_definition_tells_of_no_group_that_the_caller_may_not_use(orders):
    def of(**rights):
        found = describe(caller(**rights), REGISTRY.exposures[Order])
        return [one["name"] for one in found["fields"] if "group" not in one.get("not", ())]

    assert "customer__name" in of()
    assert "customer__name" not in of(may=lambda perm: "customer" not in perm)
    assert "customer__name" not in of(narrow={Customer: lambda rows: rows.filter(pk=1)})
    assert of(shown={Order: ["number", "id"]}) == ["number"]


def test_the_tools_about_records_point_elsewhere_and_show_a_call_that_works(orders):
    def refused(tool, **arguments):
        with pytest.raises(ToolError, match=r"Records of nasty\.order are not shown") as caught:
            RECORD_TOOLS[tool].call(None, only(), {"model": "nasty.order", **arguments})
        return str(caught.value).partition(f"A valid call: {tool} ")[2]

    shown = msgspec.json.decode(refused("find_records"))

    assert shown["model"] == "nasty.customer"
    answer = RECORD_TOOLS["find_records"].call(None, only(), shown)
    assert "Anne" in answer.content[0].text
    # No customer shows its key.
    assert refused("get_record", pk=orders[0].pk) == ""


@pytest.mark.thorough
def test_a_refused_aggregate_shows_a_call_that_works(orders):
    tool = RECORD_TOOLS["aggregate_records"]
    wrong = [
        {},
        {"model": "nasty.tag"},
        {"group_by": 7},
        {"group_by": ["margin"]},
        {"group_by": ["status"], "having": {"margin": 1}},
        {"group_by": ["status"], "order_by": ["margin"]},
        {"group_by": ["status"], "metrics": {"x": {"median": "total"}}},
        {"metrics": {"x": {"sum": "number"}}},
        {"metrics": {"x": "total"}},
        {"group_by": ["status"], "limit": 0},
        {"group_by": ["status"], "search": 5},
        {"group_by": ["status"], "any_of": [{"nowhere": 1}]},
    ]
    for arguments in wrong:
        call = {"model": "nasty.order", **arguments} if arguments else {}
        if "model" in arguments:
            call["filters"] = {"nowhere": 1}
        with pytest.raises(ToolError) as caught:
            tool.call(None, only(), call)
        shown = str(caught.value).partition("A valid call: aggregate_records ")[2]
        answer = tool.call(None, only(), msgspec.json.decode(shown))

        assert '"rows":' in answer.content[0].text


def test_the_example_of_an_aggregate_does_without_groups_and_sums(orders):
    bare = registry({Order: {**ORDER, "group_fields": [], "metric_fields": []}})
    tool = RECORD_TOOLS["aggregate_records"]

    with pytest.raises(ToolError) as caught:
        tool.call(None, caller(tables=bare), {"model": "nasty.order", "group_by": 5})

    shown = str(caught.value).partition("A valid call: aggregate_records ")[2]
    assert msgspec.json.decode(shown) == {
        "model": "nasty.order",
        "metrics": {"count": {"count": "*"}},
        "limit": 5,
    }

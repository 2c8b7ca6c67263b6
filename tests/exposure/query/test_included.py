"""Related records beside a record: a few of each relation, in two queries."""

from __future__ import annotations

import pytest
from django.db.models import F, Sum, Window
from django.db.models.functions import RowNumber

from mcp_django.exceptions import Leak, QueryError
from mcp_django.exposure.query import find
from mcp_django.exposure.query.access import policy_of
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.describe import describe
from mcp_django.exposure.query.guard import guarded
from tests.exposure.query.test_paths_by_rule import who
from tests.library.models import Book, Genre
from tests.nasty.models import Line, Note, Order
from tests.nasty.site import caller, page, record, records, registry
from tests.shop.models import Customer as ShopCustomer
from tests.shop.models import Order as ShopOrder

pytestmark = pytest.mark.django_db


def found(rights, *names, model=Order, **arguments):
    return records(rights, model, include=list(names), **arguments)


def test_many_to_many_and_reverse_rows_come_along(shop):
    a1, a2, a3, _ = found(who(), "tags", "lines", fields=["number"])

    assert [tag["slug"] for tag in a1["tags"]["records"]] == ["red", "blue"]
    assert a1["tags"]["count"] == 2
    assert [line["sku"] for line in a1["lines"]["records"]] == ["x", "y"]
    assert a1["lines"]["records"][0].keys() == {"order", "sku", "amount"}
    assert [tag["slug"] for tag in a2["tags"]["records"]] == ["blue"]
    assert a3 == {
        "number": "A3",
        "tags": {"count": 0, "records": []},
        "lines": {"count": 0, "records": []},
    }


def test_generic_and_intermediate_rows_come_along(shop):
    a1, *others = found(who(), "notes", "watchers", "watch", fields=["number"])

    assert a1["notes"] == {"count": 1, "records": [{"text": "hello"}]}
    assert [one["username"] for one in a1["watchers"]["records"]] == ["boss"]
    assert a1["watch"]["count"] == 1
    assert all(one["notes"]["count"] == 0 for one in others)


def test_more_than_a_few_are_counted_and_the_call_for_all_is_told(shop):
    Line.objects.bulk_create(Line(order=shop.a1, sku=f"z{n}", amount=1) for n in range(30))

    a1 = found(who(), "lines", fields=["number"])[0]

    assert a1["lines"]["count"] == 32
    assert len(a1["lines"]["records"]) == 20
    rest = a1["lines"]["rest"]
    assert rest == {
        "tool": "find_records",
        "arguments": {"model": "nasty.line", "filters": {"order": shop.a1.pk}},
    }
    rights = who()
    exposure = rights.exposure(rest["arguments"]["model"])
    assert find.find_records(rights, exposure, FindRecords(**rest["arguments"])).count == 25


def test_the_call_for_all_is_not_told_where_it_would_be_refused(shop):
    Line.objects.bulk_create(Line(order=shop.a1, sku=f"z{n}", amount=1) for n in range(30))
    rights = who({Line: {"filter_fields": "sku"}})

    lines = found(rights, "lines", fields=["number"])[0]["lines"]

    assert lines["count"] == 32
    assert "rest" not in lines


def test_the_number_of_queries_does_not_grow_with_records(shop, django_assert_num_queries):
    for n in range(40):
        order = Order.objects.create(owner=shop.boss, number=f"N{n}")
        order.tags.add(shop.red)
    rights = who()
    found(rights, "tags", limit=1)

    with django_assert_num_queries(5):
        assert len(found(rights, "tags", "lines", limit=40)) == 40


LISTED = {Order: {"fields": "id number", "filter_fields": "number", "more_filter_fields": ""}}


def test_a_list_of_filters_narrows_filters_and_not_what_is_included(shop):
    a1 = found(who(LISTED), "lines", "watch", filters={"number": "A1"})[0]

    assert [line["sku"] for line in a1["lines"]["records"]] == ["x", "y"]
    assert a1["watch"]["count"] == 1
    for name in ("lines", "lines__sku", "watch__person"):
        with pytest.raises(QueryError, match="cannot be used in filters"):
            found(who(LISTED), "lines", filters={name: "x"})


def test_what_refers_to_another_column_than_the_key_is_in_filters_only(db):
    tables = registry({Book: {"fields": "title genre"}, Genre: {"fields": "code"}})
    described = describe(caller(tables=tables), tables.exposures[Genre])

    assert described["only_in_filters"] == ["book"]
    assert "only_in_include" not in described
    with pytest.raises(QueryError, match="cannot be used in include"):
        found(caller(tables=tables), "book", model=Genre)


def test_a_relation_to_one_record_is_a_path(shop):
    with pytest.raises(QueryError, match="customer leads to one record"):
        found(who(), "customer")


@pytest.mark.parametrize("names", ["tags", ["tags"] * 5, {"tags": 1}, None])
def test_a_wrong_list_is_refused(shop, names):
    with pytest.raises(QueryError, match="include takes a list of 1 to 4 relations"):
        page(who(), Order, include=names)


# The same, named in `fields`


def test_a_relation_among_fields_comes_along_as_if_it_were_included(shop):
    assert found(who(), fields=["number", "tags"]) == found(who(), "tags", fields=["number"])
    assert found(who(), fields=["tags", "lines"]) == [
        {name: record[name] for name in ("tags", "lines")}
        for record in found(who(), "tags", "lines", fields=["number"])
    ]


def test_relations_among_fields_count_as_included(shop):
    with pytest.raises(QueryError, match="At most 4 fit"):
        found(who(), "tags", "lines", "notes", fields=["number", "watch", "watchers"])
    many = [f"N{n}" for n in range(60)]
    Order.objects.bulk_create(Order(owner=shop.boss, number=number) for number in many)
    assert len(found(who(), fields=["tags"], limit=200)) == 50


def test_a_relation_among_the_fields_of_one_record(shop):
    Line.objects.bulk_create(Line(order=shop.a1, sku=f"z{n}", amount=1) for n in range(100))

    a1 = record(who(), Order, shop.a1.pk, fields=["lines"])

    assert list(a1) == ["lines"]
    assert a1["lines"]["count"] == 102
    assert len(a1["lines"]["records"]) == 100


@pytest.mark.parametrize("tool", ["find_records", "get_record"])
def test_the_tools_take_a_relation_among_fields(client, tool):
    customer = ShopCustomer.objects.create(name="Anne")
    ShopOrder.objects.create(number="A1", customer=customer)
    arguments = {"model": "shop.customer"} | ({"pk": customer.pk} if tool == "get_record" else {})

    included = client.call_tool(tool, fields=["name"], include=["orders"], **arguments)
    named = client.call_tool(tool, fields="name,orders", **arguments)

    assert not named.is_error
    assert '"A1"' in named.text
    assert named.text == included.text


# Many-to-many relations that an exposure lists in its fields


# The second stage


def test_the_guard_lets_through_numbers_of_rows_by_declared_columns_only(shop):
    rows = guarded(Line.objects.all(), policy_of(Line, ["order_id"]))
    numbered = Window(RowNumber(), partition_by=[F("order")], order_by=[F("id")])
    assert rows.annotate(n=numbered).values_list("n")

    for window in (
        Window(RowNumber(), partition_by=[F("cost")]),
        Window(RowNumber(), order_by=[F("cost")]),
        Window(Sum("cost"), partition_by=[F("order")]),
        Window(Sum("id"), partition_by=[F("order")]),
    ):
        with pytest.raises(Leak):
            str(rows.annotate(n=window).values_list("n").query)
    assert Note.objects.count() == 1

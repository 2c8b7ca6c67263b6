"""Related records beside a record: a few of each relation, in two queries."""

from __future__ import annotations

import msgspec
import pytest
from django.db.models import F, Sum, Window
from django.db.models.functions import RowNumber

from mcp_django.exceptions import Leak, QueryError
from mcp_django.exposure.query import find
from mcp_django.exposure.query.access import policy_of
from mcp_django.exposure.query.arguments import FindRecords
from mcp_django.exposure.query.guard import guarded
from mcp_django.exposure.query.included import with_included
from tests.exposure.query.test_paths_by_rule import who
from tests.nasty.models import Customer, Line, Note, Order, Tag, Watch
from tests.shop.models import Customer as ShopCustomer
from tests.shop.models import Order as ShopOrder

pytestmark = pytest.mark.django_db


def extended(rights, names, most):
    return lambda access, layout: with_included(rights, access, layout, names, most=most)


def found(rights, *names, model=Order, most=20, **arguments):
    exposure = rights.registry.exposures[model]
    asked = FindRecords(model=exposure.label, **arguments)
    page = find.find_records(rights, exposure, asked, extend=extended(rights, names, most))
    return msgspec.json.decode(page.encoded_records)


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

    a1 = found(who(), "lines", most=5, fields=["number"])[0]

    assert a1["lines"]["count"] == 32
    assert len(a1["lines"]["records"]) == 5
    rest = a1["lines"]["rest"]
    assert rest == {
        "tool": "find_records",
        "arguments": {"model": "nasty.line", "filters": {"order": shop.a1.pk}},
    }
    rights = who()
    exposure = rights.exposure(rest["arguments"]["model"])
    assert find.find_records(rights, exposure, FindRecords(**rest["arguments"])).count == 25


def test_the_number_of_queries_does_not_grow_with_records(shop, django_assert_num_queries):
    for n in range(40):
        order = Order.objects.create(owner=shop.boss, number=f"N{n}")
        order.tags.add(shop.red)
    rights = who()
    found(rights, "tags", limit=1)

    with django_assert_num_queries(5):
        assert len(found(rights, "tags", "lines", limit=40)) == 40


def test_a_page_of_them_is_short(shop):
    Order.objects.bulk_create(Order(owner=shop.boss, number=f"N{n}") for n in range(60))
    rights = who()
    exposure = rights.registry.exposures[Order]
    asked = FindRecords(model=exposure.label, limit=200)

    page = find.find_records(rights, exposure, asked, extend=extended(rights, ["tags"], 20))

    assert page.count == 50
    assert page.next_cursor is not None
    assert page.note == "limit is at most 50."


def test_records_come_with_the_rights_of_their_own_model(shop):
    narrowed = who(narrow={Tag: lambda rows: rows.filter(slug="blue")})
    a1 = found(narrowed, "tags", fields=["number"])[0]
    assert a1["tags"]["count"] == 1
    assert [tag["slug"] for tag in a1["tags"]["records"]] == ["blue"]

    some = who(shown={Line: ["order", "sku"]})
    assert found(some, "lines", fields=["number"])[0]["lines"]["records"][0].keys() == {
        "order",
        "sku",
    }
    in_between = who(narrow={Watch: lambda rows: rows.none()})
    assert found(in_between, "watchers", fields=["number"])[0]["watchers"]["count"] == 0


@pytest.mark.parametrize(
    ("rights", "name"),
    [
        ({}, "nothing"),
        ({}, "customer__orders"),
        ({}, 5),
        ({"may": lambda name: "line" not in name}, "lines"),
        ({"shown": {Line: ["sku"]}}, "lines"),
    ],
)
def test_what_does_not_exist_cannot_be_included(shop, rights, name):
    with pytest.raises(QueryError) as refusal:
        found(who(**rights), name)

    assert "cannot be used in include." in str(refusal.value)
    assert "Did you mean lines" not in str(refusal.value)


def test_a_relation_to_one_record_is_a_path(shop):
    with pytest.raises(QueryError, match="customer leads to one record"):
        found(who(), "customer")


@pytest.mark.parametrize("names", [[], "tags", ["tags"] * 5, {"tags": 1}])
def test_a_wrong_list_is_refused(shop, names):
    rights = who()
    exposure = rights.registry.exposures[Order]
    with pytest.raises(QueryError, match="include takes a list of 1 to 4 relations"):
        find.find_records(
            rights, exposure, FindRecords(model=exposure.label), extend=extended(rights, names, 5)
        )


def test_one_record_has_its_related_records(shop):
    rights = who()
    exposure = rights.registry.exposures[Customer]
    encoded = find.get_record(
        rights, exposure, shop.anne.pk, fields=["name"], extend=extended(rights, ["orders"], 100)
    )

    record = msgspec.json.decode(encoded)
    assert record["name"] == "Anne"
    assert [one["number"] for one in record["orders"]["records"]] == ["A1"]


def test_nobody_gets_what_was_included_for_somebody_else(shop):
    arguments = {"fields": ["number"], "filters": {"number": "A1"}}
    narrowed = who(narrow={Line: lambda rows: rows.filter(sku="y")})

    assert found(who(), "lines", **arguments)[0]["lines"]["count"] == 2
    assert found(narrowed, "lines", **arguments)[0]["lines"]["count"] == 1
    assert found(who(), "lines", **arguments)[0]["lines"]["count"] == 2


def test_the_tools_include_what_a_call_names(client):
    customer = ShopCustomer.objects.create(name="Anne")
    ShopOrder.objects.create(number="A1", customer=customer)

    arguments = {"model": "shop.customer", "include": ["orders"]}
    [listed] = client.call_tool("find_records", **arguments).structured["records"]
    one = client.call_tool("get_record", pk=customer.pk, **arguments).structured

    for record in (listed, one):
        assert record["orders"]["count"] == 1
        assert [order["number"] for order in record["orders"]["records"]] == ["A1"]


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

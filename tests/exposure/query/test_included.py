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
from tests.nasty.models import Line, Order
from tests.nasty.site import caller, page, record, records, registry

pytestmark = pytest.mark.django_db


def found(rights, *names, model=Order, **arguments):
    return records(rights, model, include=list(names), **arguments)


def test_rows_behind_every_kind_of_relation_come_along(shop, django_assert_num_queries):
    names, rights = ["tags", "lines", "notes", "watch"], who()
    found(rights, "tags", limit=1)

    # One for the records, and two for each relation.
    with django_assert_num_queries(9):
        rows = found(rights, *names, fields=["number"])

    a1, a2, a3, _ = rows
    assert [tag["slug"] for tag in a1["tags"]["records"]] == ["red", "blue"]
    assert [line["sku"] for line in a1["lines"]["records"]] == ["x", "y"]
    assert a1["lines"]["records"][0].keys() == {"order", "sku", "amount"}
    assert a1["notes"] == {"count": 1, "records": [{"text": "hello"}]}
    assert a1["watch"]["count"] == 1
    assert [tag["slug"] for tag in a2["tags"]["records"]] == ["blue"]
    assert a3 == {"number": "A3"} | {name: {"count": 0, "records": []} for name in names}
    # Named among fields they are the same.
    assert found(rights, fields=["number", *names]) == rows


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
    # Not told where it would be refused.
    listed = {Line: {"filter_fields": "sku"}, Order: {"filter_fields": "number"}}
    lines = found(who(listed), "lines", fields=["number"])[0]["lines"]
    assert (lines["count"], "rest" in lines) == (32, False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"include": "tags"}, "include takes a list of 1 to 4 relations"),
        ({"include": ["tags"] * 5}, "include takes a list of 1 to 4 relations"),
        ({"include": ["customer"]}, "customer leads to one record. Name customer__<field> in"),
        (
            {"include": ["tags", "lines", "notes"], "fields": ["watch", "watchers"]},
            "At most 4 fit",
        ),
    ],
    ids=range(4),
)
def test_what_cannot_be_included_is_refused_in_words(shop, arguments, sentence):
    with pytest.raises(QueryError, match=sentence):
        page(who(), Order, **arguments)


def test_a_page_with_relations_has_fifty_records_at_most(shop):
    many = [f"N{n}" for n in range(60)]
    Order.objects.bulk_create(Order(owner=shop.boss, number=number) for number in many)

    assert len(found(who(), fields=["tags"], limit=200)) == 50


def test_what_refers_to_another_column_than_the_key_is_in_filters_only(db):
    tables = registry({Book: {"fields": "title genre"}, Genre: {"fields": "code"}})

    described = describe(caller(tables=tables), tables.exposures[Genre])

    assert described["only_in_filters"] == ["book"]
    with pytest.raises(QueryError, match="cannot be used in include"):
        found(caller(tables=tables), "book", model=Genre)


def test_a_relation_among_the_fields_of_one_record(shop):
    Line.objects.bulk_create(Line(order=shop.a1, sku=f"z{n}", amount=1) for n in range(100))

    a1 = record(who(), Order, shop.a1.pk, fields=["lines"])

    assert list(a1) == ["lines"]
    assert a1["lines"]["count"] == 102
    assert len(a1["lines"]["records"]) == 100


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

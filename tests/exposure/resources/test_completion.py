"""Completion of the variables of resource templates: as far as the caller reaches, no further."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest
from django.db import connection
from django.db import models as django_models
from django.test.utils import isolate_apps

from mcp_django.exposure.paths import Path
from mcp_django.exposure.query import completion
from mcp_django.exposure.resources.completion import complete_resource, ranked_by, target_exposure
from mcp_django.exposure.resources.models import read_resource
from mcp_django.exposure.uris import COLLECTION, DEFINITION, FILE, OBJECT
from mcp_django.principal import Restriction
from tests.exposure.query.test_rows import SLOW
from tests.nasty import models
from tests.nasty.site import Narrowable, caller, registry

pytestmark = pytest.mark.django_db


def offered(argument, typed="", *, who=None, template=COLLECTION, model="nasty.order"):
    """The values, or None where there is no such argument."""
    given = {} if model is None else {"model": model}
    answer = complete_resource(who or caller(), template.text, argument, typed, given=given)
    return None if answer is None else list(answer.values)


def keys(typed="", *, who=None, model="nasty.order"):
    return offered("pk", typed, who=who, template=OBJECT, model=model)


def numbers(typed="", *, who=None):
    """The same by the numbers of the orders."""
    return [models.Order.objects.get(pk=pk).number for pk in keys(typed, who=who)]


# Ranks


@pytest.mark.parametrize(
    ("value", "pairs", "ranked"),
    [
        (
            "PAID",
            [(name, (name,)) for name in ("xpaid", "pay_paid", "paid__in", "paid", "unrelated")],
            ["paid", "paid__in", "pay_paid", "xpaid"],
        ),
        # By its label, ranked by the better of both.
        ("paid", [("a", ("a", "Not paid")), ("b", ("b", "Paid")), ("c", ("New",))], ["b", "a"]),
        # No regular expression.
        ("[a-z]", [("a", ("abc",))], []),
        ("(", [("a", ("a b",))], []),
    ],
)
def test_what_is_equal_comes_before_what_begins_before_words_before_the_rest(value, pairs, ranked):
    assert ranked_by(value, pairs) == ranked


# Callers


def permitted(*permissions):
    return {"may": lambda perm: perm in permissions}


def changed(**options):
    """Orders that are called by their number, with these options."""
    order = {
        "fields": "id number status remark",
        "filter_fields": "id number status",
        "label_fields": "number",
    }
    return {"tables": registry({models.Order: {**order, **options}})}


ALL, TAGS = {}, permitted("nasty.view_tag")
BOTH = permitted("nasty.view_order", "nasty.view_tag")
HELD = {"restriction": Restriction(models=frozenset({"nasty.tag"}))}
NUMBERS = {"shown": {models.Order: ["number"]}}
STATUSES = {"shown": {models.Order: ["id", "status"]}}
AGGREGATES = changed(fields="id number status", aggregates_only=True)


@pytest.mark.parametrize(
    ("who", "template", "argument", "typed", "values"),
    [
        # Order is shown as three models with one table; the others need rights of their own.
        *(
            (BOTH, template, "model", "nasty", ["nasty.order", "nasty.tag"])
            for template in (DEFINITION, COLLECTION, OBJECT, FILE)
        ),
        (ALL, DEFINITION, "model", "persons", ["nasty.person"]),
        (TAGS, DEFINITION, "model", "", ["nasty.tag"]),
        (HELD, DEFINITION, "model", "", ["nasty.tag"]),
        (AGGREGATES, DEFINITION, "model", "nasty.order", ["nasty.order"]),
        # A template that is not listed to a caller is as unknown as a variable it does not have.
        (permitted(), DEFINITION, "model", "", None),
        (TAGS, FILE, "field", "", None),
        (STATUSES, FILE, "field", "", None),
        (ALL, DEFINITION, "status", "", None),
        (ALL, OBJECT, "status", "", None),
        (ALL, FILE, "filters", "", None),
        (ALL, OBJECT, "model__in", "", None),
        (ALL, COLLECTION, "limit", "", None),
        (ALL, COLLECTION, "field", "", None),
        # A model, a record and a column that are hidden.
        *((who, OBJECT, "pk", "", []) for who in (TAGS, HELD, NUMBERS, AGGREGATES)),
        *((TAGS, COLLECTION, name, "", []) for name in ("order_by", "fields", "filters")),
        *((who, COLLECTION, "status", "", None) for who in (TAGS, HELD, AGGREGATES)),
        (AGGREGATES, COLLECTION, "order_by", "", []),
        (AGGREGATES, COLLECTION, "number", "", None),
        (STATUSES, COLLECTION, "number", "A", None),
        # Everybody may order by the key.
        (NUMBERS, COLLECTION, "order_by", "", ["-id", "-number", "id", "number"]),
        (ALL, FILE, "field", "", ["attachment"]),
        (ALL, FILE, "field", "number", []),
    ],
)
def test_who_is_offered_what(shop, who, template, argument, typed, values):
    assert offered(argument, typed, who=caller(**who), template=template) == values


# Keys

SHOWN = {"fields": "id status customer", "filter_fields": "id status customer"}


@pytest.mark.parametrize(
    ("typed", "expected", "changes"),
    [
        ("a", ["A1", "A2", "A3"], {}),
        ("A2", ["A2"], {}),
        # Behind those that begin with it.
        ("x", ["x%_off", "Rx"], {}),
        # Wildcards stand for themselves.
        ("x%_", ["x%_off"], {}),
        ("%_o", ["x%_off"], {}),
        ("_", ["x%_off"], {}),
        ("A_", [], {}),
        ("%1", [], {}),
        # Labels count where they are shown and filtered by.
        ("A1", [], {"fields": "id status"}),
        ("A1", [], {"filter_fields": "id status"}),
        # Of choices, and of labels that are empty.
        ("pai", ["A1", "A3"], {**SHOWN, "label_fields": "status customer"}),
    ],
)
def test_keys_are_found_by_what_stands_for_the_record(shop, typed, expected, changes):
    person = models.Person.objects.create(username="other")
    for number in ("Rx", "x%_off"):
        models.Order.objects.create(owner=person, number=number)

    assert numbers(typed, who=caller(**changed(**changes))) == expected


class Judging(Narrowable):
    def has_view_permission(self, request, obj=None):
        return obj is None or obj.number != "A2"


@pytest.mark.parametrize(
    ("who", "visible"),
    [
        ({}, ["A1", "A2", "A3", "R1"]),
        ({"narrow": {models.Order: lambda rows: rows.exclude(number="A2")}}, ["A1", "A3", "R1"]),
        (changed(bases=(Judging,)), ["A1", "A3", "R1"]),
    ],
    ids=["all", "narrowed", "judged one by one"],
)
def test_keys_and_values_are_those_of_visible_records(shop, who, visible):
    hidden = {"A1", "A2", "A3"} - set(visible)

    assert numbers(who=caller(**who)) == visible
    assert offered("number", "A", who=caller(**who)) == [n for n in visible if n != "R1"]
    for order in (shop.a1, shop.a2):
        answer = keys(str(order.pk), who=caller(**who))
        assert (str(order.pk) in answer) is (order.number not in hidden)


def test_keys_too_long_for_a_uri_and_texts_that_no_filter_takes_are_left_out(shop, monkeypatch):
    monkeypatch.setattr(completion, "LONGEST_KEY", 200)
    for length in (200, 201):
        models.Tricky.objects.create(key="k" * length, order=shop.a1)
    who = caller(**changed(fields="id remark", filter_fields="remark", label_fields=""))
    for order, remark in ((shop.a1, "x" * 101), (shop.a2, "xy")):
        models.Order.objects.filter(pk=order.pk).update(remark=remark)

    assert keys("k", model="nasty.tricky") == ["k" * 200]
    assert offered("remark", "x", who=who) == ["xy"]


@pytest.mark.parametrize(
    "value", ["x" * 101, "9" * 5000, "\x00", "\ud800", "A" + "\x00", "-", "--1", "1e3", "٣"]
)
def test_huge_and_impossible_values_find_nothing(shop, value):
    assert keys(value, who=caller(**changed())) == []
    assert offered("number", value) == offered("quantity", value) == []
    assert keys(value, model="nasty.seat") == []


@pytest.mark.parametrize(
    ("typed", "expected", "quantities"),
    [
        ("12", ["12", "129", "1250"], ["12", "1250", "129"]),
        ("1", ["1", "12", "13", "129", "1250"], ["1", "12", "1250", "129", "13"]),
        ("0", [], []),
        ("012", [], []),
        ("-1", [], ["-1", "-15"]),
    ],
)
def test_numbers_are_found_by_their_first_digits(typed, expected, quantities):
    person = models.Person.objects.create(username="boss")
    rows = {pk: pk for pk in (1, 12, 13, 129, 1250, 21, 212)} | {7: -1, 8: -15, 9: -2}
    for pk, quantity in rows.items():
        models.Order.objects.create(pk=pk, owner=person, number=f"N{pk}", quantity=quantity)

    assert keys(typed) == expected
    assert offered("quantity", typed) == quantities


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("", ["1/1", "1/12", "2/1", "12/3"]),
        ("1", ["1/1", "1/12", "12/3"]),
        *((typed, ["1/1", "1/12"]) for typed in ("1/", "1/1")),
        ("2/1", ["2/1"]),
        *((typed, []) for typed in ("1/1/1", "x/1", "%zz/1")),
    ],
)
def test_a_composite_key_is_offered_with_its_parts_between_slashes(typed, expected):
    for hall, number in ((1, 1), (1, 12), (2, 1), (12, 3)):
        models.Seat.objects.create(hall=hall, number=number, label=f"Seat {number}")

    assert keys(typed, model="nasty.seat") == expected


def test_a_completed_key_put_into_the_template_is_the_uri_of_its_record(shop):
    models.Seat.objects.create(hall=1, number=12)
    models.Tricky.objects.create(key="a/%2F?ü", order=shop.a1)

    for model, typed in (("nasty.seat", "1/"), ("nasty.tricky", "%2F")):
        (key,) = keys(typed, model=model)
        (record,) = read_resource(caller(), OBJECT.expand({"model": model, "pk": key})).contents
        assert record.text.startswith("{")


def test_keys_of_a_class_that_nobody_knows_are_found_whole():
    models.Odd.objects.create(word="tree")

    assert keys("tree", model="nasty.odd") == ["tree"]
    assert keys("tr", model="nasty.odd") == keys("explode", model="nasty.odd") == []


# Names and values


@pytest.mark.parametrize(
    ("argument", "typed", "values"),
    [
        ("order_by", "tot", ["total", "-total"]),
        ("order_by", "-tot", ["-total"]),
        ("order_by", "status,-tot", ["status,-total"]),
        ("order_by", "margin,tot", []),
        ("fields", "id,number,rem", ["id,number,remark"]),
        ("fields", "id,i", ["id,ip", "id,gift", "id,quantity", "id,weight"]),
        ("fields", "lines__", []),
        ("filters", "stat", ["status"]),
        # Choices by key and label.
        ("status", "", ["new", "paid", "void"]),
        ("status", "Pa", ["paid"]),
        ("status__in", "v", ["void"]),
        ("status__isnull", "", ["false", "true"]),
        ("gift", "", ["false", "true"]),
        ("gift__isnull", "t", ["true"]),
        # Columns, without repetition.
        ("number", "a", ["A1", "A2", "A3"]),
        *(("number", typed, []) for typed in ("1", "%", "A_")),
        ("customer__name", "", ["Anne", "Bert"]),
        *(("ref", typed, []) for typed in ("1235", "xyz")),
        ("ref", "12345678-12", ["12345678-1234-5678-1234-567812345678"]),
        ("ip", "", ["10.0.0.1"]),
        ("due", "2026-01-31", ["2026-01-31"]),
        ("total", "", ["10.00", "20.00"]),
        ("total", "10.00", ["10.00"]),
        ("payload__isnull", "", ["false", "true"]),
        # Comparisons and parts of dates.
        ("total__gte", "1", []),
        ("placed_at__year", "2", []),
        ("search", "A", []),
        ("cursor", "", []),
        # Filters on these exist. No record shows them.
        ("customer__country", "", []),
        ("lines__sku", "x", []),
        ("tags__slug", "r", []),
    ],
)
def test_what_is_offered_after_what_was_typed(shop, argument, typed, values):
    ref = UUID("12345678-1234-5678-1234-567812345678")
    models.Order.objects.filter(pk=shop.a1.pk).update(ref=ref, due="2026-01-31")
    models.Order.objects.update(ip="10.0.0.1")

    assert offered(argument, typed) == values


def test_operators_follow_a_path_that_was_typed_in_full():
    assert "status__in" in offered("filters", "status")
    assert "placed_at__year" in offered("filters", "placed_at__")
    assert "customer__country" in offered("filters", "customer__")
    assert "customer__name" not in offered(
        "filters", "customer__", who=caller(shown={models.Customer: ["country"]})
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("gift=true", ["A1"]), ("gift=false", []), ("gift__isnull=true", ["A2", "A3", "R1"]),
        ("customer__isnull=false", ["A1", "A2"]), ("number=true", []), ("number=A1", ["A1"]),
    ],
)  # fmt: skip
def test_booleans_in_the_query_of_a_uri_are_understood(shop, query, expected):
    models.Order.objects.filter(pk=shop.a1.pk).update(gift=True)

    (page,) = read_resource(
        caller(), f"django://objects/nasty.order?{query}&fields=number"
    ).contents

    assert msgspec.json.decode(page.text)["rows"] == [[number] for number in expected]


CALLED = {
    models.Customer: {"fields": "id name", "filter_fields": "id name", "label_fields": "name"},
    models.Tag: {"fields": "id slug"},
}
ANNE = {"narrow": {models.Customer: lambda rows: rows.filter(name="Anne")}}


@pytest.mark.parametrize(
    ("options", "argument", "typed", "names"),
    [
        ({}, "customer", "", ["anne", "bert"]),
        ({}, "customer", "be", ["bert"]),
        ({"may": lambda perm: "customer" not in perm}, "customer", "", []),
        (ANNE, "customer__in", "be", []),
        # Records of customers do not show their keys on the other site.
        ({"tables": registry()}, "customer", "be", []),
        ({}, "tags", "", ["red", "blue"]),
        ({"tables": registry({models.Tag: None})}, "tags", "", []),
    ],
)
def test_values_of_relations_are_keys_of_related_records(shop, options, argument, typed, names):
    who = caller(**{"tables": registry(CALLED), **options})

    assert offered(argument, typed, who=who) == [str(getattr(shop, name).pk) for name in names]


@isolate_apps("tests.nasty")
def test_a_foreign_key_to_another_column_than_the_key_gives_no_values():
    class Badge(django_models.Model):
        person = django_models.ForeignKey(
            models.Person, django_models.CASCADE, to_field="username", related_name="+"
        )

        class Meta:
            app_label = "nasty"

    field = Badge._meta.get_field("person")

    assert (
        target_exposure(caller(), Path(text="person", model=Badge, hops=(), field=field)) is None
    )


def test_a_search_for_values_ends_after_a_few_rounds(shop, monkeypatch):
    monkeypatch.setattr(completion, "MOST", 2)
    monkeypatch.setattr(completion, "ROUNDS", 1)
    models.Order.objects.update(number="B1")
    models.Order.objects.filter(pk=shop.r1.pk).update(number="B2")

    short = complete_resource(
        caller(), COLLECTION.text, "number", "B", given={"model": "nasty.order"}
    )
    monkeypatch.setattr(completion, "ROUNDS", 10)
    longer = offered("number", "B")

    assert (short.values, short.has_more) == (["B1"], True)
    assert longer == ["B1", "B2"]


@pytest.mark.database
@pytest.mark.thorough
def test_a_search_that_takes_too_long_offers_nothing(shop, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STATEMENT_TIMEOUT": 0.2}
    slow = f"({SLOW[connection.vendor]}) IS NOT NULL"
    narrow = {models.Order: lambda rows: rows.extra(where=[slow])}

    # Without an end to it the limit of the test would be reached.
    assert keys(who=caller(**changed(), narrow=narrow)) == []

"""Completion of the variables of resource templates: as far as the caller reaches, no further."""

from __future__ import annotations

import time
from uuid import UUID

import msgspec
import pytest
from django.db import connection
from django.db import models as django_models
from django.test.utils import isolate_apps

from mcp_django.exceptions import QueryError
from mcp_django.exposure.paths import Path
from mcp_django.exposure.query import completion
from mcp_django.exposure.resources.completion import (
    complete_resource,
    ranked_by,
    target_exposure,
)
from mcp_django.exposure.resources.models import read_resource
from mcp_django.exposure.uris import COLLECTION, DEFINITION, FILE, OBJECT
from mcp_django.principal import Restriction
from tests.nasty import models
from tests.nasty.site import Narrowable, caller, registry

pytestmark = pytest.mark.django_db


def complete(argument, value="", *, who=None, template=COLLECTION, **given):
    """The values, or None where there is no such argument."""
    found = complete_resource(who or caller(), template.text, argument, value, given=given)
    return None if found is None else list(found.values)


def of_orders(argument, value="", *, who=None, template=COLLECTION):
    return complete(argument, value, who=who, template=template, model="nasty.order")


def pks(value="", *, who=None, model="nasty.order"):
    return complete("pk", value, who=who, template=OBJECT, model=model)


def texts(*objects):
    return [str(one.pk) for one in objects]


# Ranks


@pytest.mark.parametrize(
    ("value", "pairs", "found"),
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
def test_what_is_equal_comes_before_what_begins_before_words_before_the_rest(value, pairs, found):
    assert ranked_by(value, pairs) == found


# Models


@pytest.mark.parametrize("template", [DEFINITION, COLLECTION, OBJECT, FILE])
def test_models_are_those_that_this_caller_sees(shop, template):
    def may(perm):
        return perm in ("nasty.view_order", "nasty.view_tag")

    found = complete("model", "nasty", who=caller(may=may), template=template)

    # Order is shown as three models with one table; the others need rights of their own.
    assert found == ["nasty.order", "nasty.tag"]
    assert complete("model", "persons", template=template)[0] == "nasty.person"


def test_a_credential_that_is_held_to_models_completes_no_other(shop):
    who = caller(restriction=Restriction(models=frozenset({"nasty.tag"})))

    assert complete("model", who=who, template=DEFINITION) == ["nasty.tag"]
    assert pks(who=who) == []
    assert of_orders("status", who=who) is None


def test_a_template_that_is_not_listed_to_a_caller_is_as_unknown_as_any(shop):
    nobody = caller(may=lambda perm: False)
    no_files = caller(may=lambda perm: perm == "nasty.view_tag")

    assert complete("model", who=nobody, template=DEFINITION) is None
    assert complete("field", who=no_files, template=FILE, model="nasty.tag") is None
    assert complete_resource(caller(), "django://site", "model", "", given={}) is None
    assert complete_resource(caller(), OBJECT.text + "/x", "model", "", given={}) is None


@pytest.mark.parametrize("model", ["nasty.order", "nasty.nothing", "", None])
def test_hidden_and_missing_models_offer_the_same_nothing(shop, model):
    who = caller(may=lambda perm: perm == "nasty.view_tag")
    given = {} if model is None else {"model": model}

    assert complete("pk", who=who, template=OBJECT, **given) == []
    assert complete("order_by", who=who, **given) == []
    assert complete("fields", who=who, **given) == []
    assert complete("filters", who=who, **given) == []
    assert complete("status", who=who, **given) is None


@pytest.mark.parametrize("name", ["api_token", "margin", "owner__password", "customer__salary"])
def test_a_hidden_column_and_a_missing_one_are_no_arguments(shop, name):
    hidden = caller(shown={models.Order: ["id", "status"]})

    assert of_orders(name, "t") is None
    assert of_orders("nothing", "t") is None
    assert of_orders(f"{name}__startswith", "t") is None
    assert of_orders("number", "A", who=hidden) is None
    assert of_orders("field", who=hidden, template=FILE) is None


@pytest.mark.parametrize(
    ("argument", "template"),
    [
        ("status", DEFINITION),
        ("status", OBJECT),
        ("filters", FILE),
        ("model__in", OBJECT),
        ("limit", COLLECTION),
        ("field", COLLECTION),
    ],
)
def test_variables_that_a_template_does_not_have_do_not_exist(shop, argument, template):
    assert of_orders(argument, template=template) is None


# Keys


@pytest.mark.parametrize("value", ["", "{0}"])
def test_keys_are_those_of_visible_records_in_their_order(shop, value):
    who = caller(narrow={models.Order: lambda rows: rows.filter(status="paid")})
    typed = value.format(shop.a2.pk)

    assert pks(typed) == texts(*([shop.a2] if value else [shop.a1, shop.a2, shop.a3, shop.r1]))
    assert pks(typed, who=who) == ([] if value else texts(shop.a1, shop.a3))


def test_keys_are_hidden_from_those_whose_records_hide_them(shop):
    who = caller(shown={models.Order: ["number"]})

    assert pks(who=who) == []
    assert pks(str(shop.a1.pk), who=who) == []
    assert complete("pk", "Anne", template=OBJECT, model="nasty.customer") == []


def labelled(**changes):
    """Orders that are called by their number."""
    tables = registry(
        {
            models.Order: {
                "fields": "id number status remark",
                "filter_fields": "id number status",
                "label_fields": "number",
                **changes,
            }
        }
    )
    return lambda **options: caller(tables=tables, **options)


@pytest.mark.parametrize(
    ("value", "numbers", "changes"),
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
        (
            "pai",
            ["A1", "A3"],
            {
                "fields": "id status customer",
                "filter_fields": "id status customer",
                "label_fields": "status customer",
            },
        ),
    ],
)
def test_keys_are_found_by_what_stands_for_the_record(shop, value, numbers, changes):
    person = models.Person.objects.create(username="other")
    for number in ("Rx", "x%_off"):
        models.Order.objects.create(owner=person, number=number)

    found = pks(value, who=labelled(**changes)())

    assert [models.Order.objects.get(pk=pk).number for pk in found] == numbers


def test_models_with_numbers_only_complete_nothing_but_their_label(shop):
    tables = registry({models.Order: {"fields": "id number status", "aggregates_only": True}})
    who = caller(tables=tables)

    assert complete("model", "nasty.order", who=who) == ["nasty.order"]
    assert pks(who=who) == []
    assert of_orders("order_by", who=who) == []
    assert of_orders("status", who=who) is None
    assert of_orders("number", who=who) is None


def test_keys_too_long_for_a_uri_are_left_out(shop, monkeypatch):
    monkeypatch.setattr(completion, "LONGEST_KEY", 200)
    models.Tricky.objects.create(key="k" * 201, order=shop.a1)
    models.Tricky.objects.create(key="k" * 200, order=shop.a1)

    assert complete("pk", "k", template=OBJECT, model="nasty.tricky") == ["k" * 200]


@pytest.mark.parametrize(
    "value", ["x" * 101, "9" * 5000, "\x00", "\ud800", "A" + "\x00", "-", "--1", "1e3", "٣"]
)
def test_huge_and_impossible_values_find_nothing(shop, value):
    assert pks(value, who=labelled()()) == []
    assert of_orders("number", value) == []
    assert of_orders("quantity", value) == []
    assert complete("pk", value, template=OBJECT, model="nasty.seat") == []


@pytest.mark.parametrize(
    ("typed", "keys", "quantities"),
    [
        ("12", ["12", "129", "1250"], ["12", "1250", "129"]),
        ("1", ["1", "12", "13", "129", "1250"], ["1", "12", "1250", "129", "13"]),
        ("0", [], []),
        ("012", [], []),
        ("-1", [], ["-1", "-15"]),
    ],
)
def test_numbers_are_found_by_their_first_digits(db, typed, keys, quantities):
    person = models.Person.objects.create(username="boss")
    rows = {pk: pk for pk in (1, 12, 13, 129, 1250, 21, 212)} | {7: -1, 8: -15, 9: -2}
    for pk, quantity in rows.items():
        models.Order.objects.create(pk=pk, owner=person, number=f"N{pk}", quantity=quantity)

    assert pks(typed) == keys
    assert of_orders("quantity", typed) == quantities


def test_rows_are_judged_one_by_one_where_the_site_does_so(shop):
    class Judging(Narrowable):
        def has_view_permission(self, request, obj=None):
            return obj is None or obj.number != "A2"

    tables = registry(
        {
            models.Order: {
                "bases": (Judging,),
                "fields": "id number",
                "filter_fields": "id number",
                "label_fields": "number",
            }
        }
    )
    who = caller(tables=tables)

    assert pks(who=who) == texts(shop.a1, shop.a3, shop.r1)
    assert pks("A", who=who) == texts(shop.a1, shop.a3)
    assert pks("A2", who=who) == []
    assert pks(str(shop.a2.pk), who=who) == []
    assert of_orders("number", "A", who=who) == ["A1", "A3"]


def test_a_composite_key_is_offered_with_its_parts_between_slashes(db):
    for hall, number in ((1, 1), (1, 12), (2, 1), (12, 3)):
        models.Seat.objects.create(hall=hall, number=number, label=f"Seat {number}")

    def seats(value):
        return complete("pk", value, template=OBJECT, model="nasty.seat")

    assert seats("") == ["1/1", "1/12", "2/1", "12/3"]
    assert seats("1") == ["1/1", "1/12", "12/3"]
    assert seats("1/") == ["1/1", "1/12"]
    assert seats("1/1") == ["1/1", "1/12"]
    assert seats("2/1") == ["2/1"]
    assert seats("1/1/1") == []
    assert seats("x/1") == []
    assert seats("%zz/1") == []


@pytest.mark.parametrize("hall", ["1", "1/"])
def test_a_completed_key_put_into_the_template_is_the_uri_of_its_record(db, hall):
    models.Seat.objects.create(hall=1, number=12)
    models.Tricky.objects.create(
        key="a/%2F?ü", order=models.Order.objects.create(owner=models.Person.objects.create())
    )
    who = caller()

    for model, value in (("nasty.seat", hall), ("nasty.tricky", "%2F")):
        (key,) = complete("pk", value, template=OBJECT, model=model)
        (found,) = read_resource(who, OBJECT.expand({"model": model, "pk": key})).contents
        assert found.text.startswith("{")


def test_keys_of_a_class_that_nobody_knows_are_found_whole(db):
    models.Odd.objects.create(word="tree")

    assert complete("pk", "tree", template=OBJECT, model="nasty.odd") == ["tree"]
    assert complete("pk", "tr", template=OBJECT, model="nasty.odd") == []
    assert complete("pk", "explode", template=OBJECT, model="nasty.odd") == []


def test_more_keys_than_an_answer_holds_are_said_to_be_more(shop, monkeypatch):
    monkeypatch.setattr(completion, "MOST", 3)
    some = complete_resource(caller(), OBJECT.text, "pk", "", given={"model": "nasty.order"})
    all_of_customer = complete_resource(
        caller(), COLLECTION.text, "status", "", given={"model": "nasty.order"}
    )

    assert (len(some.values), some.total, some.has_more) == (3, None, True)
    assert (all_of_customer.total, all_of_customer.has_more) == (3, False)
    assert pks(str(shop.r1.pk)) == texts(shop.r1)


# Names and values


@pytest.mark.parametrize(
    ("argument", "typed", "offered"),
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
        ("number", "1", []),
        ("number", "%", []),
        ("number", "A_", []),
        ("customer__name", "", ["Anne", "Bert"]),
        ("ref", "1235", []),
        ("ref", "12345678-12", ["12345678-1234-5678-1234-567812345678"]),
        ("ref", "xyz", []),
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
def test_what_is_offered_after_what_was_typed(shop, argument, typed, offered):
    ref = UUID("12345678-1234-5678-1234-567812345678")
    models.Order.objects.filter(pk=shop.a1.pk).update(ref=ref, due="2026-01-31")
    models.Order.objects.update(ip="10.0.0.1")

    assert of_orders(argument, typed) == offered


def test_operators_follow_a_path_that_was_typed_in_full():
    assert "status__in" in of_orders("filters", "status")
    assert "placed_at__year" in of_orders("filters", "placed_at__")
    assert "customer__country" in of_orders("filters", "customer__")
    assert "customer__name" not in of_orders(
        "filters", "customer__", who=caller(shown={models.Customer: ["country"]})
    )


def test_everybody_may_order_by_the_key():
    who = caller(shown={models.Order: ["number"]})

    assert of_orders("order_by", who=who) == ["-id", "-number", "id", "number"]


def test_fields_with_files_are_those_of_a_record(shop):
    assert of_orders("field", template=FILE) == ["attachment"]
    assert of_orders("field", "number", template=FILE) == []


@pytest.mark.parametrize("argument", ["filters", "fields", "order_by"])
@pytest.mark.parametrize("name", ["api_token", "margin", "password", "salary", "credit_rating"])
def test_hidden_names_are_never_offered(argument, name):
    assert of_orders(argument, name) == []
    assert of_orders(argument, f"customer__{name}") == []
    assert not [one for one in of_orders(argument) if name in one]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("gift=true", ["A1"]),
        ("gift=false", []),
        ("gift__isnull=true", ["A2", "A3", "R1"]),
        ("customer__isnull=false", ["A1", "A2"]),
        ("number=true", []),
        ("number=A1", ["A1"]),
    ],
)
def test_booleans_in_the_query_of_a_uri_are_understood(shop, query, numbers):
    models.Order.objects.filter(pk=shop.a1.pk).update(gift=True)

    (found,) = read_resource(
        caller(), f"django://objects/nasty.order?{query}&fields=number"
    ).contents

    assert msgspec.json.decode(found.text)["rows"] == [[number] for number in numbers]


def test_a_boolean_of_a_hidden_column_is_refused_like_one_of_a_missing_column(shop):
    sentences = set()
    for name in ("api_token", "nothing_to"):
        with pytest.raises(QueryError) as raised:
            read_resource(caller(), f"django://objects/nasty.order?{name}=true")
        sentences.add(str(raised.value).replace(name, "NAME"))

    assert len(sentences) == 1


def test_values_of_foreign_keys_are_keys_of_related_records(shop):
    tables = registry(
        {
            models.Customer: {
                "fields": "id name",
                "filter_fields": "id name",
                "label_fields": "name",
            }
        }
    )
    who = caller(tables=tables)
    narrowed = caller(
        tables=tables, narrow={models.Customer: lambda rows: rows.filter(name="Anne")}
    )

    blind = caller(tables=tables, may=lambda perm: "customer" not in perm)

    assert of_orders("customer", who=blind) == []
    assert of_orders("customer", who=who) == texts(shop.anne, shop.bert)
    assert of_orders("customer", "be", who=who) == texts(shop.bert)
    assert of_orders("customer__in", "be", who=narrowed) == []
    # Records of customers do not show their keys on the other site.
    assert of_orders("customer", "be") == []


def test_values_of_many_related_records_are_their_keys_where_they_are_exposed(shop):
    shown, hidden = registry({models.Tag: {"fields": "id slug"}}), registry({models.Tag: None})

    assert of_orders("tags", who=caller(tables=shown)) == texts(shop.red, shop.blue)
    assert of_orders("tags", who=caller(tables=hidden)) == []


def test_texts_that_a_filter_would_not_take_are_left_out(shop):
    tables = registry({models.Order: {"fields": "id remark", "filter_fields": "remark"}})
    models.Order.objects.filter(pk=shop.a1.pk).update(remark="x" * 101)
    models.Order.objects.filter(pk=shop.a2.pk).update(remark="xy")

    assert of_orders("remark", "x", who=caller(tables=tables)) == ["xy"]


@isolate_apps("tests.nasty")
def test_a_foreign_key_to_another_column_than_the_key_gives_no_values():
    class Badge(django_models.Model):
        person = django_models.ForeignKey(
            models.Person, django_models.CASCADE, to_field="username", related_name="+"
        )

        class Meta:
            app_label = "nasty"

    field = Badge._meta.get_field("person")
    path = Path(text="person", model=Badge, hops=(), field=field)

    assert not field.target_field.primary_key
    assert target_exposure(caller(), path) is None


def test_a_search_for_values_ends_after_a_few_rounds(shop, monkeypatch):
    monkeypatch.setattr(completion, "MOST", 2)
    monkeypatch.setattr(completion, "ROUNDS", 1)
    models.Order.objects.update(number="B1")
    models.Order.objects.filter(pk=shop.r1.pk).update(number="B2")

    found = complete_resource(
        caller(), COLLECTION.text, "number", "B", given={"model": "nasty.order"}
    )
    monkeypatch.setattr(completion, "ROUNDS", 10)
    longer = of_orders("number", "B")

    assert (found.values, found.has_more) == (["B1"], True)
    assert longer == ["B1", "B2"]


SLOW = {
    "sqlite": "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1e9) "
    "SELECT count(*) FROM c) > 0",
    "postgresql": "(SELECT pg_sleep(5)) IS NOT NULL",
    "mysql": "SLEEP(5) = 0",
}


@pytest.mark.database
@pytest.mark.thorough
def test_a_search_that_takes_too_long_offers_nothing(shop, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "STATEMENT_TIMEOUT": 0.2}
    slow = {models.Order: lambda rows: rows.extra(where=[SLOW[connection.vendor]])}
    start = time.monotonic()

    found = pks(who=labelled()(narrow=slow))

    assert found == []
    assert time.monotonic() - start < 3

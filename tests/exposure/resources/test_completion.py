"""Completion of the variables of resource templates: as far as the caller reaches, no further."""

from __future__ import annotations

import time
from uuid import UUID

import msgspec
import pytest
from django.db import connection
from django.db import models as django_models
from django.test.utils import isolate_apps

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.paths import Path
from mcp_django.exposure.query import completion
from mcp_django.exposure.resources.completion import (
    complete_resource,
    ranked,
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


def test_what_is_equal_comes_before_what_begins_before_words_before_the_rest():
    names = ["xpaid", "pay_paid", "paid__in", "paid", "unrelated"]

    assert ranked("PAID", names) == ["paid", "paid__in", "pay_paid", "xpaid"]


def test_a_value_is_found_by_its_label_and_ranked_by_the_better_of_both():
    pairs = [("a", ("a", "Not paid")), ("b", ("b", "Paid")), ("c", ("c", "New"))]

    assert ranked_by("paid", pairs) == ["b", "a"]


@pytest.mark.parametrize("value", [".*", "(", "[a-z]", "\\"])
def test_a_value_is_no_regular_expression(value):
    assert ranked(value, ["abc", "a b"]) == []


# Models


@pytest.mark.parametrize("template", [DEFINITION, COLLECTION, OBJECT, FILE])
def test_models_are_those_that_this_caller_sees(shop, template):
    def may(perm):
        return perm in ("nasty.view_order", "nasty.view_tag")

    found = complete("model", "nasty", who=caller(may=may), template=template)

    # Order is shown as three models with one table; the others need rights of their own.
    assert found == ["nasty.order", "nasty.tag"]


def test_models_are_found_by_their_plural(shop):
    assert complete("model", "persons")[0] == "nasty.person"


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


@pytest.mark.parametrize("template", [DEFINITION, OBJECT, FILE])
def test_only_a_collection_has_filters(shop, template):
    assert of_orders("status", template=template) is None
    assert of_orders("filters", template=template) is None


def test_unknown_variables_do_not_exist(shop):
    assert of_orders("limit") is None
    assert of_orders("field") is None
    assert of_orders("model__in", template=OBJECT) is None


# Keys


def test_keys_are_those_of_visible_records_in_their_order(shop):
    assert pks() == texts(shop.a1, shop.a2, shop.a3, shop.r1)


def test_rows_that_somebody_does_not_see_are_not_offered(shop):
    who = caller(narrow={models.Order: lambda rows: rows.filter(status="paid")})

    assert pks(who=who) == texts(shop.a1, shop.a3)
    assert pks(str(shop.a2.pk), who=who) == []


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


def test_keys_are_found_by_what_stands_for_the_record(shop):
    make = labelled()

    assert pks("a", who=make()) == texts(shop.a1, shop.a2, shop.a3)
    assert pks("A2", who=make()) == texts(shop.a2)


def test_a_key_is_found_by_the_middle_of_a_label_behind_those_that_begin_with_it(shop):
    models.Order.objects.filter(pk=shop.a1.pk).update(number="xx-a3")

    assert pks("a3", who=labelled()()) == texts(shop.a3, shop.a1)


@pytest.mark.parametrize(
    "changes",
    [
        {"fields": "id status"},
        {"filter_fields": "id status"},
    ],
    ids=["not shown", "no filter"],
)
def test_a_label_counts_only_where_it_is_shown_and_filtered_by(shop, changes):
    who = labelled(**changes)()

    assert pks("A1", who=who) == []
    assert pks(str(shop.a1.pk), who=who)[:1] == texts(shop.a1)


def test_a_label_that_is_hidden_from_a_caller_finds_nothing(shop):
    who = labelled()(shown={models.Order: ["id", "status"]})

    assert pks("A1", who=who) == []


def test_keys_are_found_by_choices_and_empty_labels_are_no_obstacle(shop):
    make = labelled(
        fields="id status remark customer",
        filter_fields="id status customer",
        label_fields="status customer",
    )

    assert pks("pai", who=make()) == texts(shop.a1, shop.a3)


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


def test_values_of_a_column_are_looked_for_in_a_few_queries(shop, monkeypatch):
    monkeypatch.setattr(completion, "MOST", 2)
    monkeypatch.setattr(completion, "ROUNDS", 1)

    found = complete_resource(
        caller(), COLLECTION.text, "number", "A", given={"model": "nasty.order"}
    )

    assert (found.values, found.total, found.has_more) == (["A1", "A2"], None, True)


@pytest.mark.parametrize("value", ["%", "_", "A_", "%1", "A%"])
def test_wildcards_are_plain_characters(shop, value):
    assert pks(value, who=labelled()()) == []


def test_a_wildcard_is_found_where_it_stands(shop):
    models.Order.objects.filter(pk=shop.a2.pk).update(number="50%_off")

    assert pks("50%_", who=labelled()()) == texts(shop.a2)
    assert pks("%_o", who=labelled()()) == texts(shop.a2)


@pytest.mark.parametrize(
    "value", ["x" * 101, "9" * 5000, "\x00", "\ud800", "A" + "\x00", "-", "--1", "1e3", "٣"]
)
def test_huge_and_impossible_values_find_nothing(shop, value):
    assert pks(value, who=labelled()()) == []
    assert of_orders("number", value) == []
    assert of_orders("quantity", value) == []
    assert complete("pk", value, template=OBJECT, model="nasty.seat") == []


def test_numbers_are_found_by_their_first_digits(db):
    person = models.Person.objects.create(username="boss")
    for pk in (1, 12, 13, 129, 1250, 21, 212):
        models.Order.objects.create(pk=pk, owner=person, number=f"N{pk}")

    assert pks("12") == ["12", "129", "1250"]
    assert pks("1") == ["1", "12", "13", "129", "1250"]
    assert pks("0") == []
    assert pks("012") == []


def test_negative_numbers_are_found_by_their_first_digits(shop):
    for number, pk in ((-1, shop.a1.pk), (-15, shop.a2.pk), (15, shop.a3.pk), (-2, shop.r1.pk)):
        models.Order.objects.filter(pk=pk).update(quantity=number)

    assert of_orders("quantity", "-1") == ["-1", "-15"]
    assert of_orders("quantity", "1") == ["15"]


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


def test_keys_that_are_texts_are_found_anywhere(shop):
    models.Tricky.objects.create(key="xa/b", contains="q", order=shop.a1)

    assert complete("pk", "a/", template=OBJECT, model="nasty.tricky") == ["a/b", "xa/b"]


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

    for model, value in (("nasty.seat", hall), ("nasty.tricky", "a/")):
        (key,) = complete("pk", value, template=OBJECT, model=model)
        (found,) = read_resource(who, OBJECT.expand({"model": model, "pk": key})).contents
        assert found.text.startswith("{")


@pytest.mark.parametrize("key", ["1%2F2%2F3", "1%2F%25zz", "1", "%2F"])
def test_a_composite_key_in_one_segment_must_have_its_parts(db, key):
    models.Seat.objects.create(hall=1, number=12)

    with pytest.raises(NotFound):
        read_resource(caller(), f"django://objects/nasty.seat/{key}")


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


def test_a_key_is_completed_in_a_few_queries(shop, django_assert_max_num_queries):
    who = labelled()()
    pks("warm", who=who)

    with django_assert_max_num_queries(2):
        assert pks("1", who=who)


# Files


def test_fields_are_those_with_files_that_this_caller_sees(shop):
    hidden = caller(shown={models.Order: ["id", "number"]})

    assert of_orders("field", template=FILE) == ["attachment"]
    assert of_orders("field", "number", template=FILE) == []
    assert of_orders("field", who=hidden, template=FILE) is None


# Names


def test_orders_are_offered_both_ways_and_end_a_list():
    assert of_orders("order_by", "tot") == ["total", "-total"]
    assert of_orders("order_by", "-tot") == ["-total"]
    assert of_orders("order_by", "status,-tot") == ["status,-total"]
    assert "status,-status" not in of_orders("order_by", "status,")
    assert of_orders("order_by", "margin,tot") == []
    assert of_orders("order_by", "marg") == []


def test_everybody_may_order_by_the_key():
    who = caller(shown={models.Order: ["number"]})

    assert of_orders("order_by", who=who) == ["-id", "-number", "id", "number"]


def test_fields_are_paths_that_records_show_and_end_a_list():
    assert of_orders("fields", "rem") == ["remark"]
    assert of_orders("fields", "id,number,rem") == ["id,number,remark"]
    assert of_orders("fields", "id,i") == ["id,ip", "id,gift", "id,quantity", "id,weight"]
    assert of_orders("fields", "api") == []
    assert of_orders("fields", "lines__") == []


def test_filters_are_paths_and_then_what_may_follow_one():
    assert of_orders("filters", "stat") == ["status"]
    assert "status__in" in of_orders("filters", "status")
    assert "placed_at__year" in of_orders("filters", "placed_at__")
    assert "customer__country" in of_orders("filters", "customer__")
    assert "customer__name" not in of_orders(
        "filters", "customer__", who=caller(shown={models.Customer: ["country"]})
    )


@pytest.mark.parametrize("argument", ["filters", "fields", "order_by"])
@pytest.mark.parametrize(
    "name", ["api_token", "margin", "password", "salary", "credit_rating", "internal_note"]
)
def test_hidden_names_are_never_offered(argument, name):
    assert of_orders(argument, name) == []
    assert of_orders(argument, f"customer__{name}") == []
    assert not [one for one in of_orders(argument) if name in one]


# Values of filters


def test_values_of_choices_are_found_by_key_and_label():
    assert of_orders("status") == ["new", "paid", "void"]
    assert of_orders("status", "Pa") == ["paid"]
    assert of_orders("status__in", "v") == ["void"]
    assert of_orders("status__isnull") == ["false", "true"]


def test_values_of_booleans():
    assert of_orders("gift") == ["false", "true"]
    assert of_orders("gift__isnull", "t") == ["true"]


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


def test_values_of_columns_are_those_of_visible_rows_without_repetition(shop):
    models.Order.objects.filter(pk=shop.a2.pk).update(remark="top")
    models.Order.objects.filter(pk=shop.a3.pk).update(remark="top")
    narrow = {models.Order: lambda rows: rows.exclude(number="A1")}

    assert of_orders("number") == ["A1", "A2", "A3", "R1"]
    assert of_orders("number", "a") == ["A1", "A2", "A3"]
    assert of_orders("number", "1") == []
    assert of_orders("number", "A", who=caller(narrow=narrow)) == ["A2", "A3"]
    assert of_orders("customer__name") == ["Anne", "Bert"]


def test_a_path_that_records_do_not_show_gives_no_values(shop):
    """Filters on it exist: each answers about a value that the caller knows."""
    assert of_orders("customer__country") == []
    assert of_orders("lines__sku", "x") == []
    assert of_orders("tags__slug", "r") == []


def test_a_path_through_rows_that_are_narrowed_gives_no_values(shop):
    who = caller(narrow={models.Customer: lambda rows: rows.filter(country="FR")})

    assert of_orders("customer__name", "B", who=who) == []


@pytest.mark.parametrize("name", ["api_token", "margin", "owner__password", "customer__salary"])
def test_a_hidden_column_and_a_missing_one_are_no_arguments(shop, name):
    assert of_orders(name, "t") is None
    assert of_orders("nothing", "t") is None
    assert of_orders(f"{name}__startswith", "t") is None


@pytest.mark.parametrize("name", ["api_token", "number"])
def test_a_field_that_is_hidden_from_a_caller_is_no_argument(shop, name):
    who = caller(shown={models.Order: ["id", "status"]})

    assert of_orders(name, "A", who=who) is None


@pytest.mark.parametrize("value", ["%", "_", "%1", "A_"])
def test_wildcards_in_values_of_columns_are_plain_characters(shop, value):
    assert of_orders("number", value) == []


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

    assert of_orders("customer", who=who) == texts(shop.anne, shop.bert)
    assert of_orders("customer", "be", who=who) == texts(shop.bert)
    assert of_orders("customer__in", "be", who=narrowed) == []
    # Records of customers do not show their keys on the other site.
    assert of_orders("customer", "be") == []


def test_values_of_a_relation_to_what_is_not_exposed_are_none(shop):
    tables = registry({models.Tag: None})

    assert of_orders("tags", who=caller(tables=tables)) == []


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


def test_values_of_many_related_records_are_their_keys(shop):
    tables = registry({models.Tag: {"fields": "id slug"}})

    assert of_orders("tags", who=caller(tables=tables)) == texts(shop.red, shop.blue)


def test_other_kinds_of_values(shop):
    ref = UUID("12345678-1234-5678-1234-567812345678")
    models.Order.objects.filter(pk=shop.a1.pk).update(ref=ref, ip="10.0.0.1", due="2026-01-31")

    assert of_orders("ref", "1235") == []
    assert of_orders("ref", "12345678-12") == [str(ref)]
    assert of_orders("ref", "xyz") == []
    assert of_orders("ip") == ["10.0.0.1"]
    assert of_orders("due", "2026-01-31") == ["2026-01-31"]
    assert of_orders("total") == ["10.00", "20.00"]
    assert of_orders("total", "10.00") == ["10.00"]
    assert of_orders("payload__isnull") == ["false", "true"]
    assert of_orders("attachment__isnull") == ["false", "true"]


def test_comparisons_and_parts_of_dates_offer_nothing(shop):
    assert of_orders("total__gte", "1") == []
    assert of_orders("placed_at__year", "2") == []
    assert of_orders("search", "A") == []
    assert of_orders("cursor") == []


def test_texts_that_a_filter_would_not_take_are_left_out(shop):
    tables = registry({models.Order: {"fields": "id remark", "filter_fields": "remark"}})
    models.Order.objects.filter(pk=shop.a1.pk).update(remark="x" * 101)
    models.Order.objects.filter(pk=shop.a2.pk).update(remark="xy")

    assert of_orders("remark", "x", who=caller(tables=tables)) == ["xy"]


def test_a_search_for_values_ends_after_a_few_rounds(shop, monkeypatch):
    monkeypatch.setattr(completion, "MOST", 2)
    monkeypatch.setattr(completion, "ROUNDS", 1)
    models.Order.objects.update(number="B1")
    models.Order.objects.filter(pk=shop.r1.pk).update(number="B2")

    found = complete_resource(
        caller(), COLLECTION.text, "number", "B", given={"model": "nasty.order"}
    )

    assert (found.values, found.has_more) == (["B1"], True)


def test_rare_values_are_found_behind_many_rows_of_a_common_one(shop, monkeypatch):
    monkeypatch.setattr(completion, "MOST", 2)
    models.Order.objects.filter(pk__in=[shop.a1.pk, shop.a2.pk]).update(number="B1")
    models.Order.objects.filter(pk=shop.a3.pk).update(number="B1")
    models.Order.objects.filter(pk=shop.r1.pk).update(number="B2")

    assert of_orders("number", "B") == ["B1", "B2"]


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

"""A filter takes what a related record is called, if exactly one that the caller sees is."""

from __future__ import annotations

import pytest

from mcp_django.exposure.query.related_names import MOST_TEXTS
from tests.nasty.models import Customer, Order, Person, Tag, Tenant
from tests.nasty.site import EXPOSED, Narrowable, aggregate, caller, numbers, refusal, registry

pytestmark = pytest.mark.django_db

NAMED = registry({Tag: {"fields": "slug", "label_fields": "slug"}})


@pytest.fixture
def customers(db):
    tenant = Tenant.objects.create(name="t")
    owner = Person.objects.create(username="o")
    made = {}
    for number, name in enumerate(["Frankfurt", "Palma", "Paris"]):
        made[name] = Customer.objects.create(tenant=tenant, name=name, country="FR")
        Order.objects.create(number=f"n{number}", owner=owner, customer=made[name])
    return made


def test_a_text_that_names_one_record_stands_for_its_key(customers):
    paris, by_tag = customers["Paris"].pk, caller(tables=NAMED)
    Order.objects.order_by("pk")[0].tags.add(Tag.objects.create(slug="red"))

    for text in ("Frankfurt", "FRANKFURT", " Frankfurt "):
        assert numbers(filters={"customer": text}) == ["n0"]
    assert numbers(filters={"customer__in": ["palma", paris]}) == ["n1", "n2"]
    assert numbers(filters={"customer": {"in": ["Palma", "Paris"]}}) == ["n1", "n2"]
    assert numbers(exclude={"customer": "Palma"}) == ["n0", "n2"]
    assert numbers(any_of=[{"customer": "Palma"}, {"customer": "Paris"}]) == ["n1", "n2"]
    assert aggregate(caller(), filters={"customer": "Palma"})["groups"][0]["count"] == 1
    assert numbers(by_tag, filters={"tags": "RED"}) == ["n0"]


def test_who_writes_a_key_or_a_name_as_it_is_stored_means_that_record(customers):
    Customer.objects.filter(name="Frankfurt").update(name=str(customers["Paris"].pk))
    Customer.objects.filter(name="Paris").update(name="PALMA")

    assert numbers(filters={"customer": str(customers["Paris"].pk)}) == ["n2"]
    assert numbers(filters={"customer": "PALMA"}) == ["n2"]
    assert numbers(filters={"customer": "Palma"}) == ["n1"]


def test_of_several_five_are_named_and_nothing_is_guessed(customers):
    Customer.objects.update(name="JFK")
    first, second, third = sorted(one.pk for one in customers.values())

    few = refusal(numbers, filters={"customer": "jfk"})
    tenant = Tenant.objects.get()
    Customer.objects.bulk_create(Customer(tenant=tenant, name="JFK", country="x") for _ in "123")
    many = refusal(numbers, filters={"customer": "JFK"})

    assert (
        f"3 customers are called 'jfk': JFK (id {first}), JFK (id {second}), JFK (id {third}). "
        "Use a key."
    ) in few
    assert many.count("(id ") == 5
    assert "more than 5 customers are called 'JFK'" in many


@pytest.mark.parametrize("text", ["Nowhere", "Palm", "%", "_alma", "Palma' OR 1=1 --"])
def test_a_part_of_a_name_is_no_name_and_where_to_look_is_said(customers, text):
    assert refusal(numbers, filters={"customer": text}).startswith(
        f"filters: customer: no customer is called {text!r}. Call find_records with "
        '{"model": "nasty.customer"} to see which there are.'
    )


@pytest.mark.parametrize(
    "value", ["", " ", "\x00", "x" * 101, "\ud800", [], {}, True, 1.5, [None], ["", 1], [["a"]]]
)
def test_what_cannot_be_a_name_is_refused_in_words(customers, value):
    name = "customer__in" if isinstance(value, list) else "customer"

    assert "called" not in refusal(numbers, filters={name: value})
    assert "called" not in refusal(numbers, filters={"customer__isnull": "Palma"})


def test_a_call_names_so_many_records_and_no_more(customers, django_assert_max_num_queries):
    query = {"customer__in": ["Palma"] + [f"Paris{at}" for at in range(99)]}

    with django_assert_max_num_queries(MOST_TEXTS + 2):
        sentence = refusal(numbers, any_of=[query] * 8)
    Customer.objects.bulk_create(
        Customer(tenant=Tenant.objects.get(), name=f"c{at}", country="x")
        for at in range(MOST_TEXTS + 1)
    )
    names = [f"c{at}" for at in range(MOST_TEXTS + 1)]

    assert "no customer is called" in sentence
    assert "At most 20 records can be named" in refusal(numbers, filters={"customer__in": names})
    assert numbers(filters={"customer__in": names[:MOST_TEXTS]}) == []


# Rows, columns and models that the caller does not see


@pytest.mark.parametrize(
    "changes",
    [
        {Customer: {"fields": "country", "filter_fields": "country"}},
        {Customer: {"fields": "name country", "filter_fields": "country"}},
        {Customer: None},
        {Customer: {"fields": "name", "aggregates_only": True}},
    ],
    ids=["no name", "no filter", "not exposed", "numbers only"],
)
def test_nothing_is_looked_up_where_the_caller_could_not_filter(
    customers, changes, django_assert_num_queries
):
    order = {"fields": "number", "filter_fields": "number customer", "order_fields": "number"}
    who = caller(tables=registry({Order: order, **changes}))

    with django_assert_num_queries(0):
        there = refusal(numbers, who, filters={"customer": "Palma"})
        missing = refusal(numbers, who, filters={"customer": "Nowhere"})

    assert there.replace("Palma", "Nowhere") == missing
    assert "called" not in there


class Judging:
    def has_view_permission(self, request, obj=None):
        return obj is None or obj.name != "palma"


@pytest.mark.parametrize("is_judged", [False, True])
def test_a_hidden_row_makes_no_name_ambiguous(customers, is_judged):
    hidden = customers["Paris"].pk
    Customer.objects.filter(pk=hidden).update(name="palma")
    judged = {**EXPOSED[Customer], "bases": (Judging, Narrowable)}
    # By key: MariaDB takes both spellings for the same.
    narrow = {} if is_judged else {Customer: lambda rows: rows.exclude(pk=hidden)}
    rights = caller(tables=registry({Customer: judged} if is_judged else {}), narrow=narrow)

    assert numbers(rights, filters={"customer": "PALMA"}) == ["n1"]
    assert "2 customers" in refusal(numbers, filters={"customer": "PALMA"})

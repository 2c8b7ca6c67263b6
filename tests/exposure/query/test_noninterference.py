"""Two databases that differ only in what is hidden give the same answers, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_django.exceptions import QueryError
from tests.nasty.hostile import KEYS, PATHS, SHARP, VALUES
from tests.nasty.models import Customer, Line, Order, Person, Tag, Tenant, Watch
from tests.nasty.site import caller, count, page, record

pytestmark = pytest.mark.django_db

#: What is hidden, three times: the last value is that of one row, so that an order shows.
SECRETS = (("x", 1, "a"), ("paid", 2, "z"))
AIMS = ("x", "paid", 1, 2, ["x"], [1], True)


def fill():
    tenant = Tenant.objects.create(name="t")
    people = [Person.objects.create(username=name) for name in "sx"]
    customers = [
        Customer.objects.create(tenant=tenant, name=name, country="FR", account_manager=people[0])
        for name in "ab"
    ]
    tags = [Tag.objects.create(slug=slug) for slug in "sx"]
    for n in range(4):
        order = Order.objects.create(
            owner=people[n % 2],
            customer=customers[n % 2] if n else None,
            number=f"A{n}",
            total=n % 2,
        )
        order.tags.add(tags[n % 2])
        Line.objects.create(order=order, sku="x", amount=n)
        Watch.objects.create(order=order, person=people[0])


def hide(text, number, last):
    Order.objects.update(api_token=text, margin=number, blob=text.encode())
    Order.objects.filter(total=1).update(api_token=last, margin=ord(last))
    Person.objects.update(password=text, salary=number)
    Person.objects.filter(username="x").update(password=last, salary=ord(last))
    Customer.objects.update(credit_rating=number)
    Customer.objects.filter(name="b").update(credit_rating=ord(last))
    Tag.objects.update(internal_note=text)
    Line.objects.update(cost=number)
    Watch.objects.update(secret_reason=text)


def answer(call, **rights):
    try:
        with transaction.atomic():
            found = page(caller(**rights), Order, **call)
    except QueryError as refusal:
        return str(refusal)
    return found.encoded, found.next_cursor is None


@pytest.mark.thorough
def test_every_hidden_path_gives_the_same_answer_over_two_sets_of_secrets():
    fill()
    calls: list[Any] = [
        {where: {path: value}}
        for path in SHARP
        for where in ("filters", "exclude")
        for value in AIMS
    ]
    calls += [{"order_by": [sign + path]} for path in SHARP for sign in ("", "-")]
    calls += [{"search": value} for value in ("x", "paid", "a", "z", "t")]
    answers = []
    for secrets in SECRETS:
        hide(*secrets)
        keys = Order.objects.order_by("pk").values_list("pk", flat=True)
        answers.append(
            [
                [answer(call) for call in calls],
                [record(caller(), Order, key) for key in keys],
                count(caller(), Order),
            ]
        )

    assert answers[0] == answers[1]


def test_what_a_caller_cannot_see_of_related_rows_changes_no_answer():
    fill()
    narrow = {Customer: lambda rows: rows.filter(name="a")}
    calls = [
        {},
        {"filters": {"customer__country": "FR"}},
        {"exclude": {"customer__country": "FR"}},
        {"filters": {"customer__name__isnull": True}},
        {"search": "b"},
        {"order_by": ["customer"]},
        {"fields": ["number", "customer"]},
    ]
    answers = []
    for country, name in (("FR", "b"), ("DE", "bb")):
        Customer.objects.exclude(name="a").update(country=country, name=name)
        answers.append([answer(call, narrow=narrow) for call in calls])

    assert answers[0] == answers[1]


NAMES = [path for path in PATHS if len(path) < 60] + KEYS
CONDITION = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2)
#: A random value hardly ever meets a secret: most draws aim at one.
AIMED = st.dictionaries(st.sampled_from(SHARP), st.sampled_from(AIMS), min_size=1, max_size=1)
CALL = st.fixed_dictionaries(
    {},
    optional={
        "filters": AIMED
        | st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=2),
        "exclude": CONDITION,
        "any_of": st.lists(CONDITION, max_size=2),
        "search": st.sampled_from(["s", "a1", "b", "x1 s", "tok", "pbkdf2"]),
        "order_by": st.lists(
            st.sampled_from(["number", "-total", "customer", "api_token", "owner", "-margin"]),
            max_size=2,
        ),
    },
)


@settings(suppress_health_check=list(HealthCheck))
@given(CALL)
def test_what_is_hidden_changes_no_answer(call):
    with transaction.atomic():
        fill()
        answers = []
        for secrets in SECRETS:
            hide(*secrets)
            answers.append(answer(call))

        assert answers[0] == answers[1]
        transaction.set_rollback(True)

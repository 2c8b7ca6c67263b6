"""The records of an action are found as find_records finds them, and under the same guard."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from tests.clients import CheckedClient
from tests.depot.models import Parcel
from tests.shop.models import Customer

# Of packages that were written for Django 6.0.
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.filterwarnings("ignore:Overriding get_action"),
]

EMPTY = "Empty filters would select every record."
NOTHING = "An empty value names none."


@pytest.fixture
def parcels(db):
    rows = [("n0", "waiting"), ("n1", "lost"), ("n2", "waiting")]
    return [Parcel.objects.create(number=n, status=s, tenant="acme") for n, s in rows]


def ship(client, **arguments):
    return client.call_tool("depot_parcel_mark_shipped", **arguments)


def statuses():
    return list(Parcel.objects.order_by("pk").values_list("status", flat=True))


@pytest.fixture
def greeter(make_user):
    """Greets customers, whose names may be searched."""
    names = ("view_customer", "change_customer")
    for name, country in (("Ada", "FR"), ("Adam", "DE"), ("Bea", "FR")):
        Customer.objects.create(name=name, country=country, credit_rating=7)
    return CheckedClient(user=make_user("greeter", *names, is_staff=True))


def greet(client, **arguments):
    return client.call_tool("shop_customer_greet", **arguments)


def test_filters_exclude_and_search_narrow_together(greeter):
    query = {"search": "ada", "filters": {"country__in": ["FR", "DE"]}, "exclude": {"id": 0}}

    found = greet(greeter, **query)
    fewer = greet(greeter, **{**query, "exclude": {"country": "DE"}})

    assert found.data["records"] == 2
    assert fewer.data["records"] == 1
    assert fewer.data["question"].endswith("1 record: Ada.")


def test_a_search_is_confirmed_and_then_acted_on(greeter):
    shown = greet(greeter, search="ada")
    done = greet(greeter, search="ada", confirmation=shown.data["confirmation"])

    assert "messages" not in shown.data
    assert done.data["messages"][0]["text"] == "Greeted 2."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, 'Name the records: by "pks", or by "filters", "exclude", "search".'),
        ({"pks": []}, NOTHING),
        ({"pks": list(range(10_000))}, "Argument pks: Expected array of length <= 1000."),
        ({"pks": [True]}, "Argument pks"),
        ({"pks": True}, "Argument pks"),
        ({"pk": 1}, "Unknown argument 'pk'. Did you mean pks?"),
        ({"pks": [1], "dry_run": True}, "Unknown argument 'dry_run'."),
        ({"pks": [1], "answer": 5}, "Argument answer"),
        ({"pks": [1], "answer": "yes"}, "Argument answer"),
        ({"filters": {"number": "nope"}}, "These filters find no record. Nothing was done."),
        ({"filters": {"tenant": "acme"}}, "'tenant' cannot be used in filters."),
        ({"exclude": {}}, NOTHING),
        ({"search": ""}, NOTHING),
        ({"search": " \t\u2003"}, EMPTY),
        ({"filters": {}, "exclude": {}, "search": ""}, NOTHING),
        ({"exclude": None, "search": None}, "Name the records"),
        ({"pks": [1], "exclude": {"id": 1}}, "Name the records"),
        ({"pks": [1], "search": "n"}, "Name the records"),
        ({"exclude": {"status__regex": "."}}, "status has the operators exact"),
        ({"exclude": {f"number__{n}": n for n in range(200)}}, "At most"),
        ({"exclude": ["status"]}, "Argument exclude"),
        ({"search": {"a": 1}}, "Argument search"),
        ({"search": "n0"}, "has no search; use filters"),
        ({"any_of": [{"status": "lost"}]}, "Unknown argument 'any_of'."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_selection_that_means_nothing_is_refused_in_words(boss, parcels, arguments, sentence):
    answer = ship(boss, **arguments)

    assert answer.is_error
    assert sentence in answer.text
    # That of a change could be taken for an order.
    assert "A valid call" not in answer.text
    assert statuses() == ["waiting", "lost", "waiting"]


def test_an_empty_list_of_keys_leaves_the_filters(boss, parcels):
    assert ship(boss, pks=[], filters={"number": "n0"}).data["records"] == 1


@pytest.mark.parametrize("term", ["7", "FR", "a " * 9, "x" * 200, "a\x00b"])
def test_a_search_finds_nothing_by_what_is_not_searched(greeter, term):
    answer = greet(greeter, search=term)

    assert answer.is_error
    assert "Greeted" not in answer.text


def test_what_is_excluded_leaves_only_records_of_the_caller(make_user, depot, parcels):
    theirs = Parcel.objects.create(number="n9", tenant="other")
    user = make_user("clerk", "view_parcel", "change_parcel", is_staff=True)
    user.groups.add(Group.objects.create(name="acme"))
    client = CheckedClient(user=user)

    shown = ship(client, exclude={"status": "lost"})
    ship(
        client,
        exclude={"status": "lost"},
        confirmation=shown.data["confirmation"],
    )

    theirs.refresh_from_db()
    assert shown.data["records"] == 2
    assert theirs.status == "waiting"
    assert statuses() == ["shipped", "lost", "shipped", "waiting"]

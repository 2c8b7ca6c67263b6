"""The records of an action are found as find_records finds them, and under the same guard."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from tests.clients import CheckedClient
from tests.depot.models import Parcel
from tests.shop.admin import CustomerAdmin
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


def test_what_is_excluded_is_neither_shown_nor_acted_on(boss, parcels):
    shown = ship(boss, exclude={"status": "lost"})
    before = statuses()
    token = shown.data["confirmation"]
    done = ship(boss, exclude={"status": "lost"}, confirmation=token)

    assert shown.data["outcome"] == "asks"
    assert shown.data["records"] == 2
    assert before == ["waiting", "lost", "waiting"]
    assert done.data["records"] == 2
    assert statuses() == ["shipped", "lost", "shipped"]


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
        ({"exclude": {}}, NOTHING),
        ({"search": ""}, NOTHING),
        ({"search": " \t\u2003"}, EMPTY),
        ({"filters": {}, "exclude": {}, "search": ""}, NOTHING),
        ({"exclude": None, "search": None}, "Name the records"),
        ({"pks": [1], "exclude": {"id": 1}}, "Name the records"),
        ({"pks": [1], "search": "n"}, "Name the records"),
        ({"exclude": {"tenant": "acme"}}, "'tenant' cannot be used in exclude."),
        ({"exclude": {"status__regex": "."}}, "status has the operators exact"),
        ({"exclude": {f"number__{n}": n for n in range(200)}}, "At most"),
        ({"exclude": ["status"]}, "Argument exclude"),
        ({"search": {"a": 1}}, "Argument search"),
        ({"search": "n0"}, "has no search; use filters"),
        ({"any_of": [{"status": "lost"}]}, "Unknown argument 'any_of'."),
    ],
    ids=str,
)
def test_a_query_that_means_nothing_is_refused_in_words(boss, parcels, arguments, sentence):
    answer = ship(boss, **arguments)

    assert answer.is_error
    assert sentence in answer.text
    assert statuses() == ["waiting", "lost", "waiting"]


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


def test_records_that_are_judged_one_by_one_are_judged_in_a_search(greeter, monkeypatch):
    monkeypatch.setattr(
        CustomerAdmin,
        "has_view_permission",
        lambda self, request, obj=None: obj is None or obj.name != "Adam",
    )

    assert greet(greeter, search="ada").data["records"] == 1

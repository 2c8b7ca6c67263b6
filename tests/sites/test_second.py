from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from tests.clients import CheckedClient
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.django_db
RIGHTS = ("view_order", "view_customer")


@pytest.fixture
def orders():
    anne = Customer.objects.create(name="Anne", country="FR")
    bert = Customer.objects.create(name="Bert", country="DE")
    Order.objects.create(number="A1", customer=anne, total=5)
    Order.objects.create(number="A2", customer=bert, total=7)
    Order.objects.create(number="A3", customer=anne, status="paid")


@pytest.fixture
def clerk(make_user):
    """Staff nowhere, and in the office."""
    user = make_user("clerk", *RIGHTS)
    user.groups.add(Group.objects.create(name="office"))
    return CheckedClient(user=user)


def find(client, **arguments):
    return client.call_tool("find_records", model="shop.order", **arguments)


def numbers(client, **arguments):
    return sorted(one["number"] for one in find(client, **arguments).records)


def test_the_first_site_that_lets_a_user_in_decides_which_rows_there_are(
    client, clerk, staff, orders
):
    assert numbers(client) == ["A1", "A2", "A3"]
    assert numbers(clerk) == ["A1", "A2"]
    staff.groups.add(Group.objects.get(name="office"))
    assert numbers(CheckedClient(user=staff)) == ["A1", "A2"]


def test_whom_no_site_lets_in_has_no_model_that_a_site_has(make_user, orders):
    outsider = CheckedClient(user=make_user("outsider", *RIGHTS))

    assert find(outsider).is_error
    models = outsider.call_tool("list_models").data["models"]
    assert [one["model"] for one in models] == []


def test_fields_of_the_other_site_do_not_exist(client, clerk, orders):
    hidden = find(clerk, filters={"total__gt": 1})
    missing = find(clerk, filters={"tatol__gt": 1})

    assert "total" in find(client).records[0]
    assert "total" not in find(clerk).records[0]
    assert hidden.text.replace("total", "tatol") == missing.text
    assert hidden.is_error


def test_related_rows_are_those_of_the_same_site(client, clerk, orders):
    german = {"filters": {"customer__country": "DE"}}

    assert numbers(client, **german) == ["A2"]
    assert numbers(clerk, **german) == []
    assert numbers(clerk, exclude={"customer__country": "FR"}) == ["A2"]

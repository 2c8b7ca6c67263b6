"""completion/complete as a client asks it."""

from __future__ import annotations

import pytest
from django.apps import apps

from tests.shop.models import Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db

OBJECT = {"type": "ref/resource", "uri": "django://objects/{model}/{pk}"}


def complete(client, name, value="", **chosen):
    params = {"ref": OBJECT, "argument": {"name": name, "value": value}}
    if chosen:
        params["context"] = {"arguments": chosen}
    return client.request("completion/complete", params)["completion"]


@requirement("completion:references")
@pytest.mark.parametrize(
    "ref",
    [
        {},
        {"type": "ref/tool", "name": "echo"},
        {"type": "ref/prompt"},
        {"type": "ref/prompt", "name": "no_such_prompt"},
        {"type": "ref/resource"},
        {"type": "ref/resource", "uri": "django://objects/shop.order/1"},
        {"type": "ref/resource", "uri": 7},
    ],
    ids=str,
)
def test_what_cannot_be_completed_is_refused(any_revision, ref):
    argument = {"name": "model", "value": ""}

    code, _ = any_revision.failure("completion/complete", ref=ref, argument=argument)

    assert code == -32602


@requirement("completion:limit")
@pytest.mark.parametrize(("rows", "has_more"), [(3, False), (100, False), (101, True)])
def test_a_hundred_values_are_answered_and_more_are_said_to_be_more(client, rows, has_more):
    Order.objects.bulk_create(Order(number=f"N{number}") for number in range(rows))

    found = complete(client, "pk", model="shop.order")

    assert len(found["values"]) == min(rows, 100)
    assert found["hasMore"] is has_more
    assert found.get("total", rows) == rows


@requirement("completion:context", "completion:references")
def test_what_was_chosen_before_decides_what_is_offered(any_revision):
    order = Order.objects.create(number="A1")

    assert complete(any_revision, "model", "ord")["values"] == ["shop.order"]
    assert complete(any_revision, "pk", model="shop.order")["values"] == [str(order.pk)]
    assert complete(any_revision, "pk", model="shop.memo")["values"] == []


@requirement("completion:access")
def test_what_a_caller_may_not_see_is_offered_to_others_only(client, make_client):
    Order.objects.create(number="A1")
    # Where a backend has rules of its own, a model without an admin does not exist.
    other = "customer" if apps.is_installed("django.contrib.admin") else "memo"
    blind = make_client(f"view_{other}")

    offered = complete(blind, "model")["values"]
    hidden = complete(blind, "pk", model="shop.order")

    assert "shop.order" in complete(client, "model")["values"]
    assert f"shop.{other}" in offered
    assert "shop.order" not in offered
    assert hidden == complete(blind, "pk", model="shop.nothing")
    assert hidden["values"] == []

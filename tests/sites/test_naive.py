from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from mcp_django.auth.authenticate import cache
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, PersonalToken
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.django_db
#: Clocks went back from 3:00 to 2:00, so this half hour came twice.
TWICE = datetime(2026, 10, 25, 2, 30)


@pytest.fixture
def orders():
    for number, minutes in enumerate((-60, -30, 0, 0, 30, 60)):
        placed_at = TWICE + timedelta(minutes=minutes)
        Order.objects.create(number=str(number), placed_at=placed_at)


def numbers(client, **arguments):
    answer = client.call_tool("find_records", model="shop.order", **arguments)
    assert not answer.is_error, answer.text
    return [one["number"] for one in answer.records]


@pytest.mark.parametrize("order", ["placed_at", "-placed_at"])
def test_pages_lose_no_row_of_the_hour_that_came_twice(client, orders, order):
    found, cursor = [], None
    for _ in range(6):
        answer = client.call_tool(
            "find_records", model="shop.order", order_by=[order], limit=1, cursor=cursor
        )
        found += [one["number"] for one in answer.records]
        cursor = answer.data.get("next")

    assert (sorted(found), cursor) == (list("012345"), None)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"placed_at__date": "2026-10-25"}, "012345"),
        ({"placed_at__date__gt": "2026-10-25"}, ""),
        ({"placed_at__hour": 2}, "123"),
        ({"placed_at__hour__in": [1, 3]}, "045"),
        ({"placed_at": "2026-10-25T02:30"}, "23"),
        ({"placed_at__gte": "2026-10-25T02:30:00"}, "2345"),
        ({"placed_at__year": 2026, "placed_at__month": 10}, "012345"),
    ],
    ids=str,
)
def test_parts_of_times_mean_what_the_clock_showed(client, orders, filters, found):
    assert numbers(client, filters=filters, order_by=["number"]) == list(found)


def test_a_time_with_an_offset_is_moved_to_the_clock_of_the_site(client, orders):
    after = {"placed_at__gt": "2026-10-25T02:30:00+00:00"}

    assert numbers(client, filters=after, order_by=["number"]) == []
    assert numbers(client, filters={"placed_at": "2026-10-25T02:30:00+01:00"}) == ["2", "3"]


@pytest.fixture
def boss(boss, orders):
    ExposedModel.objects.create(label="shop.order", level=Level.WRITE)
    return boss


def test_a_time_that_is_written_with_an_offset_is_stored_as_the_clock_shows_it(boss):
    order = Order.objects.get(number="0")
    # The form demands a customer, which the column does not.
    Order.objects.update(customer=Customer.objects.create(name="Anne", country="FR"))
    for given, stored in [
        ("2026-01-31T12:00:00.000005Z", datetime(2026, 1, 31, 13, 0, 0, 5)),
        ("2026-10-25T02:30:00", TWICE),
    ]:
        answer = boss.call_tool(
            "update_record", model="shop.order", pk=order.pk, values={"placed_at": given}
        )
        order.refresh_from_db()
        assert not answer.is_error, answer.text
        assert order.placed_at == stored


def test_a_confirmation_is_used_once(boss):
    order = Order.objects.get(number="0")
    call = {"model": "shop.order", "pk": order.pk}
    token = boss.call_tool("delete_record", **call).data["confirmation"]

    assert not boss.call_tool("delete_record", **call, confirmation=token).is_error
    order.save(force_insert=True)
    again = boss.call_tool("delete_record", **call, confirmation=token)

    assert "used already" in again.text
    assert Order.objects.count() == 6


def test_tokens_expire_at_the_local_time_that_they_name(staff):
    token, secret = PersonalToken.create(user=staff, name="laptop")
    client = CheckedClient(token=secret)
    assert client.call_tool("echo", text="x").data["user"] == "staff"
    assert timezone.is_naive(token.expires_at)

    PersonalToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    cache.clear()

    with pytest.raises(ProtocolFailure) as refused:
        client.call_tool("echo", text="x")
    assert refused.value.status == 401

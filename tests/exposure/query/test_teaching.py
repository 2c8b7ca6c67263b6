"""Every refusal of the generic tools shows a call that works: it is taken at its word here."""

from __future__ import annotations

import msgspec
import pytest

from tests.shop.models import Customer, Memo, Order

pytestmark = pytest.mark.django_db

WRONG_CALLS = [
    ("describe_model", {}),
    ("describe_model", {"model": "orders"}),
    ("describe_model", {"model": "shop.ledger"}),
    ("describe_model", {"model": ["shop.order"]}),
    ("find_records", {"model": "Order"}),
    ("find_records", {"model": "shop.order", "filters": {"statsu": "paid"}}),
    ("find_records", {"model": "shop.order", "filters": {"status": "unpaid"}}),
    ("find_records", {"model": "shop.order", "filters": {"total__above": 5}}),
    ("find_records", {"model": "shop.order", "filters": {"customer": "Ada"}}),
    ("find_records", {"model": "shop.order", "filters": {"placed_at": "2026-01-31"}}),
    ("find_records", {"model": "shop.order", "filters": {"number__regex": "A.*"}}),
    ("find_records", {"model": "shop.order", "filters": ["status"]}),
    ("find_records", {"model": "shop.order", "exclude": {"margin": 1}}),
    ("find_records", {"model": "shop.order", "any_of": {"status": "paid"}}),
    ("find_records", {"model": "shop.order", "any_of": [{}]}),
    ("find_records", {"model": "shop.order", "order_by": ["customer__country__name"]}),
    ("find_records", {"model": "shop.order", "order_by": 7}),
    ("find_records", {"model": "shop.order", "fields": ["all"]}),
    ("find_records", {"model": "shop.order", "limit": 0}),
    ("find_records", {"model": "shop.order", "cursor": "next"}),
    ("find_records", {"model": "shop.memo", "search": "a"}),
    ("find_records", {"model": "shop.order", "where": "status = 'paid'"}),
    ("get_record", {"model": "shop.order", "pk": 10_000}),
    ("get_record", {"model": "shop.order", "pk": "A1"}),
    ("get_record", {"model": "shop.order", "pk": 1, "fields": ["margin"]}),
    ("aggregate_records", {"model": "order"}),
    ("aggregate_records", {"model": "shop.order", "group_by": 7}),
    ("aggregate_records", {"model": "shop.order", "group_by": ["placed_at__month_year"]}),
    ("aggregate_records", {"model": "shop.order", "group_by": ["margin"]}),
    ("aggregate_records", {"model": "shop.order", "metrics": {"sum": "total"}}),
    ("aggregate_records", {"model": "shop.order", "metrics": {"x": {"sum": "number"}}}),
    ("aggregate_records", {"model": "shop.order", "metrics": {"x": {"median": "total"}}}),
    ("aggregate_records", {"model": "shop.order", "order_by": ["-total"]}),
    (
        "aggregate_records",
        {"model": "shop.order", "group_by": ["status"], "having": {"total__gt": 5}},
    ),
    ("aggregate_records", {"model": "shop.order", "group_by": ["status"], "order_by": ["total"]}),
    ("aggregate_records", {"model": "shop.order", "filters": {"statsu": "paid"}, "limit": 999}),
    ("read_resource", {"uri": "file:///etc/passwd"}),
    ("read_resource", {"uri": "django://objects/shop.order?statsu=paid"}),
    ("list_resources", {"cursor": "x"}),
]


@pytest.fixture
def _shop():
    customer = Customer.objects.create(name="Ada", country="FR")
    Order.objects.create(number="A1", customer=customer)
    Memo.objects.create(text="Hello", code="hello")


@pytest.mark.usefixtures("_shop")
@pytest.mark.parametrize(("tool", "arguments"), WRONG_CALLS, ids=repr)
def test_a_wrong_call_is_answered_with_one_that_works(client, tool, arguments):
    refused = client.call_tool(tool, **arguments)
    sentence, _, shown = refused.text.partition(f" A valid call: {tool} ")
    answer = client.call_tool(tool, **msgspec.json.decode(shown))

    assert refused.is_error
    assert 10 < len(sentence) < 700
    assert not answer.is_error, (shown, answer.text)


@pytest.mark.usefixtures("_shop")
def test_a_hidden_and_a_made_up_name_are_answered_with_the_same_call(client):
    def refusal(name):
        text = client.call_tool("find_records", model="shop.order", filters={name: 1}).text
        return text.replace(name, "?")

    assert refusal("margin") == refusal("nargim")

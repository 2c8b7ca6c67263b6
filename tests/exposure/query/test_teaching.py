"""A refusal of a generic tool says what is allowed, with one example that never changes."""

from __future__ import annotations

import time

import msgspec
import pytest

from mcp_django.exposure.tools.records import RECORD_TOOLS
from tests.clients import CheckedClient
from tests.costs import cost_of
from tests.shop.models import Customer, Memo, Order

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_shop")]

WRONG_CALLS = [
    ("list_models", {"all": True}),
    ("describe_model", {"name": "shop.order"}),
    ("describe_model", {"model": "shop.ledger"}),
    ("find_records", {}),
    ("find_records", {"model": "shop.order", "filters": {"statsu": "paid"}}),
    ("find_records", {"model": "shop.order", "filters": {"status": "unpaid"}}),
    ("find_records", {"model": "shop.order", "filters": {"customer": "Ada"}}),
    ("find_records", {"model": "shop.order", "filters": {"placed_at": "2026-01-31"}}),
    ("find_records", {"model": "shop.order", "any_of": [{"status": "paid"}, {}]}),
    ("find_records", {"model": "shop.order", "order_by": ["customer__country__name"]}),
    ("find_records", {"model": "shop.order", "fields": ["all"]}),
    ("find_records", {"model": "shop.order", "limit": 0}),
    ("find_records", {"model": "shop.order", "cursor": "next"}),
    ("find_records", {"model": "shop.memo", "search": "a"}),
    ("find_records", {"model": "shop.order", "where": "status = 'paid'"}),
    ("aggregate_records", {"model": "shop.order", "group_by": ["placed_at__month_year"]}),
    ("export_records", {"model": "shop.order", "limit": 5}),
    ("aggregate_records", {"model": "shop.order", "metrics": {"sum": "total"}}),
    ("aggregate_records", {"model": "shop.order", "metrics": {"x": {"sum": "number"}}}),
    (
        "aggregate_records",
        {"model": "shop.order", "group_by": ["status"], "having": {"total__gt": 5}},
    ),
    ("aggregate_records", {"model": "shop.order", "limit": 999, "filters": {"statsu": "paid"}}),
    ("find_records", {"model": "shop.order", "search": "x" * 101}),
    ("read_resource", {}),
    ("read_resource", {"uri": "file:///etc/passwd"}),
    ("read_resource", {"uri": "django://objects/shop.order?statsu=paid"}),
    ("list_resources", {"cursor": "x"}),
]
ORDERS = {"model": "shop.order"}
#: A call that works, what makes a typo of it, and what the refusal names.
TYPOS = [
    ("find_records", {"filters": {"status": "paid"}}, {"filters": {"statsu": "paid"}}, "status?"),
    ("find_records", {"filters": {"total__gte": 1}}, {"filters": {"total__gtee": 1}}, "gt, gte"),
    ("find_records", {"order_by": ["-total"]}, {"order_by": ["-totl"]}, "total?"),
    ("find_records", {"fields": ["total"]}, {"fields": ["totl"]}, "total?"),
    ("find_records", {"limit": 2}, {"limits": 2}, "limit?"),
    ("find_records", {}, {"model": "shop.ordr"}, "shop.memo, shop.order"),
    ("aggregate_records", {"group_by": ["status"]}, {"group_by": ["statsu"]}, "status?"),
    (
        "aggregate_records",
        {"metrics": {"x": {"sum": "total"}}},
        {"metrics": {"x": {"smu": "total"}}},
        "sum?",
    ),
    ("aggregate_records", {}, {"model": "shop.ordr"}, "shop.memo, shop.order"),
]


@pytest.fixture
def _shop():
    customer = Customer.objects.create(name="Ada", country="FR")
    Order.objects.create(number="A1", customer=customer, status="paid", total=5)
    Memo.objects.create(text="Hello", code="hello")


def example_of(client, tool, **arguments):
    """The arguments of the only example in a refusal, or None."""
    _, *examples = client.refusal(tool, **arguments).split(f" A valid call: {tool} ")
    assert len(examples) < 2
    return msgspec.json.decode(examples[0]) if examples else None


@pytest.mark.parametrize(("tool", "arguments"), WRONG_CALLS, ids=repr)
def test_a_wrong_call_is_told_what_is_wrong_with_an_example_that_works(client, tool, arguments):
    sentence = client.refusal(tool, **arguments).partition(" A valid call: ")[0]

    answer = client.call_tool(tool, **example_of(client, tool, **arguments))

    assert 10 < len(sentence) < 700
    assert not answer.is_error, answer.text
    if tool in ("find_records", "aggregate_records"):
        assert [*(arguments or ["model"])][-1] in sentence


def test_every_tool_that_reads_has_an_example_unless_it_needs_a_key():
    reading = {
        name for name, tool in RECORD_TOOLS.items() if tool.definition.annotations.read_only
    }

    assert reading - {tool for tool, _ in WRONG_CALLS} == {"get_record", "get_history"}


@pytest.mark.parametrize(
    "arguments", [{"pk": 10_000}, {"pk": "A1"}, {"pk": True}, {"pk": 1, "fields": ["margin"]}, {}]
)
def test_no_key_of_a_record_is_made_up_or_looked_up(client, arguments):
    assert example_of(client, "get_record", **ORDERS, **arguments) is None


@pytest.mark.parametrize(
    ("tool", "right", "wrong"),
    [
        *((tool, right, typo) for tool, right, typo, _ in TYPOS),
        ("list_models", {}, {"all": True}),
        ("get_record", {}, {"pk": 10_000}),
        ("get_record", {"fields": ["number"]}, {"fields": ["numbr"]}),
        ("get_history", {}, {"pk": 10_000}),
        ("find_records", {"any_of": [{"status": "paid"}] * 8}, {"any_of": [{"statsu": 1}] * 8}),
    ],
    ids=str,
)
def test_a_refused_call_costs_little_more_than_one_that_works(client, tool, right, wrong):
    arguments = {} if tool == "list_models" else {**ORDERS}
    if tool in ("get_record", "get_history"):
        arguments["pk"] = Order.objects.get().pk

    queries, calls = cost_of(client, tool, {**arguments, **right})
    refused_queries, refused_calls = cost_of(client, tool, {**arguments, **wrong})

    assert len(refused_queries) <= len(queries)
    assert 0 < refused_calls <= 1.3 * calls


@pytest.mark.parametrize(("tool", "right", "typo", "names"), TYPOS, ids=str)
def test_a_typo_names_what_is_near_whatever_the_clock_and_the_records_say(
    client, monkeypatch, tool, right, typo, names
):
    works = client.call_tool(tool, **{**ORDERS, **right})
    earlier, monotonic = client.refusal(tool, **{**ORDERS, **typo}), time.monotonic
    Order.objects.all().delete()
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 5 * 3600)

    assert not works.is_error, works.text
    assert client.refusal(tool, **{**ORDERS, **typo}) == earlier
    assert names in earlier.partition(" A valid call: ")[0]
    assert earlier.count(" A valid call: ") == 1


def test_the_example_names_nothing_that_the_caller_may_not_see(make_user):
    clerk = CheckedClient(user=make_user("clerk", "view_order", is_staff=True))
    nobody = CheckedClient(user=make_user("nobody"))

    for tool in ("describe_model", "find_records", "aggregate_records"):
        text = clerk.refusal(tool, model="shop.customer")
        works = clerk.call_tool(tool, **example_of(clerk, tool, model="shop.customer"))

        assert text.replace("'shop.customer'", "").count("customer") == 0
        assert not works.is_error, works.text
        assert example_of(nobody, tool, model="shop.customer") is None

"""The call that a refusal shows is the caller's own, without what was wrong in it."""

from __future__ import annotations

import msgspec
import pytest

from mcp_django.exposure.functions.arguments import is_repeatable
from mcp_django.exposure.tools import repairs
from mcp_django.testing import Client
from tests.shop.models import Customer, Memo, Order

pytestmark = pytest.mark.django_db

FIND, AGGREGATE = "find_records", "aggregate_records"
ORDERS = {"model": "shop.order"}


@pytest.fixture(autouse=True)
def _shop():
    ada = Customer.objects.create(name="Ada", country="FR", credit_rating=7)
    Order.objects.create(number="A1", customer=ada, status="paid", total=5)
    Memo.objects.create(text="Hello", code="hello")


def shown_call(client, tool, **arguments):
    """The arguments of the call that a refusal shows, which was sent back and did work."""
    refused = client.call_tool(tool, **arguments)
    assert refused.is_error, refused.text
    text = refused.text.partition(f" A valid call: {tool} ")[2]
    if not text:
        return None
    shown = msgspec.json.decode(text)
    answer = client.call_tool(tool, **shown)
    assert not answer.is_error, (shown, answer.text)
    return shown


@pytest.mark.parametrize(
    ("tool", "wrong", "right"),
    [
        (
            FIND,
            {"filters": {"statsu": "paid", "total__gte": 2}, "limit": 3},
            {"filters": {"status": "paid", "total__gte": 2}, "limit": 3},
        ),
        (
            FIND,
            {"filters": {"statsu__in": ["paid"]}, "fields": ["number"]},
            {"filters": {"status__in": ["paid"]}, "fields": ["number"]},
        ),
        (
            FIND,
            {"filters": {"margin": 3, "status": "paid"}, "order_by": ["-number"]},
            {"filters": {"status": "paid"}, "order_by": ["-number"]},
        ),
        (
            FIND,
            {"filters": {"status": "paid", "total__week": 2}, "search": "ada"},
            {"filters": {"status": "paid"}, "search": "ada"},
        ),
        (
            FIND,
            {"filters": {"status": "paid"}, "order_by": ["-nmber", "status", "zzz"]},
            {"filters": {"status": "paid"}, "order_by": ["-number", "status"]},
        ),
        (
            FIND,
            {"exclude": {"status": "new"}, "fields": ["number", "margin"], "limit": 2},
            {"exclude": {"status": "new"}, "fields": ["number"], "limit": 2},
        ),
        (
            FIND,
            {"any_of": [{"status": "paid"}, {"margin": 1}], "limit": 2},
            {"any_of": [{"status": "paid"}], "limit": 2},
        ),
        (
            FIND,
            {"filters": {"status": "paid"}, "where": "total > 3", "limit": 2},
            {"filters": {"status": "paid"}, "limit": 2},
        ),
        (
            FIND,
            {"filter": {"status": "paid"}, "limit": 2},
            {"filters": {"status": "paid"}, "limit": 2},
        ),
        (
            FIND,
            {"filters": {"status": "paid"}, "cursor": "next"},
            {"filters": {"status": "paid"}},
        ),
        (
            FIND,
            {"model": "order", "filters": {"status": "paid"}},
            {"filters": {"status": "paid"}},
        ),
        (
            AGGREGATE,
            {"filters": {"status": "paid"}, "group_by": ["status", "margin"]},
            {"filters": {"status": "paid"}, "group_by": ["status"]},
        ),
        (
            AGGREGATE,
            {
                "group_by": ["status"],
                "metrics": {"n": {"count": "*"}, "x": {"median": "total"}},
                "having": {"n__gte": 1},
            },
            {
                "group_by": ["status"],
                "metrics": {"n": {"count": "*"}},
                "having": {"n__gte": 1},
            },
        ),
    ],
    ids=str,
)
def test_the_shown_call_is_the_callers_own_without_what_was_wrong(client, tool, wrong, right):
    assert shown_call(client, tool, **{**ORDERS, **wrong}) == {**ORDERS, **right}


def test_an_argument_of_which_nothing_works_has_a_working_value(client):
    shown = shown_call(client, FIND, **ORDERS, filters={"colour": "red"}, limit=2)

    assert shown["limit"] == 2
    assert shown["filters"]


def test_a_record_that_is_not_there_is_replaced_by_one_that_the_caller_sees(client):
    pk = Order.objects.get().pk

    shown = shown_call(client, "get_record", **ORDERS, pk=pk + 1000, fields=["number"])

    assert shown == {**ORDERS, "pk": pk, "fields": ["number"]}


def test_without_a_record_that_the_caller_sees_no_key_is_made_up(client):
    Order.objects.all().delete()

    assert shown_call(client, "get_record", **ORDERS, pk=1) is None


def test_a_hidden_name_and_a_made_up_name_are_repaired_alike(client):
    def repaired(name):
        filters = {name: 1, "status": "paid"}
        return shown_call(client, FIND, **ORDERS, filters=filters, order_by=["number"])

    assert repaired("margin") == repaired("nargim") == repaired("qqqq")


def test_names_behind_a_model_that_the_caller_lost_are_not_suggested(make_user):
    clerk = Client(user=make_user("clerk", "view_order", is_staff=True))

    wrong = {"filters": {"customer__county": "FR", "status": "paid"}}
    shown = shown_call(clerk, FIND, **ORDERS, **wrong)

    assert shown == {**ORDERS, "filters": {"status": "paid"}}


def test_values_that_are_long_are_not_said_again(client):
    long = "x" * 201

    shown = shown_call(client, FIND, **ORDERS, filters={"number": long, "statsu": "paid"})

    assert shown == {**ORDERS, "filters": {"status": "paid"}}


@pytest.mark.parametrize(
    "value",
    [2**62, [[[[]]]], {"a": {"b": {}}}, True, "x" * 100_000],
    ids=lambda one: repr(one)[:20],
)
@pytest.mark.parametrize("argument", ["filters", "fields", "limit", "cursor", "model", "zzz"])
def test_nonsense_is_answered_with_a_call_that_works(staff, value, argument):
    arguments = {**ORDERS, "order_by": ["zzz"], argument: value}

    assert shown_call(Client(user=staff), FIND, **arguments)


@pytest.mark.parametrize("value", ["\ud800", 10**400, {"a": 10**400}, None, "x" * 201], ids=ascii)
def test_what_json_cannot_say_or_is_long_is_not_shown_again(value):
    assert not is_repeatable(value)


def test_a_call_with_more_faults_than_are_tried_is_answered_with_an_example(client):
    filters = {f"name{number}": 1 for number in range(30)}

    shown = shown_call(client, FIND, **ORDERS, filters=filters, limit=3)

    assert shown["model"] == "shop.order"
    assert not shown["filters"].keys() & filters.keys()


def test_no_call_is_shown_where_trying_takes_too_long(client, monkeypatch):
    monkeypatch.setattr(repairs, "LONGEST_TRIAL", -1.0)

    assert shown_call(client, FIND, **ORDERS, filters={"statsu": "paid"}) is None


def test_a_resource_is_not_read_to_find_a_call(client):
    assert shown_call(client, "read_resource", uri="nothing://here") == {"uri": "django://site"}

"""The generic tools, as a client calls them."""

from __future__ import annotations

import msgspec
import pytest

from mcp_django.exposure.record_tools import RECORD_TOOLS
from mcp_django.exposure.tools import BUILT_IN
from mcp_django.testing import Client
from tests.shop.models import Customer, Order
from tests.spec import requirement

pytestmark = pytest.mark.django_db


def test_the_set_is_constant_and_its_names_are_reserved():
    assert set(RECORD_TOOLS) == BUILT_IN


def test_every_tool_is_read_only_and_described(client):
    tools = [tool for tool in client.list_tools() if tool["name"] in BUILT_IN]

    assert len(tools) == 7
    for tool in tools:
        assert tool["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        assert tool["description"]
        assert tool["inputSchema"]["additionalProperties"] is False


def test_the_whole_set_costs_a_model_less_than_two_thousand_tokens(client):
    definitions = [tool for tool in client.list_tools() if tool["name"] in BUILT_IN]

    # Four characters are about a token.
    assert len(msgspec.json.encode(definitions)) < 2000 * 4


@requirement("tools:structured-text")
def test_text_and_structured_content_are_the_same_json(client):
    Order.objects.create(number='A "1"')

    answer = client.call_tool("find_records", model="shop.order")

    assert msgspec.json.decode(answer.text) == answer.structured


def test_structured_content_is_left_out_where_a_revision_has_none(staff, revision):
    answer = Client(user=staff, revision=revision).call_tool("list_models")

    assert (answer.structured is not None) is revision.features.structured_content
    assert "shop.order" in answer.text


def test_find_takes_filters_search_order_fields_and_limit(client):
    fr = Customer.objects.create(name="Ada", country="FR")
    de = Customer.objects.create(name="Bob", country="DE")
    for number, customer in [("A1", fr), ("A2", fr), ("B1", de), ("B2", None)]:
        Order.objects.create(number=number, customer=customer, total=len(number))

    def numbers(**arguments):
        answer = client.call_tool("find_records", model="shop.order", **arguments)
        assert not answer.is_error, answer.text
        return [record["number"] for record in answer.structured["records"]]

    assert numbers(filters={"customer__country": "FR"}) == ["A1", "A2"]
    assert numbers(exclude={"customer__country": "FR"}) == ["B1", "B2"]
    assert numbers(any_of=[{"number": "A1"}, {"number__startswith": "B"}]) == ["A1", "B1", "B2"]
    assert numbers(search="bob") == ["B1"]
    assert numbers(order_by=["-number"], limit=2) == ["B2", "B1"]
    assert numbers(fields=["number"], filters={"number__in": ["B1"]}) == ["B1"]


def test_pages_follow_each_other_by_cursor_and_query(client):
    Order.objects.bulk_create(Order(number=f"N{n:02}") for n in range(12))

    seen, cursor = [], None
    while True:
        arguments = {"cursor": cursor} if cursor else {}
        page = client.call_tool(
            "find_records", model="shop.order", limit=5, order_by=["-number"], **arguments
        ).structured
        seen += [record["number"] for record in page["records"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == [f"N{n:02}" for n in reversed(range(12))]


def test_another_users_cursor_is_refused(client, make_user):
    Order.objects.bulk_create(Order(number=f"N{n}") for n in range(3))
    other = Client(user=make_user("other", "view_order", is_staff=True))
    page = client.call_tool("find_records", model="shop.order", limit=1).structured

    answer = other.call_tool(
        "find_records", model="shop.order", limit=1, cursor=page["next_cursor"]
    )

    assert answer.is_error
    assert "cursor" in answer.text


@requirement("tools:argument-errors")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"model": 5},
        {"model": "shop.order", "fitlers": {}},
        {"model": "shop.order", "filters": []},
        {"model": "shop.order", "filters": {"status": {"a": 1}}},
        {"model": "shop.order", "filters": {"number__regex": "(a+)+$"}},
        {"model": "shop.order", "limit": 0},
        {"model": "shop.order", "limit": 10**9},
        {"model": "shop.order", "limit": "many"},
        {"model": "shop.order", "cursor": "x"},
        {"model": "shop.order", "order_by": ["margin"]},
        {"model": "shop.order", "fields": ["margin"]},
        {"model": "shop.order", "any_of": [{}]},
        {"model": "shop.order", "rights": {}},
    ],
)
def test_what_does_not_fit_is_a_tool_error_in_one_sentence_or_two(client, arguments):
    answer = client.call_tool("find_records", **arguments)

    assert answer.is_error
    assert 0 < len(answer.text) < 1000
    assert "Traceback" not in answer.text


def test_a_page_takes_one_query_whatever_its_size(client, django_assert_num_queries):
    customer = Customer.objects.create(name="Ada", country="FR")
    Order.objects.bulk_create(Order(number=f"N{n}", customer=customer) for n in range(60))
    client.call_tool("find_records", model="shop.order", limit=1)

    with django_assert_num_queries(1):
        client.call_tool("find_records", model="shop.order", limit=1)
    with django_assert_num_queries(1):
        client.call_tool("find_records", model="shop.order", limit=50)


def test_aggregates_take_filters_groups_metrics_and_an_order(client):
    for n, status in enumerate(["new", "paid", "paid", "paid"]):
        Order.objects.create(number=f"A{n}", status=status, total=n)

    answer = client.call_tool(
        "aggregate_records",
        model="shop.order",
        exclude={"number": "A3"},
        group_by=["status"],
        metrics={"n": {"count": "*"}, "most": {"max": "total"}},
        having={"n__gte": 1},
        order_by=["-n"],
        limit=1,
    )

    assert answer.structured == {
        "groups": [{"status": {"value": "paid", "label": "Paid"}, "n": 2, "most": "2.00"}],
        "truncated": True,
    }


def test_get_record_takes_one_query(client, django_assert_num_queries):
    order = Order.objects.create(number="A1")
    client.call_tool("get_record", model="shop.order", pk=order.pk)

    with django_assert_num_queries(1):
        answer = client.call_tool("get_record", model="shop.order", pk=order.pk)

    assert answer.structured["number"] == "A1"


def test_a_refused_call_shows_one_that_works_for_this_caller(client):
    Order.objects.create(number="A1")
    wrong_calls = [
        ("find_records", {}),
        ("find_records", {"model": "shop.order", "filters": 5}),
        ("find_records", {"model": "shop.order", "fields": "number"}),
        ("find_records", {"model": "shop.order", "limit": "many"}),
        ("find_records", {"model": "shop.order", "order": ["number"]}),
        ("get_record", {"model": "shop.order"}),
        ("get_record", {"model": "shop.order", "pk": True}),
        ("describe_model", {"name": "shop.order"}),
        ("read_resource", {}),
        ("list_models", {"all": True}),
    ]

    for tool, arguments in wrong_calls:
        refused = client.call_tool(tool, **arguments)
        shown = refused.text.partition(f"A valid call: {tool} ")[2]
        answer = client.call_tool(tool, **msgspec.json.decode(shown))

        assert refused.is_error
        assert not answer.is_error, (refused.text, answer.text)


def test_who_sees_nothing_is_shown_no_call_of_others(make_user):
    client = Client(user=make_user("bob"))

    assert "valid call" not in client.call_tool("find_records").text
    assert "django://site" in client.call_tool("read_resource").text


def test_a_definition_is_short_and_its_example_works(client):
    answer = client.call_tool("describe_model", model="shop.order")
    example = answer.structured["example"]

    assert len(answer.text) < 2000
    assert not client.call_tool(example["tool"], **example["arguments"]).is_error

from __future__ import annotations

import pytest

from mcp_django.audit.reasons import LONGEST_SENTENCE, reason_of
from mcp_django.exceptions import Declined, Limited, QueryError, ToolError
from mcp_django.exposure.limits import TOO_SLOW
from mcp_django.models import CallRecord, ExposedModel
from mcp_django.protocol.errors import METHOD_NOT_FOUND, ProtocolError
from tests.clients import CheckedClient
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.client(record=True)

SECRET = "mcp_" + "A" * 43 + "000000"


def reason_after(client, tool, **arguments):
    """What the record of a call that fails says."""
    assert client.call_tool(tool, **arguments).is_error
    return CallRecord.objects.latest("pk").reason


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"fields": ["Sofia"]}, "A name that cannot be used there"),
        ({"order_by": ["Sofia"]}, "A name that cannot be used there"),
        ({"filters": {"total": "Sofia"}}, "The query cannot run: filters total"),
        ({"filters": {"total__gte": "Sofia"}}, "The query cannot run: filters total__gte"),
        ({"limit": "Sofia"}, "Invalid arguments: limit"),
        ({"cursor": "Sofia"}, "The query cannot run"),
        ({"Sofia": 1}, "Invalid arguments"),
        # A hidden model and a missing one have the same reason.
        *(
            ({"model": label}, "Not found, or not allowed")
            for label in ("shop.ledger", "auth.group", "shop.nothing", "Sofia Olsen")
        ),
    ],
)
def test_the_record_has_the_kind_and_the_place_and_no_value(client, arguments, reason):
    Order.objects.create(number="A1")

    found = reason_after(client, "find_records", **{"model": "shop.order", **arguments})

    assert found.startswith(reason)
    assert "Sofia" not in found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        (f"number: Sofia has paid A-7 with {SECRET}.", "The tool refused the call: number"),
        ("Olsen: paid already.", "The tool refused the call"),
    ],
)
def test_of_the_sentence_of_a_tool_only_names_in_the_call_are_kept(
    client, add_tool, sentence, reason
):
    def settle(number: str) -> str:
        """Pay."""
        raise ToolError(sentence)

    add_tool(settle, read_only=True)

    assert reason_after(client, "settle", number="A-7") == reason


@pytest.mark.django_db
def test_a_refused_form_names_the_field(make_user):
    clerk = make_user("clerk", "view_order", "change_order", "view_customer", is_staff=True)
    ExposedModel.objects.create(label="shop.order", level=5)
    order = Order.objects.create(
        number="A1", customer=Customer.objects.create(name="Sofia Olsen", country="NO")
    )

    reason = reason_after(
        CheckedClient(user=clerk, record=True),
        "update_record",
        model="shop.order",
        pk=order.pk,
        values={"number": "A2", "total": "Sofia"},
    )

    assert reason == "The form of the admin refused the values: total"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "The tool answered with an error"),
        (QueryError(TOO_SLOW), TOO_SLOW.partition(".")[0]),
        (Limited("Wait."), "Too many calls"),
        (Declined(is_explicit=True), "The person did not agree"),
        (ProtocolError(METHOD_NOT_FOUND, "x"), "Unknown method"),
        (ProtocolError(-1, "x"), "Invalid request"),
        (KeyError("Sofia Olsen"), "KeyError: see the log"),
    ],
)
def test_each_kind_has_words(error, reason):
    assert reason_of(error, {}) == reason


@pytest.mark.parametrize(
    "arguments", [None, [], "text", 5, {"a": {"b": [{"c": {"d": {"e": 1}}}]}}, {1: 2}]
)
def test_any_arguments_are_looked_through(arguments):
    reason = reason_of(QueryError("e: a: b: wrong"), {"arguments": arguments})
    redacted = reason_of(QueryError(f"{SECRET}: wrong"), {"arguments": {SECRET: arguments}})

    assert reason == "The query cannot run"
    assert SECRET not in redacted


def test_a_reason_has_an_end_and_is_found_in_the_beginning_of_a_refusal():
    names = [f"a{number}{'x' * 50}" for number in range(100)]
    error = QueryError("\n".join(f"{name}: wrong" for name in names))
    # To cut a sentence again for each name took time that grows with its square.
    far = ToolError(f"a: wrong\n{'x' * LONGEST_SENTENCE}\nb: wrong")

    assert len(reason_of(error, {"arguments": dict.fromkeys(names)})) <= 200
    assert reason_of(far, {"arguments": {"a": 1, "b": 2}}) == "The tool refused the call: a"

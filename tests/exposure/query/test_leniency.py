"""Calls that deviate from the schema in a harmless way are answered as they were meant."""

from __future__ import annotations

import msgspec
import pytest

from mcp_django.exceptions import ToolError
from mcp_django.exposure.tools.records import RECORD_TOOLS
from tests.nasty.site import caller

pytestmark = pytest.mark.django_db


def call(tool, who=None, /, **arguments):
    """The answer of a generic tool about orders."""
    given = {"model": "nasty.order", **arguments}
    outcome = RECORD_TOOLS[tool].call(None, who or caller(), given)
    return msgspec.json.decode(outcome.structured)


def numbers(**arguments):
    return [record["number"] for record in call("find_records", **arguments)["records"]]


def refusal(tool="find_records", /, **arguments):
    with pytest.raises(ToolError) as caught:
        call(tool, **arguments)
    return str(caught.value)


# Texts in place of lists and objects.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("-number", ["-number"]),
        ("status,-number", ["status", "-number"]),
        (" status , -number, ", ["status", "-number"]),
        ('["status", "-number"]', ["status", "-number"]),
    ],
)
def test_a_text_of_names_is_a_list_of_them(shop, text, names):
    assert numbers(order_by=text) == numbers(order_by=names)
    assert numbers(order_by=text) != numbers()


def test_a_text_of_names_says_what_to_show_and_how_to_group(shop):
    [record, *_] = call("find_records", fields="number, total")["records"]
    found = call("aggregate_records", group_by="status,customer__name", order_by="-count")

    assert list(record) == ["number", "total"]
    assert list(found["groups"][0]) == ["status", "customer__name", "count"]


@pytest.mark.parametrize("text", [",", ", ,", "number,,secret", "a,b,c,d,e", "\ud800,\x00"])
def test_a_text_that_names_nothing_usable_is_refused(shop, text):
    assert "order_by" in refusal(order_by=text)
    assert "fields" in refusal(fields=text)
    assert "group_by" in refusal("aggregate_records", group_by=text)


def test_a_hidden_name_in_a_text_is_refused_like_one_that_is_not_there(shop):
    def told(name):
        return refusal(order_by=f"number,{name}").replace(name, "?")

    assert told("api_token") == told("apj_tokem")


def test_json_in_a_text_is_what_it_says(shop):
    assert numbers(filters='{"status": "paid"}') == ["A1", "A3"]
    assert numbers(exclude='{"status": "paid"}') == ["A2", "R1"]
    assert numbers(any_of='[{"number": "A1"}, {"number": "A2"}]') == ["A1", "A2"]
    assert numbers(any_of=['{"number": "A1"}']) == ["A1"]
    found = call(
        "aggregate_records",
        group_by='["status"]',
        metrics='{"n": {"count": "*"}}',
        having='{"n__gte": 1}',
    )
    assert found == call("aggregate_records", group_by=["status"], metrics={"n": {"count": "*"}})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"status":' * 200 + "1" + "}" * 200,
        '{"total": NaN}',
        '{"total": 1e999}',
        '{"total": 1' + "0" * 5000 + "}",
        '"{\\"status\\": \\"paid\\"}"',
        '{"status": "paid"',
        '{"status": "\ud800"}',
        "status=paid",
    ],
    ids=lambda text: text[:30].encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("argument", ["filters", "exclude", "any_of", "having", "metrics"])
def test_hostile_json_in_a_text_is_refused_in_words(shop, text, argument):
    sentence = refusal("aggregate_records", **{argument: text}, group_by="status")

    assert 10 < len(sentence) < 1500

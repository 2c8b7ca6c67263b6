from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

import mcp_django as mcp
from mcp_django.exceptions import ToolError
from mcp_django.exposure.primitives import PendingCall
from mcp_django.protocol.revisions import Revision
from tests.clients import CheckedClient
from tests.exposure.function_tools import accepts, call, data_of, text_of, tool_of
from tests.exposure.functions.test_site_schemas import CONDITIONAL, TREE, tree

SHIP = {
    "type": "object",
    "properties": {
        "number": {"type": "string", "pattern": "^A-[0-9]+$", "examples": ["A-1"]},
        "lines": {
            "type": "array",
            "items": {"$ref": "#/$defs/line"},
            "minItems": 1,
        },
        "note": {"type": ["null", "string"]},
    },
    "required": ["number", "lines"],
    "additionalProperties": False,
    "$defs": {
        "line": {
            "allOf": [{"properties": {"sku": {"const": "x"}}, "required": ["sku"]}],
            "properties": {"amount": {"type": "integer", "minimum": 2}},
            "required": ["amount"],
        }
    },
}


def ship(request: HttpRequest, arguments: dict[str, Any], context: mcp.Context) -> Any:
    """Ship an order."""
    return [request is context.request, arguments]


def refusal(made, arguments):
    with pytest.raises(ToolError) as caught:
        call(made, arguments)
    return str(caught.value)


# Arguments


def test_the_schema_is_told_with_one_type_at_a_time_and_read_as_the_site_wrote_it():
    made = tool_of(ship, input_schema=SHIP)
    # As models write it.
    sent = {"number": "A-1", "lines": '[{"sku": "x", "amount": 2.0}]', "note": []}

    result = call(made, sent)

    told = made.definition.input_schema
    assert list(told) == list(SHIP)
    note = {"anyOf": [{"type": "null"}, {"type": "string"}]}
    assert told == {**SHIP, "properties": {**SHIP["properties"], "note": note}}
    assert text_of(result) == '[true,{"number":"A-1","lines":[{"sku":"x","amount":2}]}]'


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"lines": [{"sku": "x", "amount": 2}]}, 'Arguments: "number" is a required property.'),
        ({"number": "A-1", "lines": []}, "Argument lines: The value has less than 1 item."),
        ({"number": "B-1", "lines": [{"sku": "x", "amount": 2}]}, "Argument number: The value"),
        ({"number": "A-1", "lines": [{"sku": "x", "amount": 1}]}, "Argument lines[0].amount:"),
        ({"number": "A-1", "lines": [{"sku": "x"}]}, 'Argument lines[0]: "amount" is a required'),
    ],
)
def test_a_refusal_names_the_place_and_shows_a_call_that_works(arguments, sentence):
    made = tool_of(ship, input_schema=SHIP)

    said = refusal(made, arguments)

    shown = re.search(r" A valid call: ship (\{.*\})$", said)
    assert sentence in said
    assert accepts(SHIP, json.loads(shown[1]))
    assert call(made, json.loads(shown[1]))


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"examples": [5, {"a": 1}]}, {"a": 1}),
        ({"default": {"a": 2}}, {"a": 2}),
        ({"examples": [{"a": "x"}], "default": {}, "required": ["a"]}, {"a": 1}),
        ({"minProperties": 1, "maxProperties": 1, "required": ["c"]}, {"c": "text"}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "required": ["b"]}, None),
        ({"oneOf": [{"type": "null"}, {"required": ["a"]}]}, {"a": 1}),
        ({"properties": {"d": {"format": "date-time"}}, "required": ["d"]}, None),
        ({"properties": {"e": {"type": ["null"]}}, "required": ["e"]}, {"e": None}),
        ({"properties": {"e": {"type": "null"}}, "required": ["e"]}, {"e": None}),
        ({"properties": {"d": {"properties": {"x": {}}}}, "required": ["d"]}, {"d": {}}),
        ({"properties": {"d": True}, "required": ["d"]}, {"d": "text"}),
        ({"dependentRequired": {"a": ["b"]}, "minProperties": 3}, None),
        ({"properties": {"a": {}}, "if": True, "then": {"required": ["a"]}}, {"a": "text"}),
    ],
)  # fmt: skip
def test_an_example_is_made_where_one_can_be(schema, example):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, **schema}
    made = tool_of(ship, input_schema=schema)

    shown = json.loads(made.arguments._example)

    assert accepts(schema, shown)
    assert example in (None, shown)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "string", "pattern": "^[0-9]{5}$"}}, "required": ["a"]},
        {"properties": {"a": {"type": "string", "minLength": 2.0}}, "required": ["a"]},
        {"properties": {"a": False}, "required": ["a"]},
        {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"properties": {"a": {"const": "x" * 500}}, "required": ["a"]},
        {"properties": {"a": {"type": "number", "minimum": 1e308, "multipleOf": 0.1}},
         "required": ["a"]},
        {"required": ["a"], "propertyNames": {"maxLength": 0}},
    ],
)  # fmt: skip
def test_a_refusal_without_an_example_still_says_what_is_wrong(schema):
    made = tool_of(ship, input_schema={"type": "object", **schema})

    said = refusal(made, {})

    assert '"a" is a required property' in said
    assert "A valid call" not in said


def takes_nothing(request: HttpRequest) -> None: ...
def takes_two(a: dict[str, Any], b: dict[str, Any]) -> None: ...
def takes_text(a: str) -> None: ...
def takes_anything(a: object) -> None: ...
def takes_list(a: list[dict[str, Any]]) -> None: ...


OBJECT = {"type": "object"}
NO_OBJECT = 'needs "type": "object"'


@pytest.mark.parametrize(
    ("function", "schema", "message"),
    [
        (takes_nothing, OBJECT, "exactly one parameter"),
        (takes_two, OBJECT, "exactly one parameter"),
        (takes_text, OBJECT, r"Annotate it so: a: dict\[str, Any\]"),
        (takes_anything, OBJECT, "Annotate it so"),
        (takes_list, OBJECT, "Annotate it so"),
        (ship, {}, NO_OBJECT),
        (ship, {"type": "array"}, NO_OBJECT),
        (ship, {"type": ["object"]}, NO_OBJECT),
        (ship, {"$ref": "#/$defs/a", "$defs": {"a": OBJECT}}, NO_OBJECT),
        (ship, {"type": "objekt"}, "The input_schema of the tool 'ship' is not valid"),
    ],
)
def test_a_function_or_a_schema_that_takes_no_object_is_refused(function, schema, message):
    with pytest.raises(ImproperlyConfigured, match=message):
        tool_of(function, input_schema=schema)


def test_a_schema_that_is_changed_later_changes_nothing():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    made = tool_of(ship, input_schema=schema)

    schema["properties"]["a"]["type"] = "string"

    assert "integer" in refusal(made, {"a": "x"})


# Results

TOTAL = {
    "type": "object",
    "properties": {"total": {"type": "string"}, "when": {"format": "date"}},
    "required": ["total"],
}


def giving(value, **options):
    def give() -> Any:
        """Give something."""
        return value

    return tool_of(give, **options)


@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (TOTAL, {"total": Decimal("1.50")}, {"total": "1.50"}),
        (TOTAL, mcp.ToolResult(structured={"total": _("Yes")}), {"total": "Yes"}),
        (TREE, {"root": tree(5, "and")}, {"root": tree(5, "and")}),
        ({"type": "array", "items": {"type": "integer"}}, (1, 2), [1, 2]),
        ({"type": "null"}, None, None),
    ],
)
def test_a_result_that_fits_its_schema_is_structured(schema, value, data):
    made = giving(value, output_schema=schema)

    result = call(made)

    assert made.definition.output_schema == schema
    assert data_of(result) == data == json.loads(text_of(result))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"total": 1},
        {"total": "1", "when": "soon"},
        None,
        "text",
        [],
        mcp.ToolResult(structured={"total": 1}),
        mcp.ToolResult(),
    ],
)
def test_a_result_that_does_not_is_a_mistake_of_the_function(value):
    with pytest.raises(TypeError, match="promises what its output_schema says"):
        call(giving(value, output_schema=TOTAL))


def test_an_async_function_takes_and_returns_the_same():
    async def later(arguments: dict[str, Any]) -> Any:
        """Answer later."""

    made = tool_of(later, input_schema=SHIP, output_schema=TOTAL)

    pending = call(made, {"number": "A-1", "lines": [{"sku": "x", "amount": 2}]})

    assert isinstance(pending, PendingCall)
    assert data_of(pending.finish({"total": "1"})) == {"total": "1"}
    pending.awaitable.close()


# On the wire


@pytest.mark.django_db
def test_clients_of_every_revision_are_told_and_answered(staff, add_tool, revision):
    def choose(arguments: dict[str, Any]) -> Any:
        """Choose."""
        return list(arguments)

    add_tool(choose, input_schema=CONDITIONAL, output_schema={"type": "array"})
    client = CheckedClient(user=staff, revision=revision)

    (told,) = [one for one in client.list_tools() if one["name"] == "choose"]
    answer = client.call_tool("choose", a="x", b={"city": "Paris"})
    refused = client.call_tool("choose", a="x")

    choice = {"type": "string", "enum": ["x", "y"]}
    properties = {**CONDITIONAL["properties"], "a": choice}
    assert told["inputSchema"] == {**CONDITIONAL, "properties": properties}
    # Only the newest revision has structured results that are no objects.
    is_newest = revision is list(Revision)[-1]
    assert ("outputSchema" in told) is is_newest
    assert json.loads(answer.text) == ["a", "b"]
    assert answer.structured == (["a", "b"] if is_newest else None)
    assert refused.is_error
    assert "A valid call: choose" in refused.text


@pytest.mark.django_db
def test_a_broken_promise_is_an_internal_error_that_tells_nothing(client, add_tool, caplog):
    def leak(arguments: dict[str, Any]) -> Any:
        """Break a promise."""
        return {"total": 5, "secret": "canary"}

    add_tool(leak, input_schema={"type": "object"}, output_schema=TOTAL)

    answer = client.post_request("tools/call", {"name": "leak", "arguments": {}})

    assert answer.messages[0]["error"]["code"] == -32603
    assert b"canary" not in answer.body
    assert "promises what its output_schema says" in caplog.text

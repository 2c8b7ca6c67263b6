from __future__ import annotations

import json
import re
import socket
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from hypothesis import given
from hypothesis import strategies as st

import mcp_django as mcp
from mcp_django.exposure.functions.json_schemas import inlined
from mcp_django.exposure.functions.site_schemas import DIALECT, RawSchema, example_of, never_fetch
from mcp_django.protocol.revisions import Revision
from tests.exposure.function_tools import accepts, call, data_of, giving, refusal, text_of, tool_of
from tests.spec import requirement


def made(schema):
    return RawSchema(schema, what="The schema of the test")


def why(schema):
    with pytest.raises(ImproperlyConfigured, match=r"^The schema of the test .*\.$") as caught:
        made(schema)
    return str(caught.value)


# Which schemas are taken

CONDITIONAL = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object"}},
    "properties": {"b": {"$ref": "#addressDef"}, "a": {"enum": ["x", "y"]}},
    "allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}],
    "if": {"properties": {"a": {"const": "x"}}, "required": ["a"]},
    "then": {"required": ["b"]},
    "else": {"not": {"required": ["b"]}},
    "additionalProperties": False,
    "x-mine": {"kept": [1, None]},
}


@requirement("schemas:dialect")
@pytest.mark.parametrize(
    "dialect",
    [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://shop.example.com/schema",
        "",
        7,
    ],
)
def test_one_dialect_is_taken_and_another_is_refused_by_name(dialect):
    assert made({"$schema": f"{DIALECT}#"}).fault(1) is None
    for schema in ({"$schema": dialect}, {"properties": {"a": {"$schema": dialect}}}):
        sentence = why(schema)
        assert f"is written in {str(dialect)!r}" in sentence
        assert DIALECT in sentence


def nested(depth):
    return {"not": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "must be a dict"),
        (nested(65), "deeper than 64"),
        ({"type": "strin"}, "is not valid at #/type"),
        ({"pattern": "("}, 'The value is not a "regex"'),
        ({"properties": {"a": {"pattern": "("}}}, "is not valid at #/properties/a"),
        ({"$id": "http://[bad"}, "Invalid URI reference 'http://[bad'"),
        ({"minimum": float("nan")}, "is not JSON"),
        ({"const": object()}, "is not JSON"),
        ({"title": _("Yes")}, "is not JSON"),
        ({"items": {"$id": "https://shop.example.com/a"}}, "an $id of its own, at #/items"),
    ],
)
def test_a_schema_that_cannot_be_relied_on_is_refused_with_the_reason(schema, reason):
    assert reason in why(schema)


@requirement("schemas:references")
@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("https://shop.example.com/a.json", "'https://shop.example.com/a.json' is not present"),
        ("order.json#/$defs/a", "order.json"),
        ("file:///etc/passwd", "'file:///etc/passwd' is not present"),
        ("#/$defs/b", "Pointer '/$defs/b' does not exist"),
        ("#nowhere", "Anchor 'nowhere' does not exist"),
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_reference_that_leads_to_nothing_is_refused(keyword, reference, reason):
    sentence = why({"properties": {"a": {"allOf": [{keyword: reference}]}}})

    assert "has a reference that leads to nothing in it" in sentence
    assert reason in sentence


@pytest.mark.parametrize(
    "reference",
    ["#", "#/$defs/a~1b~0c%20d", "#here", "#there", "https://shop.example.com/order#here"],
)
def test_references_within_the_schema_are_followed(reference):
    keyword = "$dynamicRef" if reference == "#there" else "$ref"
    schema = {
        "$id": "https://shop.example.com/order",
        "type": "object",
        "properties": {"x": {keyword: reference}},
        "$defs": {
            "a/b~c d": {"type": "object"},
            "e": {"$anchor": "here", "$dynamicAnchor": "there", "type": "object"},
        },
    }

    assert made(schema).fault({"x": {}}) is None
    assert made(schema).fault({"x": 1})


@requirement("schemas:references")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#", "unevaluatedProperties": False},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 6}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_schema_that_refers_to_itself_alone_says_nothing(schema):
    assert made(schema).fault({}) is None


@requirement("schemas:references")
def test_no_schema_opens_a_connection(monkeypatch):
    opened = []

    def connect(*args):
        opened.append(args)
        raise OSError

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)

    for keyword in ("$ref", "$dynamicRef", "$schema", "$id"):
        schema = {"properties": {"a": {keyword: "http://127.0.0.1:9/schema.json"}}}
        assert why(schema)
    made({"$id": "http://127.0.0.1:9/schema.json", "$vocabulary": {"http://127.0.0.1:9/v": True}})

    with pytest.raises(ValueError, match="nothing is fetched"):
        never_fetch("http://127.0.0.1:9/schema.json")
    assert opened == []


# What is wrong with a value


@pytest.mark.parametrize("value", ["x" * 100_000, ["x" * 100_000], {"x" * 100_000: 1}, 10**300])
def test_a_fault_is_short_whatever_the_value(value):
    schema = {
        "properties": {"a": {"enum": [1]}},
        "propertyNames": {"maxLength": 3},
        "additionalProperties": False,
    }

    for one in ({"a": value}, {"x" * 100_000: value}, value):
        fault = made(schema).fault({"a": 2} if one == value else one)
        assert fault is not None
        assert len(fault) < 1100


def test_numbers_and_nesting_without_an_end_are_refused_and_a_mistake_in_much_is_named():
    schema = made({"items": {"$ref": "#"}})
    deep: list = reduce(lambda inner, _: [inner], range(350), [])
    for value in (10**4000, float("inf"), deep):
        assert schema.fault(value) == "Too deeply nested, or a number out of range"

    large = made({"additionalProperties": {"type": "integer"}})
    values = {f"a{i}": i for i in range(20_000)}
    assert large.fault(values) is None
    assert large.fault({**values, "a7": "x"}).startswith("Argument a7")


#: A tree has an operator at each node, and its branches are of the same kind.
TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#node"}},
    "required": ["root"],
    "$defs": {
        "node": {
            "$anchor": "node",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "op": {"const": operator},
                        "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    },
                    "required": ["op"],
                }
                for operator in ("and", "or", "nor", "xor")
            ],
        }
    },
}


def tree(depth, leaf):
    return {"op": "or", "nodes": [tree(depth - 1, leaf)]} if depth else {"op": leaf}


@requirement("schemas:references")
def test_a_schema_that_refers_to_itself_from_several_alternatives_works():
    schema = made(TREE)

    for depth in (1, 8, 30):
        assert schema.fault({"root": tree(depth, "and")}) is None
    assert schema.fault({"root": tree(1, "not")}).startswith("Argument root: The value is not")
    # Each level is explained four times as often as the one before.
    for depth in (8, 30):
        assert "too much to say what" in schema.fault({"root": tree(depth, "not")})
    assert example_of(schema) == '{"root":{"op":"and"}}'


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.deferred(
    lambda: (
        SCALARS
        | st.lists(JSON, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "b", "type", "$ref"]) | st.text(), JSON, max_size=3
        )
    )
)


@given(value=JSON)
def test_any_value_fits_or_has_a_fault_in_words(value):
    fault = made(CONDITIONAL).fault(value)

    assert fault is None or (0 < len(fault) < 1100)


@given(schema=st.dictionaries(
    st.sampled_from([*CONDITIONAL, "items", "$ref", "$id", "not", "pattern", "prefixItems"]), JSON
))  # fmt: skip
def test_any_schema_is_compiled_or_refused(schema):
    try:
        compiled = made(schema)
    except ImproperlyConfigured:
        return
    assert compiled.schema == schema


# Tools with such schemas

SHIP = {
    "type": "object",
    "properties": {
        "number": {"type": "string", "pattern": "^A-[0-9]+$", "examples": ["A-1"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1},
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


FOUND = [{"sku": "x", "amount": 2}]
DEEP = {"properties": {"a": {"items": {"properties": {"b": {"type": "integer"}}}}}}
EITHER = {"anyOf": [{"required": ["phone"]}, {"required": ["mail"]}]}
ONLY_A = {"properties": {"a": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "arguments", "sentence"),
    [
        (SHIP, {"lines": FOUND}, 'Arguments: "number" is a required property.'),
        (SHIP, {"number": "A-1", "lines": []}, "Argument lines: The value has less than 1 item."),
        (SHIP, {"number": "B-1", "lines": FOUND}, "Argument number: The value"),
        *(
            (SHIP, {"number": "A-1", "lines": [{"sku": "x", **more}]}, f"Argument lines[0]{said}")
            for more, said in (({"amount": 1}, ".amount:"), ({}, ': "amount" is a required'))
        ),
        (
            DEEP,
            {"a": [{}, {"b": "x"}]},
            "Argument a[1].b: The value is not of type \"integer\": 'x'",
        ),
        (EITHER, {}, '("phone" is a required property; or "mail" is a required property)'),
        (ONLY_A, {"é\n": 1}, "('\\xe9 ' was unexpected)"),
        ({"properties": {"a": {"enum": ["x"]}}}, {"a": True}, ": true"),
        ({"properties": {"a": {"pattern": "^(?=(a+)+b)a"}}}, {"a": "a" * 500}, "match"),
    ],
)
def test_a_refusal_names_the_place_and_shows_a_call_that_works(schema, arguments, sentence):
    made = tool_of(ship, input_schema={"type": "object", **schema})

    said = refusal(call, made, arguments)

    shown = re.search(r" A valid call: ship (\{.*\})$", said)
    assert sentence in said
    assert said.isascii()
    assert "\n" not in said
    assert accepts(schema, json.loads(shown[1]))
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
        *(
            ({"properties": {"d": schema}, "required": ["d"]}, {"d": value})
            for schema, value in [
                ({"type": "integer", "default": 7}, 7),
                ({"type": "string", "description": "Such as 14:30:00."}, "14:30:00"),
                ({"type": "integer", "minimum": 10, "multipleOf": 7}, 14),
                ({"type": "integer", "exclusiveMaximum": 1}, 0),
            ]
        ),
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


#: Each of many members is of its own kind.
ENDLESS = {
    "properties": {name: {"anyOf": [{"$ref": "#"}, {"type": "null"}]} for name in "abcdefgh"},
    "required": [*"abcdefgh"],
}


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
        ENDLESS,
    ],
)  # fmt: skip
def test_a_refusal_without_an_example_still_says_what_is_wrong(schema):
    made = tool_of(ship, input_schema={"type": "object", **schema})

    said = refusal(call, made, {})

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
        *((function, OBJECT, "exactly one parameter") for function in (takes_nothing, takes_two)),
        (takes_text, OBJECT, r"Annotate it so: a: dict\[str, Any\]"),
        *((function, OBJECT, "Annotate it so") for function in (takes_anything, takes_list)),
        *((ship, schema, NO_OBJECT) for schema in ({}, {"type": "array"}, {"type": ["object"]})),
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

    assert "integer" in refusal(call, made, {"a": "x"})


@pytest.mark.parametrize(("others", "given"), [(True, {"action": 1}), (False, {})])
def test_a_name_that_clients_add_reaches_a_function_that_takes_any(others, given):
    made = tool_of(ship, input_schema={"type": "object", "additionalProperties": others})

    assert json.loads(text_of(call(made, {"action": 1}))) == [True, given]


def test_references_that_lead_too_far_are_told_as_they_are():
    chain = {f"a{at}": {"not": {"$ref": f"#/$defs/a{at + 1}"}} for at in range(400)}
    schema = {"type": "object", "$defs": {**chain, "a400": {}}, "not": {"$ref": "#/$defs/a0"}}

    assert inlined(schema) is schema


# Results

TOTAL = {
    "type": "object",
    "properties": {"total": {"type": "string"}, "when": {"format": "date"}},
    "required": ["total"],
}


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
        *({}, {"total": 1}, {"total": "1", "when": "soon"}, None, "text", []),
        *(mcp.ToolResult(structured={"total": 1}), mcp.ToolResult()),
    ],
)
def test_a_result_that_does_not_is_a_mistake_of_the_function(value):
    with pytest.raises(TypeError, match="promises what its output_schema says"):
        call(giving(value, output_schema=TOTAL))


# On the wire


@pytest.mark.django_db
def test_clients_of_every_revision_are_told_and_answered(client, add_tool, revision):
    def choose(arguments: dict[str, Any]) -> Any:
        """Choose."""
        return list(arguments)

    add_tool(choose, input_schema=CONDITIONAL, output_schema={"type": "array"})

    told = client.tools()["choose"]
    answer = client.call_tool("choose", a="x", b={"city": "Paris"})
    refused = client.call_tool("choose", a="x")

    choice = {"type": "string", "enum": ["x", "y"]}
    properties = {**CONDITIONAL["properties"], "a": choice}
    address = {**CONDITIONAL["$defs"]["address"], "additionalProperties": True}
    assert told["inputSchema"] == {
        **CONDITIONAL,
        "properties": properties,
        "$defs": {"address": address},
        "required": [],
    }
    # Only the newest revision has structured results that are no objects.
    is_newest = revision is list(Revision)[-1]
    assert ("outputSchema" in told) is is_newest
    assert json.loads(answer.text) == ["a", "b"]
    assert answer.structured == (["a", "b"] if is_newest else None)
    assert refused.is_error
    assert "A valid call: choose" in refused.text

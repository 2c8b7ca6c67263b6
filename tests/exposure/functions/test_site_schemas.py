from __future__ import annotations

import socket

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.functions.site_schemas import (
    DIALECT,
    RawSchema,
    example_of,
    never_fetch,
)
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
    assert made({"$schema": f"{DIALECT}#"}).accepts(1)
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
        ({"properties": {"a": {"minLength": -1}}}, "is not valid at #/properties/a/minLength"),
        ({"properties": []}, "is not valid at #/properties"),
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

    assert made(schema).accepts({"x": {}})
    assert not made(schema).accepts({"x": 1})


@requirement("schemas:references")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#", "unevaluatedProperties": False},
        {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 6}}},
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        },
    ],
)
def test_a_schema_that_refers_to_itself_alone_says_nothing(schema):
    assert made(schema).accepts({})


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


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"required": ["a"]}, {}, 'Arguments: "a" is a required property'),
        ({"type": "object"}, 5, 'Arguments: The value is not of type "object": 5'),
        (
            {"properties": {"a": {"items": {"properties": {"b": {"type": "integer"}}}}}},
            {"a": [{}, {"b": "x"}]},
            "Argument a[1].b: The value is not of type \"integer\": 'x'",
        ),
        ({"properties": {"a": {"format": "date"}}}, {"a": "soon"}, "is not a \"date\": 'soon'"),
        ({"properties": {"a": {"minimum": 3}}}, {"a": 2}, "less than the minimum of 3: 2"),
        (
            {"anyOf": [{"required": ["phone"]}, {"required": ["mail"]}]},
            {},
            '("phone" is a required property; or "mail" is a required property)',
        ),
        ({"additionalProperties": False}, {"a": 1}, "Arguments: No such member is allowed"),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"é\n": 1},
            "('\\xe9 ' was unexpected)",
        ),
        ({"properties": {"a": {"enum": ["x"]}}}, {"a": None}, ": null"),
        ({"properties": {"a": {"type": "null"}}}, {"a": {}}, 'The value is not of type "null"'),
        (
            {"properties": {"a": {"oneOf": [{"type": "null"}, {"minLength": 2}]}}},
            {"a": "x"},
            "Argument a: The value is not valid under any of the schemas",
        ),
        ({"properties": {"a": {"pattern": "^(?=(a+)+b)a"}}}, {"a": "a" * 500}, "match"),
    ],
)
def test_a_fault_names_the_place_and_what_is_wrong(schema, value, sentence):
    fault = made(schema).fault(value)

    assert sentence in fault
    assert fault.isascii()
    assert "\n" not in fault


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


def test_numbers_and_nesting_without_an_end_are_refused():
    deep: list = []
    for _level in range(350):
        deep = [deep]

    schema = made({"items": {"$ref": "#"}})

    for value in (10**4000, float("inf"), deep):
        assert schema.fault(value) == "Too deeply nested, or a number out of range"


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


def test_no_example_is_made_of_a_schema_without_an_end():
    members = {name: {"anyOf": [{"$ref": "#"}, {"type": "null"}]} for name in "abcdefgh"}

    assert example_of(made({"properties": members, "required": [*members]})) == ""


def test_a_mistake_in_a_large_object_is_named():
    schema = made({"additionalProperties": {"type": "integer"}})
    values = {f"a{i}": i for i in range(20_000)}

    assert schema.fault(values) is None
    assert schema.fault({**values, "a7": "x"}).startswith("Argument a7")


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

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.functions.json_schemas import for_clients, subschemas


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        (
            {"title": "A", "type": ["string", "null"], "maxLength": 3, "default": None},
            {
                "title": "A",
                "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}],
                "default": None,
            },
        ),
    ],
)
def test_clients_are_told_one_type_at_a_time_and_the_items_of_arrays(written, told):
    schema = {"type": "object", "properties": {"a": written}}

    assert for_clients(schema) == {"type": "object", "properties": {"a": told}}


def test_clients_are_told_of_an_object_without_members_that_it_has_none():
    told = for_clients({"type": "object", "additionalProperties": False})

    assert list(told.items()) == [
        ("type", "object"),
        ("properties", {}),
        ("additionalProperties", False),
    ]


def test_a_schema_that_points_into_itself_is_told_as_it_is():
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["array", "null"], "items": {"type": "integer"}},
            "b": {"$ref": "#/properties/a/items"},
        },
    }

    assert for_clients(schema) == schema


TYPES = ["string", "number", "integer", "boolean", "null", "array", "object"]
KEYWORDS = st.fixed_dictionaries(
    {"type": st.lists(st.sampled_from(TYPES), min_size=1, max_size=4, unique=True)},
    optional={
        "minLength": st.integers(0, 2),
        "format": st.sampled_from(["date", "uuid"]),
        "maximum": st.integers(-1, 2),
        "items": st.just({"type": ["integer", "null"]}),
        "minItems": st.integers(0, 2),
        "properties": st.just({"a": {"type": ["string", "null"]}}),
        "additionalProperties": st.just(False),
        "required": st.just(["a"]),
        "enum": st.just(["", 1, None]),
        "anyOf": st.just([{"minLength": 1}, {"type": "null"}]),
        "unevaluatedProperties": st.just(False),
    },
)
LEAVES = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "ab", 0.5])
VALUES = LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.sampled_from("ab"), LEAVES)


@given(KEYWORDS, VALUES)
def test_what_clients_are_told_allows_what_the_schema_allows(schema, value):
    told = for_clients({"type": "object", "properties": {"a": schema}})["properties"]["a"]

    assert not any(isinstance(inner.get("type"), list) for _, inner in subschemas(told))
    assert jsonschema_rs.is_valid(told, value, validate_formats=True) == jsonschema_rs.is_valid(
        schema, value, validate_formats=True
    )

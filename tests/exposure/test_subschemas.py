from __future__ import annotations

from mcp_django.exposure.subschemas import subschemas


def pointers(schema):
    return ["/".join(one.pointer) for one in subschemas(schema)]


def test_every_place_of_a_schema_is_found_in_order():
    schema = {
        "$defs": {"a": True},
        "properties": {"x": {"items": {"type": "string"}}, "items": False},
        "allOf": [{"not": {}}, {"dependentSchemas": {"x": {"prefixItems": [{}, {}]}}}],
        "definitions": {"b": {}},
    }

    assert pointers(schema) == [
        "",
        "$defs/a",
        "properties/x",
        "properties/x/items",
        "properties/items",
        "allOf/0",
        "allOf/0/not",
        "allOf/1",
        "allOf/1/dependentSchemas/x",
        "allOf/1/dependentSchemas/x/prefixItems/0",
        "allOf/1/dependentSchemas/x/prefixItems/1",
        "definitions/b",
    ]


def test_data_that_looks_like_a_schema_is_none():
    data = {"properties": {"x": {}}}

    assert pointers({"const": data, "enum": [data], "default": data, "examples": [data]}) == [""]


def test_what_is_no_schema_where_one_belongs_is_left_out():
    assert pointers({"allOf": {"x": {}}, "properties": [{}], "not": 1, "anyOf": [3]}) == [""]

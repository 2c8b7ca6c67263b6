from __future__ import annotations

import pytest

from mcp_django.exposure.functions.site_schemas import ENDLESS, BadReference, SchemaWork
from tests.spec import requirement

HERE = {"$ref": "#/$defs/e"}


def work_of(schema, *, deepest=20):
    return SchemaWork(schema, deepest=deepest)


def nested(depth):
    return {"of": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("schema", "per_value"),
    [
        ({}, [1, 0, 0]),
        ({"properties": {"a": {}, "b": {"items": {}}}}, [1, 1, 1]),
        ({"properties": {"a": {}}, "patternProperties": {"a": {}, "b": {}}}, [1, 3, 0]),
        ({"additionalProperties": {}, "propertyNames": {}}, [1, 2, 0]),
        ({"prefixItems": [{}, {"not": {}}], "items": {}, "contains": {}}, [1, 4, 0]),
        ({"allOf": [{}, {"if": {}, "then": {}}], "dependentSchemas": {"a": {}}}, [6, 0, 0]),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {}, "b": {}}}]}, [3, 2, 0]),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, [3, 1, 0]),
        ({"unevaluatedProperties": {"not": {}}, "allOf": [{}]}, [3, 2, 0]),
        ({"properties": {"a": HERE}, "$defs": {"e": {"items": HERE}}}, [1, 2, 2]),
    ],
)
def test_schemas_are_counted_by_the_level_of_the_value(schema, per_value):
    assert work_of(schema, deepest=2).per_value == per_value


def test_two_alternatives_that_lead_back_double_with_each_level():
    inner = {"properties": {"of": HERE}}
    schema = {"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": [inner, inner]}}}

    per_value = work_of(schema, deepest=60).per_value

    assert per_value[:4] == [4, 8, 16, 32]
    assert per_value[-1] == ENDLESS
    assert work_of(schema).of(nested(10)) == 4 * (2**11 - 1)


def test_alternatives_about_different_members_do_not_double():
    alternatives = [{"properties": {name: HERE}} for name in ("and", "or", "not")]
    schema = {"$ref": "#/$defs/e", "$defs": {"e": {"anyOf": alternatives}}}

    assert work_of(schema, deepest=40).per_value[40] == 5


def test_long_texts_weigh_more_and_members_of_all_kinds_count():
    work = work_of({"properties": {"a": {"items": {}}}})

    assert work.of({"a": [1, 2, 3]}) == 5
    assert work.of({"a": ("x" * 2560,)}) == 13
    assert work.of([[[[]]]]) == 3


@pytest.mark.parametrize(
    "reference",
    ["#", "#/$defs/a~1b~0c%20d", "#here", "#there", "https://shop.example.com/order#here"],
)
def test_references_within_the_schema_are_followed(reference):
    keyword = "$dynamicRef" if reference == "#there" else "$ref"
    schema = {
        "$id": "https://shop.example.com/order",
        "properties": {"x": {keyword: reference}},
        "$defs": {"a/b~c d": {"not": {}}, "e": {"$anchor": "here", "$dynamicAnchor": "there"}},
    }

    assert work_of(schema, deepest=1).per_value[1] >= 2


@requirement("schemas:references")
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("https://shop.example.com/order.json", "leads out of the schema"),
        ("order.json#/$defs/a", "leads out of the schema"),
        ("file:///etc/passwd", "leads out of the schema"),
        ("#/$defs/b", "leads to no schema"),
        ("#/$defs", "leads to no schema"),
        ("#nowhere", "leads to no schema"),
        ("#/$defs/a", "refers to itself"),
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_other_references_are_refused_and_nothing_is_fetched(keyword, reference, message):
    schema = {"$defs": {"a": {"allOf": [{keyword: reference}]}}}

    with pytest.raises(BadReference, match=message):
        work_of(schema)


def test_two_anchors_of_one_name_are_refused():
    schema = {"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}}

    with pytest.raises(BadReference, match="two anchors called 'x'"):
        work_of(schema)

from __future__ import annotations

import pytest

from mcp_django.admin.inspect.try_forms import ArgumentsForm


def schema(required=(), defs=None, **properties):
    found = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {**found, "$defs": defs} if defs else found


def arguments(given, **texts):
    """What a form with these texts sends."""
    form = ArgumentsForm(given, {f"argument_{name}": text for name, text in texts.items()})
    assert form.is_valid(), form.errors
    return form.arguments


def mistakes(given, **texts):
    form = ArgumentsForm(given, {f"argument_{name}": text for name, text in texts.items()})
    assert not form.is_valid()
    return {name: list(errors) for name, errors in form.errors.items()}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ({"type": "string"}, " a b ", " a b "),
        ({"type": "string"}, "5", "5"),
        ({"type": "string", "maxLength": 500}, "a\nb", "a\nb"),
        ({"type": "string", "format": "date"}, "2026-11-20", "2026-11-20"),
        ({"type": "integer"}, "12345678901234567", 12345678901234567),
        ({"type": "integer"}, " 5 ", 5),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": ["number", "null"]}, "-1e3", -1000.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "false", False),
        ({"enum": ["a", 1]}, "1", 1),
        ({"enum": ["a", "1"]}, '"1"', "1"),
        ({"const": "only"}, '"only"', "only"),
        ({"oneOf": [{"const": 1, "title": "One"}, {"const": 2}]}, "2", 2),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "x", "x"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5", 5),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, '"5"', "5"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "A-5", "A-5"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/nothing"}]}, '{"a": 1}', {"a": 1}),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', ["a"]),
        ({"type": "array", "items": {"type": "string"}}, "a, b,", ["a", "b"]),
        (
            {"type": "array", "items": {"type": "string"}},
            "Olsen, Sofia\r\n\r\nx",
            ["Olsen, Sofia", "x"],
        ),
        ({"type": "array", "items": {"type": "string"}}, "5", ["5"]),
        ({"type": "array", "items": {"type": "integer"}}, "1\n2", [1, 2]),
        ({"type": "array", "items": {"type": "number"}}, "1.5, 2", [1.5, 2]),
        ({"type": "array", "items": {"type": "object"}}, '[{"a": 1}]', [{"a": 1}]),
        ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}),
        ({}, "null", None),
        (True, "[1]", [1]),
    ],
    ids=str,
)
def test_a_text_becomes_the_value_that_the_schema_means(kind, text, value):
    assert arguments(schema(one=kind), one=text) == {"one": value}


def test_what_is_empty_is_not_sent():
    kinds = {"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "object"}}

    assert arguments(schema(**kinds), a="", b="", c="") == {}


def test_what_is_required_must_be_there():
    assert mistakes(schema(["a"], a={"type": "string"})) == {"a": ["This field is required."]}


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        ({"type": "integer"}, "many", "Write a number."),
        ({"type": "integer"}, "true", "Write a number."),
        ({"type": "integer"}, '"5"', "Write a number."),
        ({"type": "number"}, "NaN", "Write a number."),
        ({"type": "object"}, "{a: 1}", "This is not valid JSON."),
        ({"type": "object"}, '{"a": 1, "a": 2}', "An object has the same key twice."),
        ({"type": "array"}, "[" * 100 + "]" * 100, "nested deeper"),
        ({"type": "boolean"}, "maybe", "not one of the available choices"),
        ({"enum": ["a"]}, '"b"', "not one of the available choices"),
    ],
    ids=str,
)
def test_a_text_that_is_none_is_refused_at_its_field(kind, text, sentence):
    [error] = mistakes(schema(one=kind), one=text)["one"]

    assert sentence in error


def test_references_are_followed_inside_the_schema():
    kinds = {
        "a": {"$ref": "#/$defs/state"},
        "b": {"anyOf": [{"$ref": "#/$defs/deep~1er"}, {"type": "null"}]},
    }
    defs = {"state": {"enum": ["new", "old"]}, "deep/er": {"$ref": "#/$defs/state"}}
    found = schema(defs=defs, **kinds)

    assert arguments(found, a='"new"', b='"old"') == {"a": "new", "b": "old"}


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/a", "https://example.com/schema", "#/nowhere/at/all", 5, "#/properties/one/type"],
)
def test_references_in_circles_and_to_elsewhere_mean_any_json(reference):
    found = schema(defs={"a": {"$ref": "#/$defs/a"}}, one={"$ref": reference})

    assert arguments(found, one="[1]") == {"one": [1]}


@pytest.mark.parametrize(
    "root",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
        {"$ref": "#/$defs/x"},
        {},
    ],
)
def test_a_schema_that_is_no_list_of_members_takes_all_arguments_as_json(root):
    assert arguments(root, arguments='{"a": 1}') == {"a": 1}
    assert arguments(root, arguments="") == {}
    assert mistakes(root, arguments="[1]") == {"arguments": ["Write a JSON object, such as {}."]}


def test_a_member_called_arguments_is_a_member():
    found = schema(arguments={"type": "object"}, other={"type": "string"})

    assert arguments(found, arguments='{"a": 1}') == {"arguments": {"a": 1}}


def test_titles_descriptions_and_defaults_are_told():
    kind = {"type": "integer", "title": "How many", "description": "At most 5.", "default": 3}
    form = ArgumentsForm(schema(n=kind))

    field = form.fields["n"]
    assert field.label == "How many"
    assert field.help_text == "At most 5. Without it: 3."


def test_names_of_members_cannot_be_those_of_the_page():
    found = schema(csrfmiddlewaretoken={"type": "string"}, tool={"type": "string"})
    form = ArgumentsForm(found)

    assert {field.html_name for field in form} == {
        "argument_csrfmiddlewaretoken",
        "argument_tool",
        "argument_confirmation",
    }


def test_a_confirmation_is_no_field_that_anybody_fills_in():
    form = ArgumentsForm(schema(confirmation={"type": "string"}))

    assert form.visible_fields() == []
    assert arguments(schema(confirmation={"type": "string"}), confirmation="abc") == {
        "confirmation": "abc"
    }


def test_the_model_is_one_of_those_that_the_person_may_see():
    given = schema(required=["model"], model={"type": "string", "description": "Which."})

    form = ArgumentsForm(given, {"argument_model": "shop.order"}, models=["shop.order"])
    other = ArgumentsForm(given, {"argument_model": "shop.ledger"}, models=["shop.order"])

    assert form.is_valid()
    assert form.arguments == {"model": "shop.order"}
    assert [value for value, _ in form.fields["model"].choices] == ["", "shop.order"]
    assert form.fields["model"].help_text == "Which."
    assert not other.is_valid()


def test_a_list_of_numbers_takes_no_words():
    assert mistakes(schema(a={"type": "array", "items": {"type": "integer"}}), a="1, x") == {
        "a": ["Write a number."]
    }


def test_an_object_has_an_example_to_follow():
    form = ArgumentsForm(
        schema(a={"type": "object", "examples": [{"status": "paid"}]}, b={"type": "object"})
    )

    placeholders = [form.fields[name].widget.attrs["placeholder"] for name in "ab"]
    assert placeholders == ['{"status": "paid"}', '{"name": "value"}']

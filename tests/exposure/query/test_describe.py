from __future__ import annotations

import json

import msgspec
import pytest

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.query.describe import compacted, describe
from tests.nasty.models import Customer, Odd, Order, Person, Seat, Tag
from tests.nasty.site import EXPOSED, ORDER, REGISTRY, caller, records, registry

pytestmark = pytest.mark.django_db


def of(model, tables=REGISTRY, **rights):
    return describe(caller(tables=tables, **rights), tables.exposures[model])


def field(description, name, kind="fields"):
    (found,) = (one for one in description[kind] if one["name"] == name)
    return found


def test_a_model_is_described_with_its_fields_filters_and_orders():
    found = of(Order)

    assert (found["name"], found["label"], found["primary_key"]) == (
        "nasty.order",
        "order",
        ["id"],
    )
    assert field(found, "number") == {
        "name": "number",
        "type": "text",
        "label": "number",
        "help": "As printed",
        "filter": "text",
        "order": True,
        "group": True,
    }
    assert "startswith" in found["operators"]["text"]
    assert found["operators"]["datetime"][-1] == "date"
    assert field(found, "status")["choices"][0] == {"value": "new", "label": "New"}
    assert field(found, "customer")["relation"] == "nasty.customer"
    assert field(found, "customer")["type"] == "integer"
    assert field(found, "payload")["type"] == "json"
    assert not {"filter", "order"} & set(field(found, "remark"))
    assert field(found, "tags", "more_filters")["relation"] == "nasty.tag"
    assert field(found, "tags", "more_filters")["label"] == "tags"
    assert field(found, "customer__country", "more_filters")["null"] is True
    assert found["search"] == ["number", "customer__name", "tags__slug", "id"]
    assert found["default_order"] == ["id"]
    msgspec.json.encode(found)


@pytest.mark.thorough
def test_every_operator_that_is_described_can_be_used():
    for model in EXPOSED:
        found = of(model)
        paths = [*found["fields"], *found.get("more_filters", [])]
        for one in (one for one in paths if "filter" in one):
            for operator in found["operators"][one["filter"]]:
                wrong = refusal(model, {f"{one['name']}__{operator}": [{"not": "a value"}]})
                assert "has the operators" not in wrong
                assert "cannot be used" not in wrong


def refusal(model, filters):
    with pytest.raises(QueryError) as caught:
        records(caller(), model, filters=filters)
    return str(caught.value)


def test_only_what_the_caller_reaches_is_described():
    found = json.dumps(of(Order, may=lambda perm: "customer" not in perm))

    assert "customer__" not in found
    assert "nasty.customer" not in found
    assert '"customer"' in found
    narrow = of(Order, narrow={Customer: lambda rows: rows.filter(pk=1)})
    names = [one["name"] for one in narrow["more_filters"]]
    assert "customer__name" in names
    assert "region" not in json.dumps(of(Order, tables=registry({Order: {"fields": "number"}})))


@pytest.mark.parametrize("model", list(EXPOSED))
def test_the_example_is_a_call_that_works(model):
    example = of(model)["example"]
    call = example["arguments"]

    assert example["tool"] == "find_records"
    assert call.pop("model") == model._meta.label_lower
    assert records(caller(), model, **call) == []


def test_an_example_can_do_without_filters_and_orders():
    options = {"fields": "slug", "filter_fields": [], "order_fields": []}

    found = of(Tag, tables=registry({Tag: options}))

    assert found["example"]["arguments"] == {"model": "nasty.tag", "limit": 5}


def test_composite_keys_and_unknown_classes_are_described():
    assert of(Seat)["primary_key"] == ["hall", "number"]
    assert of(Seat)["default_order"] == ["hall", "number"]
    assert field(of(Odd), "word")["type"] == "word"
    assert of(Order, tables=registry({Order: {**ORDER, "ordering": ["-total"]}}))[
        "default_order"
    ] == ["-total"]


def test_a_model_that_the_caller_may_not_view_is_not_described():
    with pytest.raises(NotFound):
        of(Person, may=lambda perm: False)


# In few words.


def both(model, tables=REGISTRY):
    """The description in many words, and the one in few."""
    described = of(model, tables)
    return described, compacted(described)


@pytest.mark.parametrize("model", list(EXPOSED))
def test_every_use_is_what_the_rule_and_the_exceptions_say(model):
    long, short = both(model)
    uses = [
        use for use in ("filter", "order", "group") if any(use in one for one in long["fields"])
    ]

    for one in long["fields"]:
        exceptions = field(short, one["name"]).get("not", [])
        assert [use for use in uses if use not in one] == exceptions
    assert ("uses" in short) == bool(uses)


@pytest.mark.parametrize("model", list(EXPOSED))
def test_every_measure_is_what_the_rule_and_the_exceptions_say(model):
    long, short = both(model)
    if not any("group" in one for one in long["fields"]):
        return
    numbers, times = ("integer", "float", "decimal", "duration"), ("date", "datetime", "time")
    usual = {
        **{kind: ["sum", "avg", "min", "max"] for kind in numbers},
        **{kind: ["min", "max"] for kind in times},
    }

    for one in long["fields"]:
        shown = field(short, one["name"])
        assert shown.get("metric", usual.get(shown["type"], [])) == one.get("metric", [])


def test_labels_and_choices_are_said_where_names_and_values_do_not_say_them():
    _, short = both(Order)

    assert field(short, "number") == {"name": "number", "type": "text", "help": "As printed"}
    assert field(short, "status")["choices"] == ["new", "paid", "void"]
    assert field(short, "customer")["type"] == "key"
    assert short["relations"]["customer"] == "nasty.customer"
    assert "operators" not in short
    assert all(isinstance(name, str) for name in short["more_filters"])


def test_choices_with_other_words_keep_their_labels():
    described = {
        "name": "a.b",
        "fields": [
            {"name": "x", "type": "text", "choices": [{"value": "n", "label": "New"}]},
            {"name": "y", "type": "integer", "choices": [{"value": 1, "label": "Minor"}]},
        ],
    }

    first, second = compacted(described)["fields"]

    assert first["choices"] == {"n": "New"}
    assert second["choices"] == [{"value": 1, "label": "Minor"}]


def test_what_can_be_set_is_said_where_the_field_does_not_say_it():
    described = {
        "name": "a.b",
        "fields": [
            {"name": "x", "type": "text", "label": "x", "help": "As printed"},
            {"name": "y", "type": "text", "choices": [{"value": "n", "label": "New"}]},
        ],
        "writing": {
            "create_record": {
                "values": {
                    "type": "object",
                    "properties": {
                        "x": {"title": "X", "description": "As printed", "type": "string"},
                        "y": {"type": "string", "oneOf": [{"const": "n", "title": "New"}]},
                        "z": {"title": "Zone", "type": "string"},
                    },
                    "required": ["x"],
                    "additionalProperties": False,
                }
            },
            "update_record": "As for create_record.",
            "delete_record": True,
        },
    }

    writing = compacted(described)["writing"]

    assert writing["create_record"]["values"] == {
        "properties": {"x": {"type": "string"}, "y": {}, "z": {"title": "Zone", "type": "string"}},
        "required": ["x"],
    }
    assert writing["update_record"] == "As for create_record."
    assert writing["delete_record"] is True


def test_nothing_is_said_of_uses_that_there_are_none_of():
    tables = registry({Tag: {"fields": "slug", "filter_fields": [], "order_fields": []}})
    described = {**of(Tag, tables), "fields": [{"name": "slug", "type": "text"}]}

    assert "uses" not in compacted(described)


def test_what_is_hidden_stays_out_of_few_words_as_well():
    _, short = both(Order, registry({Order: {**ORDER, "fields": "number"}}))

    assert "margin" not in str(short)
    assert "api_token" not in str(short)

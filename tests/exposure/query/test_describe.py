from __future__ import annotations

import json

import msgspec
import pytest

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.query.describe import describe
from tests.nasty.models import Customer, Odd, Order, Person, Seat, Tag
from tests.nasty.site import EXPOSED, ORDER, REGISTRY, caller, records, registry


def of(model, tables=REGISTRY, **rights):
    return describe(caller(tables=tables, **rights), tables.exposures[model])


def field(description, name, kind="fields"):
    (found,) = (one for one in description[kind] if one["name"] == name)
    return found


def test_a_model_is_described_with_its_fields_filters_and_orders(db):
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


def test_every_operator_that_is_described_can_be_used(db):
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


def test_only_what_the_caller_reaches_is_described(db):
    found = json.dumps(of(Order, may=lambda perm: "customer" not in perm))

    assert "customer__" not in found
    assert "nasty.customer" not in found
    assert '"customer"' in found
    narrow = of(Order, narrow={Customer: lambda rows: rows.filter(pk=1)})
    names = [one["name"] for one in narrow["more_filters"]]
    assert "customer__name" in names
    assert "region" not in json.dumps(of(Order, tables=registry({Order: {"fields": "number"}})))


@pytest.mark.parametrize("model", list(EXPOSED))
def test_the_example_is_a_call_that_works(db, model):
    example = of(model)["example"]
    call = example["arguments"]

    assert example["tool"] == "find_records"
    assert call.pop("model") == model._meta.label_lower
    assert records(caller(), model, **call) == []


def test_an_example_can_do_without_filters_and_orders(db):
    options = {"fields": "slug", "filter_fields": [], "order_fields": []}

    found = of(Tag, tables=registry({Tag: options}))

    assert found["example"]["arguments"] == {"model": "nasty.tag", "limit": 5}


def test_composite_keys_and_unknown_classes_are_described(db):
    assert of(Seat)["primary_key"] == ["hall", "number"]
    assert of(Seat)["default_order"] == ["hall", "number"]
    assert field(of(Odd), "word")["type"] == "word"
    assert of(Order, tables=registry({Order: {**ORDER, "ordering": ["-total"]}}))[
        "default_order"
    ] == ["-total"]


def test_a_model_that_the_caller_may_not_view_is_not_described(db):
    with pytest.raises(NotFound):
        of(Person, may=lambda perm: False)

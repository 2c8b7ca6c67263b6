from __future__ import annotations

import msgspec
import pytest

from mcp_django.exposure.query.describe import describe
from tests.nasty.models import Order
from tests.nasty.site import EXPOSED, REGISTRY, caller, records

pytestmark = pytest.mark.django_db


def of(model, tables=REGISTRY, **rights):
    return describe(caller(tables=tables, **rights), tables.exposures[model])


def field(description, name):
    (found,) = (one for one in description["fields"] if one["name"] == name)
    return found


def test_a_model_is_described_with_its_fields_filters_and_orders():
    found = of(Order)

    assert next(iter(found)) == "name"
    assert found["name"] == "nasty.order"
    assert "filtered, ordered and grouped by" in found["uses"]
    assert not {"label", "primary_key", "default_order"} & found.keys()
    assert field(found, "number") == {"name": "number", "type": "text", "help": "As printed"}
    assert field(found, "status")["choices"] == ["new", "paid", "void"]
    assert field(found, "customer")["type"] == "key"
    assert field(found, "payload") == {
        "name": "payload",
        "type": "json",
        "not": ["order", "group"],
    }
    assert {"filter", "order", "group"} <= set(field(found, "remark")["not"])
    assert found["relations"]["customer"] == "nasty.customer"
    assert {"tags", "customer__country"} < set(found["more_filters"])
    assert found["search"] == ["number", "customer__name", "tags__slug", "id"]
    msgspec.json.encode(found)


@pytest.mark.parametrize("model", list(EXPOSED))
def test_the_example_is_a_call_that_works(model):
    example = of(model)["example"]
    call = example["arguments"]

    assert call.pop("model") == model._meta.label_lower
    assert records(caller(), model, **call) == []


# What is said once.


def test_labels_are_said_where_names_do_not_say_them(monkeypatch):
    monkeypatch.setattr(Order._meta, "verbose_name", "purchase")
    monkeypatch.setattr(Order._meta.get_field("number"), "verbose_name", "reference")

    found = of(Order)

    assert found["label"] == "purchase"
    assert field(found, "number")["label"] == "reference"
    assert "label" not in field(found, "status")
    for choices, described in (
        ([("n", "New")], {"n": "New"}),
        ([("very_new", "Very new")], ["very_new"]),
        ([(1, "Minor")], [{"value": 1, "label": "Minor"}]),
    ):
        monkeypatch.setattr(Order._meta.get_field("status"), "choices", choices)
        assert field(of(Order), "status")["choices"] == described

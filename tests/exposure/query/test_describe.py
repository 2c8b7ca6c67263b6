from __future__ import annotations

import msgspec
import pytest

from mcp_django.exposure.paths import FILTER, GROUP, ORDER
from mcp_django.exposure.query.access import allowed_paths
from mcp_django.exposure.query.aggregates import measured
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


RANKED = ["min", "max"]
USUAL = {kind: ["sum", "avg", *RANKED] for kind in ("integer", "float", "decimal", "duration")}
USUAL |= dict.fromkeys(("date", "datetime", "time"), RANKED)


@pytest.mark.parametrize("model", list(EXPOSED))
def test_every_use_is_what_the_rule_and_the_exceptions_say(model):
    access, found = allowed_paths(caller(), REGISTRY.exposures[model]), of(model)
    functions = {path.names: names for path, names in measured(access)}
    words = {FILTER: "filtered", ORDER: "ordered", GROUP: "grouped"}

    for use, word in words.items():
        names = {path.names for path in access.paths[use]}
        for path in access.columns:
            exceptions = field(found, path.text).get("not", [])
            assert (path.names in names) == (word in found["uses"] and use not in exceptions)
    for path in access.columns:
        entry = field(found, path.text)
        # What makes groups can be counted.
        counts = () if "group" in entry.get("not", ()) else ("count", "count_distinct")
        names = [name for name in functions.get(path.names, ()) if name not in counts]
        assert entry.get("metric", USUAL.get(entry["type"], [])) == names


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


def test_what_can_be_set_is_said_where_the_field_does_not_say_it():
    number = {"title": "Number", "description": "As printed", "type": "string"}
    status = {"type": "string", "oneOf": [{"const": value} for value in ("new", "paid", "void")]}
    zone = {"title": "Zone", "type": "string"}
    values = {
        "type": "object",
        "properties": {"number": number, "status": status, "zone": zone},
        "required": ["number"],
        "additionalProperties": False,
    }
    others = {"update_record": {"values": "As for create_record."}, "delete_record": True}
    writing = {"create_record": {"values": values}, **others}

    found = describe(caller(), REGISTRY.exposures[Order], writing=writing)["writing"]

    assert found == {
        "create_record": {
            "values": {
                "properties": {"number": {"type": "string"}, "status": {}, "zone": zone},
                "required": ["number"],
            }
        },
        **others,
    }

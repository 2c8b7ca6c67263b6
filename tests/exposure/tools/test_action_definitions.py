"""The tool of an action is described in at most 720 bytes, whatever the site wrote about it."""

from __future__ import annotations

import re
from types import SimpleNamespace

import msgspec
import pytest
from django.contrib import admin
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.admin_bridge.compat import AdminAction, Place
from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import (
    MOST_BYTES,
    ActionNames,
    action_definition,
    action_names,
)
from mcp_django.protocol.render import tool_definition
from mcp_django.protocol.revisions import Revision
from tests.shop.models import Order


def action(menu="Ship", place=Place.CHANGELIST, doc=None, permissions=("change",), **attributes):
    def function(modeladmin, request, queryset):
        pass

    function.__doc__ = doc
    if permissions is not None:
        function.allowed_permissions = list(permissions)
    for name, value in attributes.items():
        setattr(function, f"mcp_{name}", value)
    return AdminAction(name="ship", function=function, description=menu, place=place)


def size(definition):
    return max(
        len(msgspec.json.encode(tool_definition(definition, revision.features)))
        for revision in Revision
    )


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (action("Ship them"), ("", "Ship them")),
        (action("Ship them", doc="Send parcels.\n\nMore."), ("Ship them", "Send parcels.")),
        (action("Ship", doc="Send."), ("Ship", "Send.")),
        (
            action("Ship", doc="For programmers.", description="For models."),
            ("Ship", "For models."),
        ),
        (
            action("Ship", permissions=None),
            ("", "Ship. Declares no permission: who may view the model may run it."),
        ),
    ],
)
def test_title_and_description_are_those_of_the_menu_and_the_docstring(written, told):
    made = action_definition("shop_order_ship", written)

    assert (made.title, made.description) == told


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (False, True, False)),
        ({"read_only": True}, (True, False, True)),
        ({"destructive": False}, (False, False, False)),
        ({"idempotent": True}, (False, True, True)),
    ],
)
def test_annotations_are_careful_unless_the_site_says_otherwise(given, expected):
    made = action_definition("ship", action(**given)).annotations

    assert (made.read_only, made.destructive, made.idempotent) == expected


def test_each_place_has_its_own_selection():
    properties = {
        place: list(action_definition("ship", action(place=place)).input_schema["properties"])
        for place in Place
    }

    rest = ["answer", "confirmation"]
    key = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    chosen = action_definition("ship", action(place=Place.CHANGELIST)).input_schema
    assert chosen["properties"]["pks"]["items"] == key
    assert properties == {
        Place.CHANGELIST: ["pks", "filters", "exclude", "search", *rest],
        Place.CHANGE_FORM: ["pk", *rest],
        Place.RECORD_BUTTON: ["pk", *rest],
        Place.MODEL_BUTTON: rest,
    }


def test_a_declared_form_is_in_the_schema_where_it_fits():
    small = {"type": "object", "properties": {"carrier": {"type": ["string", "null"]}}}
    large = {"type": "object", "properties": {f"field_{n}": {} for n in range(100)}}

    shown = action_definition("ship", action(), answer=small).input_schema["properties"]
    left_out = action_definition("ship", action(), answer=large).input_schema["properties"]

    # One type at a time.
    carrier = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert shown["answer"] == {**small, "properties": {"carrier": carrier}}
    assert left_out["answer"] == {"type": "object"}


def test_a_declared_form_costs_the_end_of_a_long_description_and_not_all_of_it():
    form = {"type": "object", "properties": {"carrier": {"type": "string"}}}

    made = action_definition("ship", action(doc="Word " * 200), answer=form)

    assert made.input_schema["properties"]["answer"] == form
    assert len(made.description) > 40
    assert made.description.endswith("…")
    assert size(made) < MOST_BYTES


@pytest.mark.parametrize("doc", ["", "x", "Say it. " * 9, "\U0001f600" * 200, '"' * 300])
@pytest.mark.parametrize("title", ["", "\U0001f600" * 50, "\u4f60" * 50, '"' * 50])
def test_the_widest_characters_leave_a_definition_that_is_small(title, doc):
    written = action(title, Place.CHANGELIST, doc=doc, permissions=None)

    made = action_definition("a" * 40, written)

    assert size(made) < MOST_BYTES
    assert "Declares no permission" in made.description


@given(st.text(max_size=200), st.text(max_size=2000), st.sampled_from(Place), st.booleans())
def test_no_definition_is_longer_than_720_bytes(description, doc, place, is_marked):
    written = action(description, place, doc=doc, permissions=None if is_marked else ())

    made = action_definition("a" * 40, written)

    assert size(made) < MOST_BYTES


# Every action has a name that all clients take, that is its own, and that stays

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def names(*keys, taken=(), **given):
    known = {key: SimpleNamespace(mcp_name=given.get(key[1], "")) for key in keys}
    return ActionNames(known, taken=frozenset(taken))


SHIP, C = ("shop.order", "ship"), ("a.b", "c")


@pytest.mark.parametrize(
    ("made", "key", "name"),
    [
        (names(SHIP), SHIP, "shop_order_ship"),
        (names(SHIP, ship="ship_orders"), SHIP, "ship_orders"),
        (names(C, c="Not A Name"), C, "a_b_c"),
        (names(C, c="revenue", taken=["revenue"]), C, "a_b_c"),
        # That of a tool of code, or of two actions.
        (names(SHIP, taken=["shop_order_ship"]), SHIP, "shop_order_ship_[0-9a-f]{4}"),
        (names(("a_b.c", "d"), ("a.b", "c_d")), ("a_b.c", "d"), "a_b_c_d_[0-9a-f]{4}"),
        (names(("a_b.c", "d"), ("a.b", "c_d")), ("a.b", "c_d"), "a_b_c_d_[0-9a-f]{4}"),
        # Only a request brings these.
        (names(C), ("x.y", "Late One!"), "x_y_late_one"),
        (names(("a_b.c", "d")), ("a.b", "c_d"), "a_b_c_d_[0-9a-f]{4}"),
    ],
    ids=range(9),
)
def test_a_name_is_the_given_one_or_app_model_and_action_with_a_hash_where_it_is_taken(
    made, key, name
):
    assert re.fullmatch(name, made.of(*key))


def test_a_long_name_ends_in_a_hash_of_all_of_it():
    long = "recalculate_every_total_of_the_year"
    found = names(("warehouse.shipment", long), ("warehouse.shipment", f"{long}_again"))

    one, other = (found.of("warehouse.shipment", name) for name in (long, f"{long}_again"))

    assert one[:35] == other[:35] == "warehouse_shipment_recalculate_ever"
    assert one != other
    assert len(one) == len(other) == 40
    assert re.fullmatch(r"_[0-9a-f]{4}", one[35:])


def test_a_name_does_not_depend_on_what_else_there_is_unless_it_is_shared():
    alone = names(("shop.order", "ship"))
    among = names(("shop.order", "ship"), ("shop.customer", "ship"), ("shop.order", "pay"))

    assert alone.of("shop.order", "ship") == among.of("shop.order", "ship")


@given(st.sets(st.tuples(st.text(min_size=1), st.text()), max_size=20))
def test_any_label_and_action_make_a_name_that_clients_take(keys):
    found = names(*keys)

    assert len(found.keys) == len(keys)
    assert all(NAME.fullmatch(name) and "__" not in name for name in found.keys)
    assert [found.of(*key) for key in keys] == [names(*sorted(keys)).of(*key) for key in keys]


def test_an_admin_that_cannot_tell_its_actions_takes_no_name_from_others(monkeypatch, caplog):
    def fail(self, *args):
        raise RuntimeError("broken")

    monkeypatch.setattr(type(admin.site._registry[Order]), "_get_base_actions", fail)
    registry.forget_resolved()

    found = action_names(registry)

    registry.forget_resolved()
    assert found.of("shop.customer", "greet") == "shop_customer_greet"
    assert "The actions of shop.OrderAdmin cannot be told." in caplog.text

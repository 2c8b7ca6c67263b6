"""Every action has a name that all clients take, that is its own, and that stays."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.contrib import admin
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.registry import registry
from mcp_django.exposure.tools.actions import ActionNames, action_names
from tests.shop.models import Order

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

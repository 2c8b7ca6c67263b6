"""Every action has a name that all clients take, that is its own, and that stays."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from django.contrib import admin
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.registry import Registry, registry
from mcp_django.exposure.tools.actions import ActionNames, action_names
from tests.shop.models import Order

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def names(*keys, taken=(), **given):
    known = {key: SimpleNamespace(mcp_name=given.get(key[1], "")) for key in keys}
    return ActionNames(known, taken=frozenset(taken))


def test_a_name_is_app_model_and_action():
    assert names(("shop.order", "mark_shipped")).of("shop.order", "mark_shipped") == (
        "shop_order_mark_shipped"
    )


def test_a_given_name_counts():
    found = names(("shop.order", "ship"), ship="ship_orders")

    assert found.of("shop.order", "ship") == "ship_orders"
    assert found.keys == {"ship_orders": ("shop.order", "ship")}


def test_a_given_name_that_cannot_be_or_is_taken_is_left_out():
    assert names(("a.b", "c"), c="Not A Name").of("a.b", "c") == "a_b_c"
    assert names(("a.b", "c"), c="revenue", taken=["revenue"]).of("a.b", "c") == "a_b_c"


def test_a_long_name_ends_in_a_hash_of_all_of_it():
    long = "recalculate_every_total_of_the_year"
    found = names(("warehouse.shipment", long), ("warehouse.shipment", f"{long}_again"))

    one, other = (found.of("warehouse.shipment", name) for name in (long, f"{long}_again"))

    assert one[:35] == other[:35] == "warehouse_shipment_recalculate_ever"
    assert one != other
    assert len(one) == len(other) == 40
    assert re.fullmatch(r"_[0-9a-f]{4}", one[35:])


def test_both_of_two_that_would_share_a_name_get_a_hash():
    found = names(("a_b.c", "d"), ("a.b", "c_d"))

    one, other = found.of("a_b.c", "d"), found.of("a.b", "c_d")

    assert one.startswith("a_b_c_d_")
    assert other.startswith("a_b_c_d_")
    assert one != other


def test_a_name_does_not_depend_on_what_else_there_is_unless_it_is_shared():
    alone = names(("shop.order", "ship"))
    among = names(("shop.order", "ship"), ("shop.customer", "ship"), ("shop.order", "pay"))

    assert alone.of("shop.order", "ship") == among.of("shop.order", "ship")


def test_a_tool_of_code_keeps_its_name():
    found = names(("shop.order", "pay"), taken=["shop_order_pay"])

    assert re.fullmatch("shop_order_pay_[0-9a-f]{4}", found.of("shop.order", "pay"))


def test_an_action_that_only_a_request_brings_gets_a_name_of_its_own():
    found = names(("a_b.c", "d"))

    assert found.of("x.y", "Late One!") == "x_y_late_one"
    assert re.fullmatch("a_b_c_d_[0-9a-f]{4}", found.of("a.b", "c_d"))


@pytest.mark.thorough
def test_ten_thousand_actions_have_ten_thousand_names():
    keys = [("shop.order", f"the_same_beginning_of_a_long_name_{n}") for n in range(10_000)]

    assert len(names(*keys).keys) == 10_000


@given(st.sets(st.tuples(st.text(min_size=1), st.text()), max_size=20))
def test_any_label_and_action_make_a_name_that_clients_take(keys):
    found = names(*keys)

    assert len(found.keys) == len(keys)
    assert all(NAME.fullmatch(name) and "__" not in name for name in found.keys)
    assert [found.of(*key) for key in keys] == [names(*sorted(keys)).of(*key) for key in keys]


def test_the_names_of_a_registry_are_worked_out_once():
    first = action_names(registry)

    assert action_names(registry) is first
    assert action_names(Registry()) is not first


def test_deleting_is_no_tool_of_the_shop():
    assert all(action != "delete_selected" for _, action in action_names(registry).keys.values())


def test_an_admin_that_cannot_tell_its_actions_takes_no_name_from_others(monkeypatch, caplog):
    def fail(self, *args):
        raise RuntimeError("broken")

    monkeypatch.setattr(type(admin.site._registry[Order]), "_get_base_actions", fail)
    registry.forget_resolved()

    found = action_names(registry)

    registry.forget_resolved()
    assert found.of("shop.customer", "greet") == "shop_customer_greet"
    assert "The actions of shop.OrderAdmin cannot be told." in caplog.text

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from mcp_django.exposure.registry import check_name, suggest_tool_name
from tests.spec import requirement


@requirement("tools:names")
@pytest.mark.parametrize(
    "name",
    ["", "A", "1st", "_private", "two__parts", "with-hyphen", "with.dot", "a\n", "é", "a" * 41],
)
def test_a_name_that_some_client_refuses_is_refused_with_one_that_works(name):
    with pytest.raises(ImproperlyConfigured, match="cannot be the name of a tool") as caught:
        check_name(name, kind="tool")

    assert f'name="{suggest_tool_name(name)}"' in str(caught.value)


def test_a_suggestion_stays_near_to_the_name():
    suggested = {
        "monthlyRevenue": "monthly_revenue",
        "two__parts": "two_parts",
        "shop.order-list": "shop_order_list",
        "a" * 50: "a" * 40,
        "12": "my_tool",
    }

    assert {name: suggest_tool_name(name) for name in suggested} == suggested


@given(st.text())
def test_every_suggestion_is_a_valid_name(name):
    suggested = suggest_tool_name(name)

    assert check_name(suggested, kind="tool") == suggested

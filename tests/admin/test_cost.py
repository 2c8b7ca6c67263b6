from __future__ import annotations

import math

import msgspec
import pytest
from django.contrib.admin.models import LogEntry

from mcp_django.models import ExposedTool, PersonalToken
from tests.admin.looking import allow, row_of, text_of, url
from tests.clients import CheckedClient, browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def keeper(make_user):
    """May see what staff decided about tools, and look at others."""
    return make_user(
        "keeper",
        *("view_exposedtool", "inspect_as", "view_user", "view_order"),
        *("view_personaltoken", "manage_all_tokens"),
        is_staff=True,
    )


@pytest.fixture
def add_tools(add_tool):
    def add(count, *, words="Does little.", **options):
        for number in range(count):

            def small() -> str:
                return ""

            small.__name__ = f"small_{number}"
            small.__doc__ = words
            add_tool(small, **options)

    return add


def test_the_figures_are_those_of_the_list_as_a_client_gets_it(keeper, add_tool):
    def greek() -> str:
        """αβγδεζηθ"""
        return ""

    add_tool(greek)
    # Words of staff are in it.
    ExposedTool.objects.create(name="echo", description="x" * 500)
    client = CheckedClient(user=keeper)
    body = client.post_request("tools/list").body

    response = browser_of(keeper).get(url("cost"))

    cost = response.context["cost"]
    listed = msgspec.json.decode(body)["result"]["tools"]
    assert cost["bytes"] == len(body)
    assert cost["tokens"] == math.ceil(len(body.decode()) / 4) < math.ceil(len(body) / 4)
    assert {one["name"] for one in cost["tools"]} == {one["name"] for one in listed}
    assert sum(one["bytes"] for one in cost["tools"]) < cost["bytes"]
    sizes = [one["bytes"] for one in cost["tools"]]
    assert sizes == sorted(sizes, reverse=True)


def test_more_than_forty_tools_or_kib_get_a_warning(keeper, add_tools, add_tool):
    def one_more() -> str:
        """One more."""
        return ""

    there = len(browser_of(keeper).get(url("cost")).context["cost"]["tools"])
    add_tools(40 - there)
    few = text_of(browser_of(keeper).get(url("cost")))
    add_tool(one_more)
    ExposedTool.objects.create(name="echo", description="x" * 50_000)

    many = text_of(browser_of(keeper).get(url("cost")))

    assert "4 characters of the JSON are about one token" in few
    for words in ("more than 40 tools", "more than 40 KiB"):
        assert words not in few
        assert words in many


@pytest.mark.thorough
def test_five_hundred_tools_are_measured_page_by_page(
    keeper, add_tools, django_assert_max_num_queries
):
    add_tools(500)

    with django_assert_max_num_queries(45):
        response = browser_of(keeper).get(url("cost"))

    assert len(response.context["cost"]["tools"]) > 500
    assert response.context["cost"]["pages"] == 6


# Others


def test_somebody_elses_list_is_measured_and_recorded(keeper, make_user):
    bob = make_user("bob", "view_order", "change_order", is_staff=True)

    response = browser_of(keeper).post(url("cost"), {"username": "bob"})

    token, _ = PersonalToken.create(user=bob, name="phone", models=["shop.order"])
    of_token = browser_of(keeper).post(url("cost"), {"token": token.pk})

    assert "As bob" in text_of(response)
    assert LogEntry.objects.earliest("pk").object_id == str(bob.pk)
    # Tools that the person at the page has not are counted and not named.
    assert "pay" in {one["name"] for one in response.context["cost"]["tools"]}
    assert "pay" not in text_of(response).split()
    assert "Tools that you do not have yourself" in text_of(response)
    # A token has the list that its limits leave.
    assert "echo" not in text_of(of_token).split()
    assert "find_records" in row_of(of_token, "find_records")


@pytest.mark.parametrize("name", ["nobody", "bob"])
def test_without_the_permission_to_look_at_others_a_post_measures_oneself(make_user, name):
    make_user("bob", is_staff=True)
    viewer = make_user("viewer", "view_exposedtool", is_staff=True)

    response = browser_of(viewer).post(url("cost"), {"username": name})

    assert "Your tools" in text_of(response)
    assert "bob" not in text_of(response)
    assert not LogEntry.objects.exists()


def test_actions_of_somebody_else_are_named_to_those_who_are_offered_them_too(keeper, make_user):
    bob = make_user("bob", "view_customer", "change_customer", is_staff=True)
    browser = browser_of(keeper)

    def costs():
        cost = browser.post(url("cost"), {"username": "bob", "token": ""}).context["cost"]
        return {one["name"] for one in cost["tools"] if one["is_named"]}

    without = costs()
    allow(keeper, "shop.view_customer", "shop.change_customer")

    assert "shop_customer_greet" in CheckedClient(user=bob).tools()
    assert "shop_customer_greet" not in without
    assert "shop_customer_greet" in costs()

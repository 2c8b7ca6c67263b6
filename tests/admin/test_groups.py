"""Groups: what the permissions of each group open of each model."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse

from mcp_django.levels import Level
from mcp_django.models import ExposedTool, ServerSettings
from tests.admin.looking import url
from tests.clients import browser_of
from tests.decisions import decide

pytestmark = pytest.mark.django_db


@pytest.fixture
def make_group(db):
    def make(name, *codenames):
        group = Group.objects.create(name=name)
        group.permissions.set(Permission.objects.filter(codename__in=codenames))
        return group

    return make


@pytest.fixture
def viewer(make_user):
    return make_user("viewer", "view_exposedmodel", "view_group", is_staff=True)


def table_of(user):
    """The words of each cell, by label and group."""
    page = browser_of(user).get(url("groups"))
    source = page.content.decode().partition('class="mcp-look"')[2]
    names = re.findall(r'<th scope="col">([^<]*)</th>', source)[1:]
    table = {}
    for row in re.findall(r"<tr>\s*<th scope=\"row\">.*?</tr>", source, re.DOTALL):
        label = re.search(r"<code>(.*?)</code>", row)[1]
        cells = re.findall(r"<td>(.*?)</td>", row, re.DOTALL)
        words = [html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in cells]
        table |= {(label, name): word for name, word in zip(names, words, strict=True)}
    return table


def test_each_group_has_what_its_permissions_open_at_the_level_of_the_model(make_group, viewer):
    analysts = make_group("analysts", "view_order", "view_customer")
    make_group("dispatch", "view_order", "change_order", "delete_order", "change_customer")
    make_group("guests")
    decide("shop.order", level=Level.WRITE)
    decide("shop.memo", level=Level.AGGREGATES)
    make_group("memos", "view_memo", "change_memo")

    table = table_of(viewer)

    assert (
        table.items()
        >= {
            ("shop.order", "analysts"): "read",
            ("shop.order", "dispatch"): "read, change, delete",
            ("shop.order", "guests"): "nothing",
            # An action that is for people who may change customers.
            ("shop.customer", "analysts"): "read",
            ("shop.customer", "dispatch"): "read, 1 action",
            ("shop.memo", "memos"): "aggregates",
        }.items()
    )
    page = browser_of(viewer).get(url("groups")).content.decode()
    assert reverse("admin:auth_group_change", args=[analysts.pk]) in page
    assert reverse("admin:mcp_django_exposedmodel_change", args=["shop.order"]) in page


def test_a_model_for_some_groups_and_an_action_that_is_off_are_nothing_for_others(
    make_group, viewer
):
    permissions = ("view_order", "change_customer")
    analysts, _ = make_group("analysts", *permissions), make_group("dispatch", *permissions)
    decide("shop.order").groups.set([analysts])
    ExposedTool.objects.create(name="shop_customer_greet", enabled=False)
    decide("shop.memo", level=Level.HIDDEN)

    table = table_of(viewer)

    assert table["shop.order", "analysts"] == "read"
    assert table["shop.order", "dispatch"] == "nothing"
    assert table["shop.customer", "dispatch"] == "read"
    assert ("shop.memo", "analysts") not in table


def test_nobody_sees_groups_that_the_admin_does_not_show(make_group, make_user):
    make_group("analysts", "view_order")
    someone = make_user("someone", "view_exposedmodel", is_staff=True)

    page = browser_of(someone).get(url("groups"))

    assert "There is no group that you may see." in page.content.decode()
    assert "analysts" not in page.content.decode()


@pytest.mark.parametrize("switch", ["setting", "staff"])
def test_a_site_that_is_read_only_says_so(make_group, viewer, configure, switch):
    make_group("analysts", "view_order")
    before = browser_of(viewer).get(url("groups")).content.decode()
    if switch == "setting":
        configure(READ_ONLY=True)
    else:
        ServerSettings.objects.create(read_only=True)

    page = browser_of(viewer).get(url("groups")).content.decode()

    assert "Everything is read-only" not in before
    assert "Everything is read-only" in page

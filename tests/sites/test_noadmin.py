from __future__ import annotations

import sys

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from tests.clients import CheckedClient, WSGIClient
from tests.shop.models import Customer, Memo, Order

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(make_user):
    """Nobody is staff here."""
    return make_user("reader", "view_order", "view_memo", "view_customer")


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient])
def test_permissions_alone_decide_what_there_is(reader, make_user, kind):
    order = Order.objects.create(number="A1", customer=Customer.objects.create(name="Anne"))
    Memo.objects.create(text="Hello", code="hello")

    def labels(user):
        found = kind(user=user).call_tool("list_models").data
        return [one["model"] for one in found["models"]]

    assert labels(reader) == ["shop.memo", "shop.order"]
    assert labels(make_user("nobody")) == []
    (found,) = kind(user=reader).call_tool("find_records", model="shop.order").records
    read = kind(user=reader).read_resource(f"django://objects/shop.order/{order.pk}")
    assert found["number"] == read["number"] == "A1"


def test_a_token_is_made_on_the_command_line(reader, capsys):
    call_command("mcp_token", "create", "reader")

    client = CheckedClient(token=capsys.readouterr().out.strip())
    assert client.call_tool("list_models").data["models"]


def test_models_need_rows_where_permissions_may_hold_for_some_objects(reader, settings):
    settings.AUTHENTICATION_BACKENDS = ["tests.sites.restricted.ObjectPermissionBackend"]

    found = [one for one in run_checks(tags=["mcp_django"]) if one.id == "mcp_django.W009"]

    assert {one.msg.partition(" ")[0] for one in found} == {"shop.memo", "shop.order"}


def test_no_part_of_the_admin_is_ever_imported(reader):
    client = CheckedClient(user=reader)
    client.list_tools()
    client.list_resources()
    call_command("check")

    assert not [name for name in sys.modules if name.startswith("mcp_django.admin")]
    assert "mcp_django.exposure.admin_sites" not in sys.modules

from __future__ import annotations

import pytest
from django.urls import reverse, set_script_prefix

from mcp_django.asgi import get_mcp_application
from tests.clients import CheckedClient, WSGIClient
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


def over(staff, application, path):
    return CheckedClient(user=staff, application=application, path=path)


@pytest.mark.parametrize("path", ["/back/office/mcp", "/back/office/mcp/"])
def test_the_endpoint_is_below_the_path_with_and_without_a_slash(staff, path):
    client = over(staff, get_mcp_application(), path)

    assert client.call_tool("echo", text="x").data == {"text": "x", "user": "staff"}


def test_nothing_answers_beside_it(staff):
    client = over(staff, get_mcp_application(), "/back/office/mcp/more")

    assert client.post({}).status == 404


def test_links_of_records_are_the_same_as_anywhere(staff):
    order = Order.objects.create(number="A1")
    client = over(staff, get_mcp_application(), "/back/office/mcp")

    read = client.read_resource(f"django://objects/shop.order/{order.pk}")

    assert read["number"] == "A1"


def test_a_tool_that_reverses_gets_the_address_that_people_use(staff, add_tool):
    def address() -> str:
        """Where the list is."""
        return reverse("admin:shop_order_changelist")

    add_tool(address)
    set_script_prefix("/")

    found = over(staff, get_mcp_application(), "/back/office/mcp").call_tool("address")

    assert found.text == "/back/office/admin/shop/order/"


def test_a_wsgi_server_finds_the_endpoint_there(staff):
    # The server has cut its mount point off, as PEP 3333 says.
    client = WSGIClient(user=staff, path="/mcp")

    assert client.call_tool("echo", text="x").data == {"text": "x", "user": "staff"}

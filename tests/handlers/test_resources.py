from __future__ import annotations

import pytest

from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


def test_what_can_be_read_is_listed_and_readable(client, revision):
    client = CheckedClient(token=client.token, revision=revision)
    Order.objects.create(number="A1")

    uris = {resource["uri"] for resource in client.list_resources()}

    assert "django://objects/shop.order" in uris
    for uri in uris:
        assert client.read_resource(uri) is not None


def test_templates_say_how_to_ask_for_more(client, revision):
    client = CheckedClient(token=client.token, revision=revision)

    templates = client.list_all("resources/templates/list", "resourceTemplates")

    assert any(one["uriTemplate"].startswith("django://objects/") for one in templates)


def test_a_query_that_cannot_run_says_why_and_for_which_address(client, revision):
    client = CheckedClient(token=client.token, revision=revision)
    uri = "django://objects/shop.order?staus=new"

    with pytest.raises(ProtocolFailure) as raised:
        client.read_resource(uri)

    assert raised.value.code == -32602
    assert raised.value.data == {"uri": uri}
    assert "status" in raised.value.message

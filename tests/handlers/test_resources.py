from __future__ import annotations

import pytest

from mcp_django.testing import ProtocolFailure
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


def test_what_can_be_read_is_listed_and_readable(any_revision):
    Order.objects.create(number="A1")

    uris = {resource["uri"] for resource in any_revision.list_resources()}

    assert "django://objects/shop.order" in uris
    for uri in uris:
        assert any_revision.read_resource(uri) is not None


def test_templates_say_how_to_ask_for_more(any_revision):
    templates = any_revision.list_all("resources/templates/list", "resourceTemplates")

    assert any(one["uriTemplate"].startswith("django://objects/") for one in templates)


def test_a_query_that_cannot_run_says_why_and_for_which_address(any_revision):
    uri = "django://objects/shop.order?staus=new"

    with pytest.raises(ProtocolFailure, match="status") as raised:
        any_revision.read_resource(uri)

    assert (raised.value.code, raised.value.data) == (-32602, {"uri": uri})

"""The views of the admin get a request like a browser's, and only where the site lets one in."""

from __future__ import annotations

from urllib.parse import unquote as unquoted_path
from urllib.parse import urlsplit

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.test import RequestFactory
from django.urls import get_script_prefix, resolve, set_script_prefix

from mcp_django.context import CallContext
from mcp_django.exposure.admin_bridge.requests import (
    admin_request,
    page_address,
    path_of,
    signed_copy,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.principal import SCOPES, Principal
from mcp_django.protocol.revisions import MODERN
from tests.shop.models import Customer

pytestmark = pytest.mark.django_db


@pytest.fixture
def customers():
    return admin.site._registry[Customer]


def call_of(user, **client):
    request = RequestFactory().post(
        "/mcp", REMOTE_ADDR="192.0.2.7", HTTP_COOKIE="a=b", secure=True
    )
    request.user = user
    request.tenant = "acme"
    principal = Principal(user=user, scopes=frozenset(SCOPES), method="test", client="a token")
    context = CallContext(request=request, principal=principal, revision=MODERN[-1], client=client)
    return context, Rights(request, principal)


def test_a_request_without_data_is_a_get_with_everything_that_pages_read(superuser, customers):
    customer = Customer.objects.create(name="Anne")
    path = path_of(customers, "change", customer.pk)

    request, _ = admin_request(*call_of(superuser), customers, path=path)

    assert (request.method, request.path) == ("GET", path)
    assert request.resolver_match.kwargs == {"object_id": str(customer.pk)}
    assert request.user == superuser
    assert request.tenant == "acme"
    assert request.META["REMOTE_ADDR"] == "192.0.2.7"
    assert request.META["SCRIPT_NAME"] == ""
    assert "CONTENT_TYPE" not in request.META
    assert request.COOKIES == {}
    assert request.headers.get("Cookie") is None
    assert request.is_secure()
    assert request.body == b""
    assert customers.change_view(request, str(customer.pk)).render().status_code == 200


def test_a_site_below_a_prefix_finds_its_views(superuser, customers):
    before = get_script_prefix()
    set_script_prefix("/shop/")
    try:
        path = path_of(customers, "add")
        request, _ = admin_request(*call_of(superuser), customers, path=path)
    finally:
        set_script_prefix(before)

    assert path == "/shop/admin/shop/customer/add/"
    assert request.path_info == "/admin/shop/customer/add/"
    assert request.META["SCRIPT_NAME"] == "/shop"
    assert request.resolver_match.url_name == "shop_customer_add"


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ({"name": "Claude\nFake entry"}, "Claude Fake entry"),
        # A client that says no name has that of its credential.
        ({}, "a token"),
    ],
)
def test_entries_of_the_log_name_the_client_on_one_line(superuser, customers, client, name):
    context, rights = call_of(superuser, **client)
    request, _ = admin_request(context, rights, customers, path="/")
    customer = Customer.objects.create(name="Anne")

    signed_copy(customers, context).log_change(request, customer, "Told so.")

    message = LogEntry.objects.get().change_message
    assert message == f"Told so. (through an assistant: {name})"


@pytest.mark.parametrize("key", ["7", "a/b", "a_b c", "\u00e4?&#", "7f0c-1"])
def test_the_address_of_a_page_leads_to_its_record_whatever_the_key(key):
    found = page_address(admin.site.get_model_admin(Customer), "change", key)

    match = resolve(unquoted_path(urlsplit(found).path))
    assert (match.url_name, unquote(match.kwargs["object_id"])) == ("shop_customer_change", key)

"""The views of the admin get a request like a browser's, and only where the site lets one in."""

from __future__ import annotations

from copy import copy
from urllib.parse import unquote as unquoted_path
from urllib.parse import urlsplit

import pytest
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import get_script_prefix, resolve, set_script_prefix
from django.utils.html import format_html

from mcp_django.context import CallContext
from mcp_django.exceptions import NotFound
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


@pytest.fixture
def boss(make_user):
    return make_user("boss", is_staff=True, is_superuser=True)


def call_of(user, **client):
    request = RequestFactory().post(
        "/mcp", REMOTE_ADDR="192.0.2.7", HTTP_COOKIE="a=b", secure=True
    )
    request.user = user
    request.tenant = "acme"
    principal = Principal(user=user, scopes=frozenset(SCOPES), method="test", client="a token")
    context = CallContext(request=request, principal=principal, revision=MODERN[-1], client=client)
    return context, Rights(request, principal)


def test_a_request_without_data_is_a_get_with_everything_that_pages_read(boss, customers):
    customer = Customer.objects.create(name="Anne")
    path = path_of(customers, "change", customer.pk)

    request, _ = admin_request(*call_of(boss), customers, path=path)

    assert (request.method, request.path) == ("GET", path)
    assert request.resolver_match.kwargs == {"object_id": str(customer.pk)}
    assert request.user == boss
    assert request.tenant == "acme"
    assert request.META["REMOTE_ADDR"] == "192.0.2.7"
    assert request.META["SCRIPT_NAME"] == ""
    assert "CONTENT_TYPE" not in request.META
    assert request.COOKIES == {}
    assert request.headers.get("Cookie") is None
    assert request.is_secure()
    assert request.body == b""
    assert customers.change_view(request, str(customer.pk)).render().status_code == 200


def test_data_and_files_make_a_post(boss, customers):
    request, _ = admin_request(
        *call_of(boss), customers, path="/nowhere", data=[("a", "1"), ("a", "2")], files={"f": 3}
    )

    assert request.method == "POST"
    assert request.POST.getlist("a") == ["1", "2"]
    assert request.FILES["f"] == 3
    assert request.resolver_match is None
    request.session["seen"] = True
    assert "seen" not in admin_request(*call_of(boss), customers, path="/")[0].session


def test_a_site_below_a_prefix_finds_its_views(boss, customers):
    before = get_script_prefix()
    set_script_prefix("/shop/")
    try:
        path = path_of(customers, "add")
        request, _ = admin_request(*call_of(boss), customers, path=path)
    finally:
        set_script_prefix(before)

    assert path == "/shop/admin/shop/customer/add/"
    assert request.path_info == "/admin/shop/customer/add/"
    assert request.META["SCRIPT_NAME"] == "/shop"
    assert request.resolver_match.url_name == "shop_customer_add"


def test_messages_are_kept_as_plain_text_after_a_page_has_shown_them(boss, customers):
    request, recorder = admin_request(*call_of(boss), customers, path="/")
    messages.success(request, format_html('<a href="/x">{}</a> done', "A & B"))
    messages.error(request, "2 < 3")
    messages.debug(request, "not shown in the admin either")
    messages.info(request, "")

    assert len(list(messages.get_messages(request))) == 2
    assert request._messages.update(HttpResponse()) == []
    assert [(one.level_name, one.text, one.is_error) for one in recorder.messages] == [
        ("success", "A & B done", False),
        ("error", "2 < 3", True),
    ]


def test_a_user_whom_the_site_does_not_let_in_gets_no_request(make_user, customers):
    clerk = make_user("clerk", "change_customer", "view_customer")

    with pytest.raises(NotFound):
        admin_request(*call_of(clerk), customers, path="/admin/")


def test_log_entries_name_the_client(boss, customers):
    context, rights = call_of(boss, name="Claude\nFake entry")
    request, _ = admin_request(context, rights, customers, path="/")
    before = dict(vars(customers))
    copied = signed_copy(customers, context)
    customer = Customer.objects.create(name="Anne")

    copied.log_addition(request, customer, [{"added": {}}])
    copied.log_change(request, customer, "Told so.")
    copied.log_deletions(request, [customer])

    by = "hrough an assistant: Claude Fake entry"
    added, changed, deleted = LogEntry.objects.order_by("pk")
    assert added.get_change_message() == f"Added. Added note “t{by}”."
    assert changed.change_message == f"Told so. (t{by})"
    assert deleted.change_message == f"T{by}"
    # The registered admin is everybody's.
    assert vars(customers) == before


@pytest.mark.parametrize("is_logged", [True, False])
def test_deletions_without_keys_are_found_by_what_was_deleted(boss, customers, is_logged):
    context, rights = call_of(boss)
    request, _ = admin_request(context, rights, customers, path="/")
    copied = copy(customers)

    def log_deletions(request, queryset):
        # As MySQL answers an INSERT of several rows, or as a site that logs elsewhere.
        entries = customers.log_deletions(request, queryset)
        for entry in entries:
            entry.pk = None
        return entries if is_logged else None

    copied.log_deletions = log_deletions
    copied = signed_copy(copied, context)
    copied.log_deletions(request, [Customer.objects.create(name="Anne")])

    # A client that says no name has that of its credential.
    note = "Through an assistant: a token"
    assert LogEntry.objects.get().change_message == (note if is_logged else "")


@pytest.mark.parametrize("key", ["7", "a/b", "a_b c", "\u00e4?&#", "7f0c-1"])
def test_the_address_of_a_page_leads_to_its_record_whatever_the_key(key):
    found = page_address(admin.site.get_model_admin(Customer), key)

    match = resolve(unquoted_path(urlsplit(found).path))
    assert (match.url_name, unquote(match.kwargs["object_id"])) == ("shop_customer_change", key)

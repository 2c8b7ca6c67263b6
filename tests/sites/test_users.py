from __future__ import annotations

import json
import re
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.urls import reverse

from mcp_django.models import PersonalToken
from tests.clients import CheckedClient, browser_of
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(make_user):
    codenames = [f"{verb}_personaltoken" for verb in ("view", "add", "change")]
    return make_user("ada@example.com", "view_order", *codenames, is_staff=True)


def test_a_token_made_in_the_admin_opens_what_its_owner_may_see(ada):
    browser = browser_of(ada)
    page = reverse("admin:mcp_django_personaltoken_add")
    form = {"name": "laptop", "scopes": ["mcp:read"]}
    shown = browser.get(page).content.decode()
    for name in ("expires_at_0", "expires_at_1"):
        form[name] = re.search(rf'name="{name}" value="([^"]+)"', shown)[1]

    answer = browser.post(page, form).content.decode()

    client = CheckedClient(token=re.search(r"mcp_\w{20,}", answer)[0])
    Order.objects.create(number="A1")
    assert client.call_tool("find_records", model="shop.order").records
    assert client.call_tool("echo", text="x").data["user"] == "ada@example.com"
    assert PersonalToken.objects.get().user == ada


def test_tokens_are_searched_by_the_name_that_users_log_in_with(ada):
    PersonalToken.create(user=ada, name="laptop")
    browser = browser_of(ada)
    page = reverse("admin:mcp_django_personaltoken_changelist")

    assert b"laptop" in browser.get(page, {"q": "ada@"}).content
    assert b"laptop" not in browser.get(page, {"q": "bob@"}).content


def test_the_command_names_users_by_their_address(ada, capsys):
    call_command("mcp_token", "create", "ada@example.com", "--json")

    made = json.loads(capsys.readouterr().out)
    assert made["user"] == "ada@example.com"


def test_keys_that_are_uuids_bind_cursors_and_are_watched(ada):
    for number in range(3):
        Order.objects.create(number=str(number))
    client = CheckedClient(user=ada)
    asked = {"model": "shop.order", "limit": 2, "order_by": ["number"]}

    first = client.call_tool("find_records", **asked).data
    second = client.call_tool("find_records", **asked, cursor=first["next"]).records

    assert isinstance(ada.pk, UUID)
    assert [one["number"] for one in second] == ["2"]
    ada.user_permissions.set(Permission.objects.none())
    assert client.call_tool("find_records", **asked).is_error

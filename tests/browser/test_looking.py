from __future__ import annotations

import json

import pytest
from django.urls import reverse

from mcp_django.models import ExposedModel
from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.stores.sessions import get_store
from mcp_django.testing import Client
from tests.admin.looking import add_stream
from tests.browser.looks import every_look
from tests.exposure.stored import make_prompt
from tests.shop.models import Customer, Order

INSPECT, TRY_IT, OVERVIEW, LIVE = (
    reverse(f"admin:mcp_django_{name}") for name in ("inspect", "try_it", "overview", "live")
)


@pytest.fixture
def shop(make_user):
    """Some orders, and bob, whose assistants are looked at."""
    ada = Customer.objects.create(name="Ada", country="FR")
    for number in range(5):
        Order.objects.create(number=f"A-{number}", customer=ada, total=10 * number)
    ExposedModel.objects.create(label="shop.ledger", level=0)
    make_prompt("reply", "Reply.", title="Reply to a customer", description="A draft to send.")
    make_prompt("recall", "Recall.", description="For when the milk is sour.", enabled=False)
    return make_user("bob", "view_order", "view_customer", is_staff=True)


@every_look
def test_what_assistants_see_is_for_everybody_to_look_at_by_the_keyboard_alone(
    browse, superuser, shop
):
    page = browse(superuser)
    page.goto(INSPECT)
    page.check_accessible("inspect-form")

    page.tab_to("combobox", "User")
    page.keyboard.type("bob")
    page.press("Escape", "Tab")
    page.enter("button", "Inspect")
    page.expect(page.get_by_role("heading", name="As bob")).to_be_visible()
    page.expect(page.get_by_role("row", name="Reply to a customer reply")).to_contain_text("yes")
    page.check_accessible("inspect")

    page.enter("button", "Fields and records of shop.order")
    page.expect(page.get_by_role("heading", name="Records")).to_be_visible()
    page.expect(page.get_by_text("A-0")).to_be_visible()
    page.check_accessible("inspect-model")


@every_look
def test_tools_are_for_everybody_to_try(browse, superuser, shop):
    page = browse(superuser)
    page.goto(TRY_IT)
    page.check_accessible("try-list")

    page.goto(f"{TRY_IT}?tool=find_records")
    page.get_by_label("Arguments as JSON:").fill(
        '{"model": "shop.order", "filters": {"total__gte": 20}}'
    )
    page.get_by_role("button", name="Call find_records").click()
    page.expect(page.get_by_role("region", name="Result").first).to_contain_text("A-4")
    page.check_accessible("try-result")

    page.get_by_label("Arguments as JSON:").fill("{total: 20}")
    page.get_by_role("button", name="Call find_records").click()
    page.expect(page.get_by_text("This is not valid JSON.")).to_be_visible()
    page.check_accessible("try-wrong")


def test_a_tool_is_tried_by_the_keyboard_alone(browse, superuser):
    page = browse(superuser)
    page.goto(OVERVIEW)

    page.enter("link", "Try it")
    page.expect(page.get_by_role("heading", name="Resources")).to_be_visible()
    page.enter("link", "echo")
    page.expect(page.get_by_role("heading", name="echo")).to_be_visible()
    page.write_over(
        "Arguments as JSON:", """{"text": "<script>document.title='taken'</script>"}"""
    )
    page.enter("button", "Call echo")

    answer = page.get_by_label("The answer as JSON")
    page.expect(answer).to_contain_text("<script>document.title='taken'</script>")
    assert page.title() != "taken"


@every_look
def test_a_deletion_is_confirmed_by_the_keyboard_alone(browse, superuser):
    ExposedModel.objects.create(label="shop.order", level=5)
    order = Order.objects.create(number="A-1")
    page = browse(superuser)
    page.goto(f"{TRY_IT}?tool=delete_record")

    page.write_over("Arguments as JSON:", f'{{"model": "shop.order", "pk": {order.pk}}}')
    page.enter("button", "Call delete_record")
    page.expect(page.get_by_text("Delete this order?")).to_be_visible()
    page.check_accessible("try-confirm")
    assert Order.objects.exists()
    # The skin says in words that something is required.
    agreed = {"action": "accept", "content": {"confirm": True}}
    name = f"Your answers as JSON:{' (required)' if page.look.skin else ''}"
    page.write_over(name, json.dumps({"confirmation": agreed}))
    page.enter("button", "Answer")

    page.expect(page.get_by_role("region", name="Result")).to_contain_text("deleted")
    assert not Order.objects.exists()


@pytest.fixture
def connected(shop):
    """Two clients of bob: one with a session, one with a stream."""
    client = Client(user=shop, revision=LATEST_LEGACY)
    client.initialize()
    for number in range(3):
        client.request("resources/subscribe", {"uri": f"django://objects/shop.order?x={number}"})
    topics = ("tools", "prompts", f"django://objects/shop.order?search={'x' * 150}")
    add_stream(user=shop, client="My agent", topics=topics, minutes=180)


@every_look
def test_who_is_connected_is_for_everybody_to_look_at_and_ended_by_the_keyboard_alone(
    browse, superuser, connected
):
    page = browse(superuser)
    page.goto(OVERVIEW)

    page.enter("link", "Live")
    page.expect(page.get_by_role("heading", name="Sessions: 1")).to_be_visible()
    page.expect(page.get_by_role("heading", name="Streams: 1")).to_be_visible()
    page.check_accessible("live")
    page.tab_to("textbox", "User")
    page.keyboard.type("bob")
    page.press("Enter")
    page.enter("button", "End the session of bob, mcp_django.testing 1")

    page.expect(
        page.get_by_text("Ended the session of bob, mcp_django.testing 1.")
    ).to_be_visible()
    page.expect(page.get_by_role("heading", name="Sessions: 0")).to_be_visible()
    page.check_accessible("live-ended")
    assert not get_store().sessions()


@every_look
def test_switches_are_for_everybody_to_throw(browse, superuser):
    page = browse(superuser)
    page.goto(reverse("admin:mcp_django_serversettings_changelist"))

    page.get_by_role("checkbox", name="Closed").check()
    page.check_accessible("server-closed")
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto(LIVE)

    page.expect(page.get_by_text("Staff closed this server")).to_be_visible()
    page.check_accessible("live-closed")

"""What staff do without a line of code: open a model, give a group an action, write a prompt, and
watch what comes of it."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.urls import reverse

from mcp_django.testing import Client
from tests.shop.models import Customer, Ledger


def save(page):
    page.get_by_role("button", name="Save", exact=True).click()
    page.expect(page.get_by_text("successfully").first).to_be_visible()


def test_staff_open_a_model_give_an_action_write_a_prompt_and_watch_a_call(
    browse, superuser, make_user
):
    clerks = Group.objects.create(name="clerks")
    clerk = make_user("clerk", "view_ledger", "view_customer", "change_customer", is_staff=True)
    clerk.groups.add(clerks)
    other = make_user("other", "view_customer", "change_customer", is_staff=True)
    ledger = Ledger.objects.create(amount=7)
    ann = Customer.objects.create(name="Ann", country="DE")
    assistant = Client(user=clerk, record=True)
    models_before = assistant.call_tool("list_models").data["models"]
    page = browse(superuser)

    # A model that only the admin has.
    page.goto(reverse("admin:mcp_django_exposedmodel_changelist"))
    page.get_by_role("link", name="shop.ledger").click()
    page.get_by_label("Level:").select_option(label="read: records")
    save(page)

    # An action, for a group.
    page.goto(reverse("admin:mcp_django_exposedtool_changelist"))
    page.get_by_role("link", name="shop_customer_greet").click()
    page.get_by_label("State:").select_option(label="on")
    page.get_by_label("clerks").check()
    save(page)

    # A prompt with an object.
    page.goto(reverse("admin:mcp_django_prompttemplate_add"))
    page.get_by_label("Name:", exact=True).fill("welcome")
    argument = page.get_by_role("group", name="Argument 1")
    argument.get_by_label("Name", exact=True).fill("customer")
    argument.get_by_label("Type").select_option("object")
    argument.get_by_label("Model", exact=True).select_option("shop.customer")
    page.get_by_label("Text", exact=True).fill("Write a welcome to {{ customer.name }}.")
    save(page)

    found = assistant.call_tool("find_records", model="shop.ledger").records
    tools = {one["name"] for one in assistant.list_tools()}
    greeted = assistant.call_tool("shop_customer_greet", pks=[ann.pk])
    (message,) = assistant.get_prompt("welcome", customer=str(ann.pk))

    assert "shop.ledger" not in {one["model"] for one in models_before}
    assert found == [{"id": ledger.pk, "amount": 7}]
    assert "shop_customer_greet" in tools
    assert "shop_customer_greet" not in {one["name"] for one in Client(user=other).list_tools()}
    assert "Greeted 1." in greeted.text
    assert "Ann" in message["content"]["text"]

    # What the assistant did.
    page.goto(reverse("admin:mcp_django_callrecord_changelist"))
    page.check_accessible("calls")
    for target in ("shop_customer_greet", "find_records shop.ledger", "welcome"):
        page.expect(page.get_by_role("cell", name=target, exact=True)).to_be_visible()

"""The pages about prompts, as somebody uses them who has never seen them."""

from __future__ import annotations

import pytest
from django.urls import reverse

from mcp_django.models import PromptTemplate
from mcp_django.testing import Client
from tests.admin.looking import page_of
from tests.browser.looks import every_look
from tests.exposure.stored import ORDER, TONE, make_prompt, say
from tests.shop.models import Order

ADD = reverse("admin:mcp_django_prompttemplate_add")


@pytest.fixture
def prompt():
    Order.objects.create(number="A1")
    template = make_prompt(
        "late", "Draft a mail about {{ order.number }}.", arguments=[ORDER, TONE], title="Late"
    )
    say(template, "Draft a {{ tone }} mail about {{ order }}.", arguments=[ORDER, TONE])
    return template


@every_look
def test_a_preview_and_a_mistake_are_for_everybody_too(browse, superuser, prompt):
    page = browse(superuser)
    page.goto(page_of(prompt, "preview"))
    page.get_by_label("order *").fill("A1")
    page.get_by_role("button", name="Show the prompt").click()
    page.expect(page.get_by_role("heading", name="What boss gets")).to_be_visible()
    page.check_accessible("prompt-previewed")

    page.get_by_label("order *").fill("B2")
    page.get_by_role("button", name="Show the prompt").click()
    page.expect(page.get_by_role("alert")).to_contain_text("there is no shop.order 'B2'")
    page.check_accessible()


def test_a_prompt_is_written_by_the_keyboard_alone_and_works(browse, superuser):
    Order.objects.create(number="A1")
    page = browse(superuser)
    page.goto(ADD)

    page.tab_to("textbox", "Name:")
    page.keyboard.type("late")
    page.tab_to("textbox", "Name")
    page.keyboard.type("order")
    kind = page.tab_to("combobox", "Type")
    page.expect(page.get_by_label("Model", exact=True)).to_be_hidden()
    page.keyboard.type("An object")
    page.expect(kind).to_have_value("object")
    page.tab_to("combobox", "Model")
    page.keyboard.type("order (")
    page.enter("button", "Add another argument")
    second = page.get_by_role("group", name="Argument 2")
    page.expect(second.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("note")
    page.tab_to("textbox", "Text")
    page.keyboard.type("About {{ order.number }}.")
    page.enter("button", "Save")
    page.expect(page.get_by_role("link", name="late", exact=True).first).to_be_visible()

    (message,) = Client(user=superuser).get_prompt("late", order="A1")
    assert "A1" in message["content"]["text"]


def test_a_text_that_does_not_parse_is_shown_with_its_line(browse, superuser):
    page = browse(superuser)
    page.goto(ADD)
    page.get_by_label("Name:", exact=True).fill("late")
    page.get_by_label("Text", exact=True).fill("Hi\n\n{% load static %}")
    page.get_by_role("button", name="Save", exact=True).click()

    row = page.get_by_role("group", name="Message 1")
    page.expect(row).to_contain_text("Line 3: there is no tag 'load'")
    page.check_accessible("prompt-broken")
    assert not PromptTemplate.objects.exists()


def test_rows_that_are_there_come_without_an_empty_one_and_can_be_removed(
    browse, superuser, prompt
):
    page = browse(superuser)
    page.goto(page_of(prompt))
    page.expect(page.get_by_role("group", name="Argument 3")).to_have_count(0)
    page.get_by_role("button", name="Add another message").click()
    page.get_by_role("group", name="Message 2").get_by_label("Text").fill("And then?")
    page.get_by_role("group", name="Argument 2").get_by_label("Remove this argument").check()
    text = page.get_by_role("group", name="Message 1").get_by_label("Text")
    text.fill("About {{ order }}.")
    page.get_by_role("button", name="Save", exact=True).click()
    page.expect(page.get_by_role("link", name="late", exact=True).first).to_be_visible()

    version = prompt.versions.first()
    assert [one["name"] for one in version.arguments] == ["order"]
    assert [one["text"] for one in version.messages] == ["About {{ order }}.", "And then?"]


def test_without_scripts_there_is_a_row_more_each_time(browse, superuser, prompt):
    page = browse(superuser, java_script_enabled=False)
    page.goto(page_of(prompt))
    row = page.get_by_role("group", name="Argument 3")
    row.get_by_label("Name", exact=True).fill("note")
    page.get_by_role("button", name="Save and continue editing").click()

    page.expect(page.get_by_role("group", name="Argument 4")).to_have_count(1)
    assert [one["name"] for one in prompt.versions.first().arguments] == ["order", "tone", "note"]

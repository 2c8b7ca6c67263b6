from __future__ import annotations

import pytest
from django.urls import reverse

from mcp_django.models import PersonalToken
from mcp_django.testing import Client
from tests.browser.looks import every_look

ADD = reverse("admin:mcp_django_personaltoken_add")


def test_a_token_is_made_by_the_keyboard_alone_and_works(browse, superuser):
    page = browse(superuser)
    page.goto(ADD)

    page.tab_to("textbox", "Name:")
    page.keyboard.type("laptop")
    page.enter("button", "Save")
    secret = page.get_by_label("Token “laptop” of boss")
    page.expect(secret).to_be_focused()

    assert Client(token=secret.input_value()).call_tool("list_models")
    page.check_accessible()
    page.enter("link", "Done: back to the list")
    page.expect(page.get_by_role("link", name="laptop")).to_be_visible()


def test_the_secret_is_copied_with_a_click(browse, superuser):
    page = browse(superuser, permissions=["clipboard-read", "clipboard-write"])
    page.goto(ADD)
    page.get_by_label("Name:").fill("laptop")
    page.get_by_role("button", name="Save").click()
    secret = page.get_by_label("Token “laptop” of boss").input_value()

    page.get_by_role("button", name="Copy the token").click()
    page.expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret

    page.get_by_role("button", name="Copy the configuration of Claude Code").click()
    page.expect(page.get_by_text("Copied.")).to_have_count(2)
    assert f"Bearer {secret}" in page.evaluate("navigator.clipboard.readText()")


@every_look
def test_a_token_is_revoked_on_its_own_page(browse, superuser):
    token, _ = PersonalToken.create(user=superuser, name="laptop")
    page = browse(superuser)
    page.goto(reverse("admin:mcp_django_personaltoken_change", args=[token.pk]))

    page.get_by_role("link", name="Revoke this token").click()
    page.check_accessible("token-revoke")
    page.get_by_role("button", name="Revoke the token").click()

    page.expect(page.get_by_text("The token “laptop” is revoked.")).to_be_visible()
    page.expect(page.get_by_role("link", name="Revoke this token")).to_have_count(0)


@pytest.mark.needs("oauth")
def test_people_make_a_token_of_their_own_by_the_keyboard_alone(browse, superuser):
    page = browse(superuser)
    page.goto(reverse("mcp_django_pages:tokens"))

    page.tab_to("textbox", "Which program will use it?")
    page.keyboard.type("laptop")
    page.press("Enter")
    secret = page.get_by_label("Token “laptop”").inner_text()

    assert Client(token=secret).call_tool("list_models")

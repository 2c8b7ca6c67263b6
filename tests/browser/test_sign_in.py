"""The pages for everybody, in a browser: consent, connect, connected apps, tokens."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from django.urls import reverse

from mcp_django.testing import Client
from tests.browser.looks import every_look
from tests.oauth.flow import CALLBACK, CHALLENGE, RESOURCE
from tests.services import is_there

if is_there("oauth"):
    from mcp_django.oauth.models import Authorization
    from mcp_django.oauth.toolkit import get_application_model

pytestmark = pytest.mark.needs("oauth")


@pytest.fixture
def application():
    model = get_application_model()
    return model.objects.create(
        client_id="https://claude.example/client.json",
        name="Claude",
        redirect_uris=CALLBACK,
        client_type=model.CLIENT_PUBLIC,
        authorization_grant_type=model.GRANT_AUTHORIZATION_CODE,
        registration_source="cimd",
        cimd_expires_at=None,
    )


@pytest.fixture
def consent(application, boss):
    Authorization.grant(
        user=boss,
        application=application,
        resource=RESOURCE,
        scopes=["mcp:read", "mcp:write"],
        code="c",
        limits={"models": ["shop.order"]},
    )


def ask(application, scope="mcp:read mcp:write mcp:delete mcp:action"):
    asked = {
        "response_type": "code",
        "client_id": application.client_id,
        "redirect_uri": CALLBACK,
        "scope": scope,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": RESOURCE,
    }
    return f"{reverse('mcp_django_oauth:authorize')}?{urlencode(asked)}"


@every_look
def test_the_pages_are_for_everybody(browse, boss, application, consent):
    page = browse(boss)

    for name, url in (
        ("consent", ask(application)),
        ("connect", reverse("mcp_django_pages:connect")),
        ("apps", reverse("mcp_django_pages:apps")),
        ("own-tokens", reverse("mcp_django_pages:tokens")),
    ):
        page.goto(url)
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        page.screenshot_to(name)
        page.check_accessible()


def test_a_program_is_kept_from_writing_and_ended_by_the_keyboard_alone(browse, boss, consent):
    page = browse(boss)
    page.goto(reverse("mcp_django_pages:apps"))

    page.tab_to("button", "Only let it read")
    page.press("Enter")
    page.expect(page.get_by_text("(at the moment it only reads)")).to_be_visible()
    page.tab_to("button", "End access")
    page.press("Enter")

    page.expect(page.get_by_text("There are none.")).to_be_visible()
    assert Authorization.objects.get().read_only
    assert not Authorization.objects.get().is_in_force


def test_a_token_is_made_by_the_keyboard_alone_and_works(browse, boss):
    page = browse(boss)
    page.goto(reverse("mcp_django_pages:tokens"))

    page.tab_to("textbox", "Which program will use it?")
    page.keyboard.type("laptop")
    page.press("Enter")
    secret = page.get_by_label("Token “laptop”").inner_text()

    assert Client(token=secret).call_tool("list_models")

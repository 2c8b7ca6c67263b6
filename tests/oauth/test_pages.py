"""The pages for everybody: connect a client, connected apps, tokens."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from mcp_django.auth.authenticate import cache
from mcp_django.models import PersonalToken
from tests.admin.looking import text_of
from tests.clients import browser_of
from tests.oauth.flow import fields_of
from tests.services import is_there

if is_there("oauth"):
    from mcp_django.auth.clients import client_cards
    from mcp_django.oauth.models import Authorization

pytestmark = pytest.mark.needs("oauth")
CONNECT, APPS, TOKENS = "/assistants/", "/assistants/apps/", "/assistants/tokens/"
ADDRESS = "https://shop.example.com/mcp"


@pytest.fixture
def as_eve(make_user):
    """She may do nothing at all, and is no member of the staff."""
    return browser_of(make_user("eve"))


@pytest.mark.parametrize("page", [CONNECT, APPS, TOKENS])
def test_a_page_is_for_people_who_are_signed_in_and_for_nobody_to_keep(as_eve, page):
    stranger = Client().get(page)
    response = as_eve.get(page)

    assert stranger.headers["Location"] == f"/admin/login/?next={page}"
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    assert response.headers["X-Frame-Options"] == "DENY"
    assert as_eve.put(page).status_code == 405


# Connect.


def test_the_page_names_the_address_and_a_way_for_each_client(as_eve, settings):
    endpoint = as_eve.get("/mcp", headers={"Accept": "text/html"}).content.decode()
    text = text_of(as_eve.get(CONNECT))
    settings.MCP_DJANGO = {"NAME": "Shop"}

    assert f'<a href="{CONNECT}">' in endpoint
    assert "Tell the people who run it." in text_of(as_eve.get(CONNECT))
    assert "Give the assistant this address: http://testserver/mcp" in text
    for client in ("Claude Code", "ChatGPT", "VS Code", "Cursor", "Gemini CLI", "MCP Inspector"):
        assert client in text


@pytest.mark.parametrize(
    ("registration", "with_tokens", "with_ids"),
    [
        ("manual", {"Claude Code", "VS Code", "Cursor", "Other clients"}, True),
        ("cimd", {"Cursor", "Other clients"}, False),
        ("cimd+dcr", set(), False),
    ],
)
def test_clients_that_cannot_register_here_get_a_token(
    configure, registration, with_tokens, with_ids
):
    configure(REGISTRATION=registration)

    cards = {card.title: card for card in client_cards(ADDRESS)}

    checked = ("Claude Code", "VS Code", "Cursor", "Other clients")
    assert {name for name in checked if "Bearer TOKEN" in cards[name].text} == with_tokens
    replaced = {name for name in checked if "in the place of TOKEN" in cards[name].steps}
    assert replaced == with_tokens
    assert ("client ID" in cards["ChatGPT"].steps) is with_ids


def test_links_open_clients_with_the_address_filled_in_and_a_credential_stands_elsewhere(
    configure,
):
    configure(REGISTRATION="cimd+dcr")

    links = {card.title: urlsplit(card.link) for card in client_cards(ADDRESS)}

    code, cursor = links["VS Code"], parse_qs(links["Cursor"].query)
    assert f"{code.scheme}:{code.path}" == "vscode:mcp/install"
    assert json.loads(unquote(code.query)) == {"name": "test-shop", "type": "http", "url": ADDRESS}
    assert cursor["name"] == ["test-shop"]
    assert json.loads(b64decode(cursor["config"][0])) == {"url": ADDRESS}
    cards = client_cards(ADDRESS, credential="mcp_secret")
    assert all("mcp_secret" in card.text + card.steps for card in cards)
    assert {card.link for card in cards} == {""}


# Connected apps.


def press(browser, page, do, pk):
    return browser.post(page, {"do": do, "pk": pk})


@pytest.mark.parametrize("page", [CONNECT, APPS, TOKENS, "/oauth/authorize"])
def test_sites_that_ask_everybody_to_sign_in_send_people_to_the_same_page(settings, page):
    settings.LOGIN_URL = "https://login.example/"
    required = "django.contrib.auth.middleware.LoginRequiredMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, required]

    address = Client().get(page).headers["Location"]

    assert address == f"https://login.example/?next=http%3A//testserver{page}"


def test_people_see_what_they_allowed_and_end_it(flow):
    tokens = flow.tokens()
    [consent] = Authorization.objects.all()

    text = text_of(flow.browser.get(APPS))
    press(flow.browser, APPS, "end", consent.pk)
    cache.clear()

    assert "Claude claude.example, checked by nobody at this site" in text
    assert "It may See what you may see on this site" in text
    assert flow.call(tokens["access_token"]).status_code == 401
    assert "There are none." in text_of(flow.browser.get(APPS))


def test_a_program_only_reads_from_the_moment_that_the_person_wants_that(flow, add_tool):
    def burn() -> str:
        """Burn it all down."""

    add_tool(burn, read_only=False, destructive=False)
    tokens = flow.tokens(scope="mcp:read mcp:write")
    [consent] = Authorization.objects.all()

    def offered():
        cache.clear()
        return "burn" in flow.call(tokens["access_token"]).content.decode()

    before = offered()
    press(flow.browser, APPS, "read_only", consent.pk)
    meanwhile, text = offered(), text_of(flow.browser.get(APPS))
    press(flow.browser, APPS, "not_read_only", consent.pk)

    assert (before, meanwhile, offered()) == (True, False, True)
    assert "(at the moment it only reads)" in text


def test_kinds_of_records_that_the_person_may_not_see_any_more_have_no_name(flow, alice):
    flow.answer(flow.ask(), models=["shop.memo"])
    before = text_of(flow.browser.get(APPS))
    alice.is_superuser = False
    alice.save()

    assert "Only in Memos" in before
    assert "Memos" not in text_of(flow.browser.get(APPS))


# Tokens.


def fill(browser, **changes):
    fields = {**fields_of(browser.get(TOKENS).content.decode()), "name": "Script", **changes}
    fields.setdefault("scopes", ["mcp:read"])
    return browser.post(TOKENS, fields)


def secret_in(response):
    return re.search(r"mcp_[A-Za-z0-9]{40,}", response.content.decode())[0]


def test_a_person_makes_a_token_sees_it_once_and_revokes_it(flow):
    secret = secret_in(fill(flow.browser, models=["shop.order"]))
    [token] = PersonalToken.objects.all()
    page = flow.browser.get(TOKENS)

    assert token.models == ["shop.order"]
    assert flow.call(secret).status_code == 200
    assert secret not in page.content.decode()
    assert "Only in Orders" in text_of(page)
    press(flow.browser, TOKENS, "end", token.pk)
    assert flow.call(secret).status_code == 401


WRITE, ADD = ["mcp:read", "mcp:write"], "add_personaltoken"


@pytest.mark.parametrize(
    ("codenames", "changes", "is_made"),
    [
        ([], {}, True), ([], {"scopes": ["mcp:write"]}, False), ([ADD], {"scopes": WRITE}, True),
        ([ADD], {"scopes": ["mcp:everything"]}, False), ([], {"scopes": []}, False),
        ([], {"name": ""}, False), ([], {"name": "x" * 101}, False),
        ([], {"models": ["shop.order"]}, False), ([], {"lifetime": "400"}, False),
    ],
)  # fmt: skip
def test_the_page_makes_tokens_of_what_it_offered_and_writing_ones_for_people_who_may_add_them(
    make_user, codenames, changes, is_made
):
    response = fill(browser_of(make_user("eve", *codenames)), **changes)

    assert response.status_code == 200
    assert PersonalToken.objects.exists() is is_made
    assert ("Copy the token now" in text_of(response)) is is_made


@pytest.mark.parametrize(("codenames", "is_lifted"), [([], False), ([ADD], True)])
def test_a_limit_is_lifted_by_people_who_could_make_such_a_token(make_user, codenames, is_lifted):
    eve = make_user("eve", *codenames)
    browser = browser_of(eve)
    token, _ = PersonalToken.create(user=eve, name="by staff", scopes=WRITE, read_only=True)

    page = browser.get(TOKENS).content.decode()
    press(browser, TOKENS, "not_read_only", token.pk)

    token.refresh_from_db()
    assert ("not_read_only" in page) is is_lifted
    assert token.read_only is not is_lifted


def test_every_credential_that_is_good_can_be_ended(flow, alice):
    living, _ = PersonalToken.create(user=alice, name="living")
    PersonalToken.objects.bulk_create(
        PersonalToken(user=alice, name="dead", digest=str(number), expires_at=timezone.now())
        for number in range(150)
    )

    page = flow.browser.get(TOKENS).content.decode()
    press(flow.browser, TOKENS, "end", living.pk)

    assert "living" in page
    assert "dead" not in page
    living.refresh_from_db()
    assert living.revoked_at is not None


@pytest.mark.parametrize("do", ["end", "read_only", "not_read_only"])
def test_rows_of_somebody_else_do_not_exist(flow, alice, as_eve, do):
    tokens = flow.tokens()
    token, secret = PersonalToken.create(user=alice, name="hers")
    keys = [Authorization.objects.get().pk, token.pk]

    for page, key in zip([APPS, TOKENS], keys, strict=True):
        for unknown in (key, 999, "x", "²", "9" * 40, ""):
            assert press(as_eve, page, do, unknown).status_code == 404
        assert "hers" not in as_eve.get(page).content.decode()
    cache.clear()
    assert flow.call(tokens["access_token"]).status_code == 200
    assert flow.call(secret).status_code == 200

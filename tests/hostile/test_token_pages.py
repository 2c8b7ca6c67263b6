"""The pages and the command for tokens, asked by staff who want more than is theirs."""

from __future__ import annotations

from datetime import date, timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from mcp_django.models import PersonalToken
from tests.clients import browser_of

pytestmark = pytest.mark.django_db

PAGE = "/admin/mcp_django/personaltoken/"
VERBS = [f"{verb}_personaltoken" for verb in ("add", "view", "change", "delete")]
FORM = {
    "name": "x",
    "scopes": ["mcp:read"],
    "expires_at_0": str(date.today() + timedelta(days=5)),
    "expires_at_1": "00:00:00",
}
SURPLUS = {
    "digest": "d" * 64,
    "hint": "evil",
    "server": "other",
    "revoked_at": "",
    "revoked_at_0": "2020-01-01",
    "created_at": "2000-01-01",
    "last_used_at": "2000-01-01",
    "id": 99,
    "pk": 99,
}


@pytest.fixture
def eve(make_user):
    return make_user("eve", *VERBS, is_staff=True)


@pytest.fixture
def browser(eve):
    return browser_of(eve)


@pytest.fixture
def bobs(make_user):
    return PersonalToken.create(user=make_user("bob", is_staff=True), name="Bob's")[0]


def facts(token):
    return {name: value for name, value in vars(token).items() if not name.startswith("_")}


def test_what_the_form_does_not_ask_for_is_never_set(browser, eve, bobs, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "TOKEN_MAX_DAYS": 36_500}

    browser.post(f"{PAGE}add/", {**FORM, **SURPLUS, "user": bobs.user.pk})

    token = PersonalToken.objects.get(name="x")
    assert token.user == eve
    assert (token.server, token.revoked_at, token.last_used_at) == ("default", None, None)
    assert not {token.digest, token.hint, token.pk} & {"d" * 64, "evil", 99}
    assert token.created_at.year > 2000

    before = facts(token)
    more = {"name": "y", "scopes": ["mcp:write"], "models": "null", "user": bobs.user.pk}
    browser.post(f"{PAGE}{token.pk}/change/", {**FORM, **SURPLUS, **more})

    token.refresh_from_db()
    assert facts(token) == {**before, "name": "y"}


@pytest.mark.parametrize(
    "query",
    ["digest__startswith=", "hint__gte=", "user__id__isnull=0", "user__isnull=0", "e=1", "all="],
)
def test_no_query_of_the_list_shows_a_token_of_somebody_else(browser, bobs, query):
    assert b"Bob&#x27;s" not in browser.get(f"{PAGE}?{query}", follow=True).content
    assert browser.get(f"{PAGE}?user__password__startswith=md5").status_code == 400


def test_names_stay_text_on_every_page(browser, eve):
    eve.username = "<b>eve</b>"
    eve.save()
    made = browser.post(f"{PAGE}add/", {**FORM, "name": "<script>alert(1)</script>"})
    token = PersonalToken.objects.get()
    paths = ["", *(f"{token.pk}/{page}/" for page in ("change", "delete", "history"))]

    pages = [made, *(browser.get(PAGE + path) for path in paths)]

    assert {page.status_code for page in pages} == {200}
    for page in pages:
        assert b"<script>alert" not in page.content
        assert b"<b>eve" not in page.content


def test_a_name_cannot_draw_another_line_into_the_list(eve):
    PersonalToken.create(user=eve, name="a\n99\troot\tbackdoor\x1b[2J\u202e\r\u2028")
    shown = StringIO()

    call_command("mcp_token", "list", stdout=shown)

    line = shown.getvalue()
    assert len(line.splitlines()) == 1
    assert line.count("\t") == 6
    assert not {"\x1b", "\u202e"} & set(line)

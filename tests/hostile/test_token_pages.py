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


@pytest.fixture
def eve(make_user):
    return make_user("eve", *VERBS, is_staff=True)


@pytest.fixture
def browser(eve):
    return browser_of(eve)


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

"""Somebody who looks at what assistants of somebody else see."""

from __future__ import annotations

import json

import pytest

from mcp_django.models import PersonalToken
from tests.admin.looking import in_this_thread, post_text, url
from tests.clients import browser_of


@pytest.fixture
def bob(make_user):
    """Whose assistants are looked at: orders and customers, no memos."""
    return make_user("bob", "view_order", "view_customer", is_staff=True)


@pytest.fixture
def looker(make_user):
    """Sees everything of the shop, and users."""
    user = make_user(
        "looker",
        *("view_order", "view_customer", "view_memo", "change_order", "view_user"),
        *("inspect_as", "view_personaltoken", "manage_all_tokens", "view_ledger"),
        is_staff=True,
    )
    return user


@pytest.fixture
def look(looker):
    def look(who="bob", model="", *, by=looker, **data):
        return browser_of(by).post(
            url("inspect"), {"username": who, "token": "", "model": model, **data}
        )

    return look


@pytest.fixture
def token_of(bob):
    def make(**options):
        return PersonalToken.create(user=bob, name="phone", **options)[0]

    return make


# Who tries tools


@pytest.fixture
def recorded():
    """What is recorded of calls, which run in the thread of the test."""
    with in_this_thread() as gathered:
        yield gathered


@pytest.fixture
def trier(make_user):
    return make_user("trier", "view_order", "view_memo", "try_tools", is_staff=True)


@pytest.fixture
def call(trier):
    def call(tool, *, by=trier, **arguments):
        return post_text(by, tool, json.dumps(arguments))

    return call

"""The page where people consent: what it says, what it takes, and what that leaves of a token."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from mcp_django.auth.authenticate import cache
from tests.admin.looking import words_in
from tests.oauth.flow import fields_of, query_of
from tests.services import is_there
from tests.workshop.exposed import exposed

if is_there("oauth"):
    from mcp_django.oauth.models import Authorization

pytestmark = pytest.mark.needs("oauth")
EVERYTHING = "mcp:read mcp:write mcp:delete mcp:action"
ORDERS, TAGS, THINGS = "shop.order", "workshop.tag", "workshop.thing"


@pytest.fixture
def clerk(configure, make_user, browser):
    """Signed in: may change tags, view things and pay orders, and nothing else."""
    configure(ADMIN_SITES=["admin", "workshop"])
    codenames = ("view_tag", "change_tag", "view_thing", "view_order", "change_order")
    user = make_user("clerk", *codenames, is_staff=True)
    browser.force_login(user)
    with exposed():
        yield user


def offered(page):
    """Return what the page says behind each of the boxes, by scope."""
    parts = re.split(r'<input type="checkbox" name="granted" value="([^"]+)"[^>]*>', page)
    words = (words_in(part.partition("</fieldset>")[0]) for part in parts[2::2])
    return dict(zip(parts[1::2], words, strict=True))


def labels_of(response):
    [block] = response.json()["result"]["content"]
    return set(re.findall(r"\b(?:shop|workshop)\.[a-z]+", block["text"]))


def list_models(flow, tokens):
    cache.clear()
    return flow.tool(tokens["access_token"], "list_models")


def allow(flow, *, scope=EVERYTHING, **changes):
    answer = flow.answer(flow.ask(scope=scope), **changes)
    return flow.exchange(query_of(answer.headers["Location"])["code"]).json()


def test_the_page_says_what_each_scope_opens_for_this_person(flow, clerk):
    seen = offered(flow.ask(scope=EVERYTHING).content.decode())

    words = ("Tags", "Things", "Memos", "Customers", "pay", "echo", "You have no rights here")
    assert {scope: {word for word in words if word in text} for scope, text in seen.items()} == {
        "mcp:read": {"Tags", "Things", "echo"},
        "mcp:write": {"Tags", "pay"},
        "mcp:delete": {"You have no rights here"},
        "mcp:action": {"You have no rights here"},
    }


def test_tools_that_are_hard_to_undo_are_marked(flow, clerk, add_tool):
    def burn() -> str:
        """Burn it all down."""

    add_tool(burn, read_only=False, destructive=True, permission="shop.change_order")

    seen = offered(flow.ask(scope="mcp:write mcp:delete").content.decode())

    assert "burn hard to undo" in seen["mcp:delete"]
    assert "pay hard" not in seen["mcp:write"]


@pytest.mark.parametrize("choice", [{"models": [TAGS]}, {}], ids=["one", "all"])
def test_models_that_are_unticked_do_not_exist_for_the_client(flow, clerk, choice):
    tokens = allow(flow, **choice)

    labels = labels_of(list_models(flow, tokens))
    assert Authorization.objects.get().models == choice.get("models")
    assert labels == {TAGS} if choice else {ORDERS, TAGS, THINGS} <= labels


#: What a client asks for, what is on the page, what the person ticks, and what is granted.
SCOPES = [
    ("mcp:read " * 500, "mcp:read", ["mcp:read"], "mcp:read"),
    # Seeing is on the page where a scope implies it, and nothing is granted without it.
    ("mcp:write", "mcp:read mcp:write", ["mcp:read", "mcp:write"], "mcp:read mcp:write"),
    (EVERYTHING, EVERYTHING, ["mcp:write", "mcp:delete", "mcp:action"], "mcp:action"),
    # A person ticks less than the client asked for, and something else.
    ("mcp:read mcp:write", "mcp:read mcp:write", ["mcp:read", "mcp:action"], "mcp:read"),
]


@pytest.mark.parametrize(("asked", "offers", "ticked", "granted"), SCOPES)
def test_scopes_are_offered_once_and_together_with_those_that_they_imply(
    flow, clerk, asked, offers, ticked, granted
):
    page = flow.ask(scope=asked).content.decode()
    tokens = allow(flow, scope=asked, granted=ticked)

    assert page.count('name="granted"') == len(offers.split())
    assert " ".join(offered(page)) == fields_of(page)["scope"] == offers
    implied = "Only together with the first box."
    assert all(
        (implied in offered(page)[scope]) is (scope in ("mcp:write", "mcp:delete"))
        for scope in offers.split()
    )
    assert tokens["scope"] == granted
    assert Authorization.objects.get().scopes == granted.split()


@pytest.mark.parametrize(
    "choice", [{"later_models": None}, {"models": [ORDERS] * 3}, {"models": []}]
)
def test_only_a_choice_of_all_is_no_limit(flow, clerk, choice):
    allow(flow, **choice)

    stored = Authorization.objects.get().models
    assert stored is not None
    assert len(stored) == len({*stored})


def test_a_kind_that_was_unticked_does_not_come_back_by_itself(flow, clerk):
    allow(flow, models=[TAGS])
    clerk.user_permissions.set(clerk.user_permissions.exclude(codename="view_thing"))

    allow(flow)

    assert THINGS not in Authorization.objects.get().models


def test_a_client_that_may_only_read_is_offered_nothing_that_writes(flow, clerk):
    tokens = allow(flow, read_only="on")

    names = flow.tools(tokens["access_token"])
    refused = flow.tool(tokens["access_token"], "pay", number="1")

    assert "find_records" in names
    assert names.isdisjoint({"update_record", "pay"})
    # It is not told to ask for more: this person has said no to all of it.
    assert refused.status_code == 200
    assert refused.json()["error"]["message"] == "Unknown tool: pay"


def test_what_is_allowed_last_holds_for_tokens_from_before_as_well(flow, clerk):
    before = allow(flow, scope="mcp:read mcp:write")
    after = allow(flow, scope="mcp:read mcp:write", granted=["mcp:read"], models=[ORDERS])

    for tokens in (before, after):
        assert labels_of(list_models(flow, tokens)) == {ORDERS}
        assert flow.tool(tokens["access_token"], "pay", number="1").status_code == 403
    renewed = flow.refresh(before["refresh_token"]).json()
    assert labels_of(list_models(flow, renewed)) == {ORDERS}


def test_people_are_asked_whoever_has_checked_the_client_and_told_if_nobody_has(flow, clerk):
    unchecked = flow.ask().content.decode()
    flow.application.registration_source = "manual"
    flow.application.client_id = "checked"
    flow.application.skip_authorization = True
    flow.application.save()
    checked = flow.ask().content.decode()

    assert "It says that it comes from <strong>claude.example</strong>." in unchecked
    assert "Allow Claude to use" in checked
    assert "Nobody at this site has checked" not in checked
    assert not Authorization.objects.exists()
    assert allow(flow)["scope"] == EVERYTHING


@pytest.mark.parametrize("is_ended", [False, True])
def test_consent_ends_when_the_person_wanted_and_the_page_starts_with_the_limits_from_before(
    flow, clerk, is_ended
):
    allow(flow, models=[TAGS], read_only="on", lifetime="1")
    earlier = Authorization.objects.get()
    left = earlier.expires_at - timezone.now()
    assert timedelta(hours=23) < left < timedelta(hours=25)
    if is_ended:
        earlier.end()

    page = flow.ask().content.decode()
    allow(flow, lifetime="before")

    assert fields_of(page)["models"] == [TAGS]
    assert "later_models" not in fields_of(page)
    assert "as you chose before</option>" in page
    assert page.count("<details open>") >= 2
    now = Authorization.objects.get()
    assert (now.models, now.read_only) == ([TAGS], True)
    assert now.expires_at == earlier.expires_at
    # Those of the same client elsewhere stay there.
    Authorization.objects.update(resource="https://old.example/mcp")
    assert len(fields_of(flow.ask().content.decode())["models"]) > 1


def test_somebody_else_may_sign_in_and_comes_back_to_the_page(flow, clerk):
    address = flow.ask().request["PATH_INFO"] + "?client_id=x"

    answer = flow.browser.post(address, {"somebody_else": "1"})

    assert answer.headers["Location"].startswith("/admin/login/?next=/oauth/authorize%3Fclient_id")
    assert flow.ask().status_code == 302


@pytest.mark.parametrize(
    "changes",
    [
        {"lifetime": "9999"},
        {"lifetime": "before"},
        {"models": ["shop.secret"]},
        {"client_id": "nobody"},
        {"client_id": "a\0b"},
    ],
)
def test_what_the_page_did_not_offer_is_refused(flow, clerk, changes):
    answer = flow.answer(flow.ask(), **changes)

    assert answer.status_code == 400
    assert "invalid_request" in answer.content.decode()
    assert not Authorization.objects.exists()

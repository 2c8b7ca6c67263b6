from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from mcp_django.admin import tokens as token_forms
from mcp_django.auth.authenticate import authenticate
from mcp_django.models import PersonalToken
from mcp_django.principal import SCOPES
from tests.admin.looking import page_of
from tests.clients import browser_of

pytestmark = pytest.mark.django_db

LIST = reverse("admin:mcp_django_personaltoken_changelist")
ADD = reverse("admin:mcp_django_personaltoken_add")
VERBS = [f"{verb}_personaltoken" for verb in ("view", "add", "change", "delete")]


@pytest.fixture
def make_staff(make_user):
    """Staff who may do everything with tokens that the model's own permissions give."""
    return lambda name, *codenames: make_user(name, *VERBS, *codenames, is_staff=True)


@pytest.fixture
def alice(make_staff):
    return make_staff("alice")


@pytest.fixture
def bobs_token(make_staff):
    return PersonalToken.create(user=make_staff("bob"), name="bob's phone")[0]


def form(**changed):
    ends = timezone.now() + timedelta(days=5)
    return {
        "name": "laptop",
        "scopes": ["mcp:read"],
        "expires_at_0": ends.strftime("%Y-%m-%d"),
        "expires_at_1": "12:00:00",
        **changed,
    }


def secret_in(response):
    [found] = set(re.findall(r"mcp_[0-9A-Za-z]{49}", response.content.decode()))
    return found


# Making one


def test_the_form_starts_with_the_default_expiry_and_reading(alice):
    page = browser_of(alice).get(ADD)

    shown = page.context["adminform"].form
    days = shown["expires_at"].initial - timezone.now()
    assert timedelta(days=89) < days <= timedelta(days=90)
    assert shown["scopes"].initial == ["mcp:read"]
    assert "user" not in shown.fields


def test_the_secret_is_shown_once_with_all_that_it_is_for_and_kept_nowhere(alice, settings):
    browser = browser_of(alice)
    limits = {"read_only": "on", "models": ["shop.order"]}
    response = browser.post(
        ADD, form(name="<b>laptop", scopes=["mcp:read", "mcp:write"], **limits)
    )
    secret, token = secret_in(response), PersonalToken.objects.get()
    header = {"authorization": f"Bearer {secret}"}
    principal = authenticate(RequestFactory().post("/mcp", headers=header))

    pages = [browser.get(url).content.decode() for url in (LIST, page_of(token))]
    kept = [
        *(session.get_decoded() for session in Session.objects.all()),
        *LogEntry.objects.values_list("change_message", "object_repr"),
        *(cookie.output() for cookie in browser.cookies.values()),
        *PersonalToken.objects.values(),
    ]

    assert not any(secret in page or token.digest in page for page in pages)
    assert secret not in repr(kept)
    assert "no-store" in response["Cache-Control"]
    assert b"<b>laptop" not in response.content
    page = html.unescape(response.content.decode())
    for words in (
        "only time that the token is shown",
        f'--header "Authorization: Bearer {secret}"',
        f'"Authorization": "Bearer {secret}"',
        ">MCP<",
    ):
        assert words in page
    assert "Bearer TOKEN" not in page
    assert (principal.user, principal.scopes) == (alice, {"mcp:read", "mcp:write"})
    assert principal.restriction.read_only
    assert principal.restriction.models == {"shop.order"}
    settings.MCP_DJANGO = {"NAME": "Shop"}
    assert "Configuration with this token" not in browser.post(ADD, form()).content.decode()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"scopes": []}, "This field is required."),
        ({"scopes": ["mcp:all"]}, "is not one of the available choices"),
        ({"models": ["shop.nothing"]}, "is not one of the available choices"),
        ({"expires_at_0": "2020-01-01"}, "Choose a date in the future."),
        ({"expires_at_0": "2999-01-01"}, "A token lives 365 days at most."),
        ({"expires_at_0": ""}, "This field is required."),
    ],
    ids=str,
)
def test_a_form_with_a_mistake_makes_nothing(alice, wrong, sentence):
    response = browser_of(alice).post(ADD, form(**wrong))

    assert sentence in response.content.decode()
    assert not PersonalToken.objects.exists()


# Whose

NO_CHOICE = "not one of the available choices"
#: The permissions of somebody, what the form asks for, and whose token is made or what is wrong.
MAKERS = [
    ([*VERBS], {"user": "bob"}, "maker"),
    ([*VERBS, "manage_all_tokens"], {"user": "bob"}, "bob"),
    ([*VERBS, "manage_all_tokens"], {"user": "root"}, NO_CHOICE),
    ([], {"user": "bob"}, "maker"),
    (["view_personaltoken", "manage_all_tokens"], {"user": "bob"}, "maker"),
    ("superuser", {"user": "bob"}, "bob"),
    *(([], {"scopes": ["mcp:read", scope]}, NO_CHOICE) for scope in SCOPES[1:]),
]


@pytest.mark.parametrize(("codenames", "changes", "owner"), MAKERS)
def test_people_make_tokens_for_whom_and_for_what_they_may(
    make_user, bobs_token, codenames, changes, owner
):
    make_user("root", is_superuser=True)
    is_superuser = codenames == "superuser"
    names = () if is_superuser else codenames
    maker = make_user("maker", *names, is_staff=True, is_superuser=is_superuser)
    users = {user.get_username(): user for user in type(maker).objects.all()}
    if "user" in changes:
        changes = {"user": users[changes["user"]].pk}

    page = browser_of(maker).post(ADD, form(**changes)).content.decode()

    made = [token.user.get_username() for token in PersonalToken.objects.filter(name="laptop")]
    assert made == ([] if owner == NO_CHOICE else [owner])
    assert (NO_CHOICE in page) is (owner == NO_CHOICE)


def test_users_who_cannot_be_superusers_are_all_offered(alice, monkeypatch, rf):
    class Plain:
        class _meta:
            @staticmethod
            def get_fields():
                return []

        _default_manager = type(alice)._default_manager

    monkeypatch.setattr(token_forms, "get_user_model", lambda: Plain)
    request = rf.get("/")
    request.user = alice

    assert list(token_forms.possible_owners(request)) == [alice]


# Staff without any permission on tokens help themselves.


@pytest.fixture
def eve(make_user):
    """Staff with no permission at all."""
    return make_user("eve", is_staff=True)


def test_staff_without_permissions_make_tokens_for_reading(eve, alice):
    browser = browser_of(eve)

    assert "personaltoken" in browser.get("/admin/").content.decode()
    # They read no names of models.
    assert "shop.order" in browser_of(alice).get(ADD).content.decode()
    assert "shop." not in browser.get(ADD).content.decode()
    response = browser.post(ADD, form(models=["shop.order"]))

    token = PersonalToken.objects.get()
    assert token.models is None
    header = {"authorization": f"Bearer {secret_in(response)}"}
    assert authenticate(RequestFactory().post("/mcp", headers=header)).user == eve
    assert (token.user, token.scopes) == (eve, ["mcp:read"])


@pytest.mark.parametrize("codenames", [[], VERBS, ["manage_all_tokens"]])
def test_tokens_of_others_do_not_exist_for_staff(make_user, bobs_token, codenames):
    browser = browser_of(make_user("eve", *codenames, is_staff=True))

    pages = [browser.get(page) for page in (LIST, f"{LIST}?q=bob", "/admin/")]
    answers = [
        browser.get(page_of(bobs_token, "revoke")),
        browser.post(page_of(bobs_token, "revoke")),
        browser.get(page_of(bobs_token)),
        browser.post(page_of(bobs_token), {"name": "mine now"}),
        browser.get(page_of(bobs_token, "history")),
        browser.post(page_of(bobs_token, "delete"), {"post": "yes"}),
    ]
    browser.post(LIST, {"action": "revoke_selected", "_selected_action": [bobs_token.pk]})

    before = bobs_token.name
    bobs_token.refresh_from_db()
    assert (bobs_token.name, bobs_token.revoked_at) == (before, None)
    assert not any("phone" in page.content.decode() for page in pages)
    assert [answer.status_code for answer in answers[:2]] == [404, 404]
    assert all(answer.status_code in (302, 403) for answer in answers[2:])
    assert all(before not in answer.content.decode() for answer in answers)


def test_their_own_tokens_are_renamed_and_revoked_but_not_deleted(eve):
    token, _ = PersonalToken.create(user=eve, name="laptop")
    browser = browser_of(eve)

    browser.post(page_of(token), {"name": "desk"})
    deleted = browser.post(page_of(token, "delete"), {"post": "yes"})
    browser.post(page_of(token, "revoke"))

    token.refresh_from_db()
    assert token.name == "desk"
    assert deleted.status_code == 403
    assert token.state() == "revoked"


@pytest.mark.parametrize("lost", ["is_active", "is_staff"])
def test_who_is_no_active_staff_any_more_helps_himself_to_nothing(eve, lost):
    token, _ = PersonalToken.create(user=eve, name="laptop")
    browser = browser_of(eve)
    setattr(eve, lost, False)
    eve.save()

    answers = [
        browser.get(LIST),
        browser.post(ADD, form()),
        browser.post(page_of(token, "revoke")),
    ]

    token.refresh_from_db()
    assert {answer.status_code for answer in answers} == {302}
    assert all("login" in answer["Location"] for answer in answers)
    assert PersonalToken.objects.count() == 1
    assert token.revoked_at is None


def test_a_site_that_admits_others_gives_them_no_tokens(rf, django_user_model):
    model_admin = admin.site.get_model_admin(PersonalToken)
    request = rf.get("/")
    request.user = django_user_model.objects.create_user("customer")

    for name in ("module", "add", "view", "change"):
        assert not getattr(model_admin, f"has_{name}_permission")(request)


# Seeing and ending


def test_tokens_are_found_by_user_name_or_state(make_staff, bobs_token):
    mary = make_staff("mary", "manage_all_tokens")
    gone, _ = PersonalToken.create(user=mary, name="gone")
    gone.revoke()
    old, _ = PersonalToken.create(user=mary, name="old")
    PersonalToken.objects.filter(pk=old.pk).update(expires_at=timezone.now())
    browser = browser_of(mary)
    page = browser.get(LIST).content.decode()

    def found(query):
        return {one.name for one in browser.get(f"{LIST}?{query}").context["cl"].result_list}

    for word in ("bob", f"mcp_{bobs_token.hint}…", "read", "active"):
        assert word in page

    assert found("q=bob") == {bobs_token.name}
    assert found("q=old") == {"old"}
    assert found("state=active") == {bobs_token.name}
    assert found("state=expired") == {"old"}
    assert found("state=revoked") == {"gone"}
    assert found("") == {bobs_token.name, "old", "gone"}


def test_afterwards_only_the_name_can_change(alice):
    token, _ = PersonalToken.create(user=alice, name="laptop", models=["auth.group"])
    browser = browser_of(alice)

    assert "auth.group" in browser.get(page_of(token)).content.decode()
    browser.post(page_of(token), form(name="desk", scopes=["mcp:write"], read_only="on"))
    refused = browser.post(page_of(token), {**form(name=""), "_saveasnew": "1"})

    assert refused.status_code == 200
    after = PersonalToken.objects.get()
    assert after.name == "desk"
    assert (after.scopes, after.read_only, after.digest) == (["mcp:read"], False, token.digest)
    assert after.expires_at == token.expires_at


def test_revoking_ends_the_tokens_that_one_may_revoke_and_leaves_a_trace(alice, eve, bobs_token):
    names = ["manage_all_tokens", "view_personaltoken"]
    eve.user_permissions.set(Permission.objects.filter(codename__in=names))
    mine, _ = PersonalToken.create(user=eve, name="x")
    first, second = (PersonalToken.create(user=alice, name=name)[0] for name in "ab")
    second.revoke()

    def revoke(by, *tokens):
        chosen = [token.pk for token in tokens]
        sent = {"action": "revoke_selected", "_selected_action": chosen}
        return browser_of(by).post(LIST, sent, follow=True).content.decode()

    # Who may only look ends none of others.
    revoke(eve, bobs_token, mine)
    page = revoke(alice, first, second)

    assert "Personal tokens revoked: 1." in page
    states = {token.name: token.state() for token in PersonalToken.objects.all()}
    assert states == {bobs_token.name: "active", "x": "revoked", "a": "revoked", "b": "revoked"}
    assert [one.change_message for one in LogEntry.objects.filter(user=alice)] == ["Revoked."]


# The page that revokes one


def test_the_page_of_a_token_leads_to_its_end(alice):
    token, _ = PersonalToken.create(user=alice, name="laptop")
    browser = browser_of(alice)

    assert page_of(token, "revoke") in browser.get(page_of(token)).content.decode()
    asked = browser.get(page_of(token, "revoke"))
    token.refresh_from_db()
    assert token.state() == "active"
    assert "will stop working at once" in asked.content.decode()

    answer = browser.post(page_of(token, "revoke"), follow=True)
    browser.post(page_of(token, "revoke"))

    token.refresh_from_db()
    assert token.state() == "revoked"
    assert "is revoked already" in browser.get(page_of(token, "revoke")).content.decode()
    assert "The token “laptop” is revoked." in answer.content.decode()
    assert page_of(token, "revoke") not in answer.content.decode()
    assert [one.change_message for one in LogEntry.objects.all()] == ["Revoked."]
    for key in ("0", "x", "9" * 40, "\x00"):
        page = reverse("admin:mcp_django_personaltoken_revoke", args=[key])
        assert browser.post(page).status_code == 404


# What the scopes leave of models that are opened for writing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no limit"),
        ({}, "Nothing, also in models that are opened for writing: it lacks mcp:write,"),
        ({"read_only": True, "scopes": SCOPES}, "Nothing: it is read-only."),
        ({"scopes": SCOPES}, "What its user may change."),
        ({"scopes": ["mcp:write", "mcp:delete"]}, "it lacks mcp:action."),
    ],
)
def test_the_page_of_a_token_says_what_it_changes(alice, options, words):
    token, _ = PersonalToken.create(user=alice, name="laptop", **options)

    assert words in browser_of(alice).get(page_of(token)).content.decode()

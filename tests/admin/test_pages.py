"""The pages of staff: who gets them, what is text on them, and what they ask the database."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from mcp_django.admin import make_all_rows, register
from mcp_django.models import (
    CallRecord,
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    UserRestriction,
)
from tests.admin.looking import (
    add_session,
    add_stream,
    in_this_thread,
    many_models,
    queries_of,
    text_of,
    url,
)
from tests.clients import browser_of
from tests.exposure.stored import make_prompt
from tests.shop.models import Order

pytestmark = pytest.mark.django_db
ASSISTANTS = ["overview", "inspect", "cost", "try_it"]
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'>"
#: A prompt, a call and a token of the tests.
PK = 4711


def list_of(name):
    return reverse(f"admin:mcp_django_{name}_changelist")


def page_of(name, key, page="change"):
    return reverse(f"admin:mcp_django_{name}_{page}", args=[key])


#: An address, and the permission that opens it.
PAGES = [
    (url("inspect"), "inspect_as"),
    (url("try_it"), "try_tools"),
    (url("cost"), "view_exposedtool"),
    (url("groups"), "view_exposedmodel"),
    (url("live"), "view_session"),
    (url("live"), "view_livestream"),
    (list_of("exposedmodel"), "view_exposedmodel"),
    (page_of("exposedmodel", "shop.order"), "view_exposedmodel"),
    (list_of("exposedtool"), "view_exposedtool"),
    (page_of("exposedtool", "echo"), "view_exposedtool"),
    (list_of("exposedprompt"), "view_exposedprompt"),
    (page_of("exposedprompt", "shop_greeting"), "view_exposedprompt"),
    (page_of("serversettings", "default"), "view_serversettings"),
    (list_of("userrestriction"), "view_userrestriction"),
    (list_of("callrecord"), "view_callrecord"),
    (page_of("callrecord", PK), "view_callrecord"),
    (list_of("prompttemplate"), "view_prompttemplate"),
    (reverse("admin:mcp_django_prompttemplate_add"), "add_prompttemplate"),
    (reverse("admin:mcp_django_prompttemplate_upload"), "add_prompttemplate"),
    *(
        (page_of("prompttemplate", PK, page), "view_prompttemplate")
        for page in ("change", "versions", "preview")
    ),
]


@pytest.fixture(autouse=True)
def _inline():
    with in_this_thread():
        yield


def fill(make_user, word, *, pk=None):
    """Something of each kind that pages show, which is called by this word."""
    person = make_user(word, "view_order", is_staff=True)
    group = Group.objects.create(name=word)
    person.groups.add(group)
    token, _ = PersonalToken.create(user=person, name=word)
    PersonalToken.objects.filter(pk=token.pk).update(id=pk or token.pk)
    UserRestriction.objects.create(user=person)
    short = word[:40]
    texts = {"title": word, "description": word}
    ExposedModel.objects.create(label=word, notes=word)
    ExposedTool.objects.create(name=short, **texts).groups.add(group)
    ExposedPrompt.objects.create(name=short, **texts).groups.add(group)
    make_prompt(short, word, pk=pk, groups=[group], **texts)
    Order.objects.create(number=short)
    CallRecord.objects.create(
        **dict.fromkeys(("principal", "client", "method", "target", "reason"), word),
        pk=pk,
        user=person,
        kind="tool",
        outcome="failed",
        arguments={word: word},
    )
    name, uri, principal = f"{word}\u202e", f"x://{word}", {"principal": word}
    if pk is not None:
        said = {"name": name, "version": {"x": word}}
        add_session(user=person, uris=[uri], client=said, **principal)
    add_stream(f"stream of {person.pk}", user=person, client=name, topics=(uri,), **principal)


# Who gets them


@pytest.mark.parametrize(("address", "codename"), PAGES)
def test_a_page_is_for_staff_with_the_permission_for_it_and_no_other_site_posts_to_it(
    make_user, address, codename
):
    make_all_rows(using="default")
    fill(make_user, "ada", pk=PK)
    reader = make_user("reader", codename, is_staff=True)
    others = ("view_order", "change_callrecord", "add_callrecord", "delete_callrecord")
    other = browser_of(make_user("other", *others, is_staff=True))

    strangers = [Client(), browser_of(make_user("outside", codename))]

    assert browser_of(reader).get(address).status_code == 200
    assert browser_of(reader, enforce_csrf_checks=True).post(address).status_code == 403
    assert [other.get(address).status_code, other.post(address).status_code] == [403, 403]
    for stranger in strangers:
        for answer in (stranger.get(address), stranger.post(address)):
            assert answer.headers["Location"].startswith("/admin/login/")


@pytest.mark.parametrize(
    ("address", "codename"), [row for row in PAGES if row[0].endswith(("/change/", "/versions/"))]
)
def test_who_may_only_look_sees_a_page_and_changes_nothing(make_user, address, codename):
    make_all_rows(using="default")
    fill(make_user, "ada", pk=PK)
    browser = browser_of(make_user("reader", codename, is_staff=True))
    sent = {"level": 0, "enabled": "false", "read_only": "on", "restore": 1, "name": "forged"}

    page = browser.get(address).content.decode()

    assert not re.findall(r'name="(?:level|enabled|read_only|restore|name|_save)"', page)
    assert browser.post(address, sent).status_code == 403


@pytest.mark.parametrize("name", ASSISTANTS)
def test_the_pages_about_assistants_are_kept_nowhere(admin_user, name):
    assert "no-store" in browser_of(admin_user).get(url(name))["Cache-Control"]


@pytest.mark.parametrize("address", [*dict(PAGES), url("overview")])
def test_the_pages_of_a_second_admin_lead_to_pages_of_its_own(
    settings, admin_user, make_user, address
):
    settings.ROOT_URLCONF = "tests.admin.office_urls"
    make_all_rows(using="default")
    fill(make_user, "ada", pk=PK)

    page = browser_of(admin_user).get(address.replace("/admin/", "/office/"))

    assert page.status_code == 200
    content = page.content.decode()
    assert 'href="/office/' in content
    assert 'href="/admin/' not in content
    if "/assistants/" in address and address not in (url("live"), url("groups")):
        for name in ASSISTANTS:
            assert f'href="{url(name).replace("/admin/", "/office/")}"' in content


def test_a_second_admin_has_the_same_pages_and_what_is_decided_there_counts(
    settings, admin_user, staff
):
    settings.ROOT_URLCONF = "tests.admin.office_urls"
    office, browser = import_module(settings.ROOT_URLCONF).office, browser_of(admin_user)
    ExposedModel.objects.create(label="shop.order")
    page = page_of("exposedmodel", "shop.order").replace("/admin/", "/office/")
    form = browser.get(page).context["adminform"].form
    codes = {f"uses-{name}-code": "1" for name in form.fields["uses"].initial}
    inspect = reverse("admin:mcp_django_inspect", current_app="office")

    looked = browser.post(inspect, {"username": "staff"})
    decided = browser.post(page, {"level": 2, "based_on": form["based_on"].value(), **codes})

    assert "As staff" in text_of(looked)
    assert decided.url.startswith("/office/")
    assert ExposedModel.objects.get(label="shop.order").level == 2
    pages = [
        {model for model in site._registry if model._meta.app_label == "mcp_django"}
        for site in (admin.site, office)
    ]
    assert pages[0] == pages[1]
    with pytest.raises(admin.exceptions.AlreadyRegistered):
        register(office)


@pytest.mark.parametrize(
    "address",
    [
        page_of("exposedtool", "echo"),
        page_of("exposedmodel", "shop.order"),
        reverse("admin:mcp_django_prompttemplate_add"),
    ],
)
def test_where_there_are_no_groups_the_page_says_so(admin_user, address):
    browser = browser_of(admin_user)
    make_all_rows(using="default")
    words = "There are no groups yet, so this is for everybody."

    assert words in browser.get(address).content.decode()
    Group.objects.create(name="Support")
    assert words not in browser.get(address).content.decode()


# What they show

#: Nothing on these pages is by somebody else.
OWN = (page_of("serversettings", "default"), reverse("admin:mcp_django_prompttemplate_upload"))
#: Addresses, and what is posted to them.
SHOWN = [
    *((address, None) for address in dict(PAGES) if address not in OWN),
    (url("overview"), None),
    (list_of("personaltoken"), None),
    *((page_of("personaltoken", PK, page), None) for page in ("change", "delete", "history")),
    (list_of("exposedmodel"), {"q": EVIL}),
    (url("inspect"), {"username": EVIL, "token": "", "model": "shop.order"}),
    (url("cost"), {"username": EVIL, "token": ""}),
    (page_of("prompttemplate", PK, "preview"), {"username": EVIL}),
]


@pytest.mark.parametrize(("address", "sent"), SHOWN)
def test_whatever_people_and_clients_write_is_text_and_never_markup(
    admin_user, make_user, address, sent
):
    make_all_rows(using="default")
    fill(make_user, EVIL, pk=PK)
    ExposedModel.objects.filter(label="shop.order").update(fields=["id", "number", EVIL])
    ExposedTool.objects.filter(name="echo").update(title=EVIL, description=EVIL)
    browser = browser_of(admin_user)

    page = browser.get(address) if sent is None else browser.post(address, sent)

    content = page.content.decode()
    assert page.status_code == 200
    for raw in ("<script>alert", "<img src=x", "\u202e"):
        assert raw not in content
    assert "&lt;script&gt;alert" in content


# What they ask


@pytest.mark.parametrize(("address", "sent"), SHOWN)
def test_a_page_asks_no_more_queries_about_many_things_than_about_few(
    admin_user, make_user, address, sent
):
    make_all_rows(using="default")
    fill(make_user, EVIL, pk=PK)
    browser = browser_of(admin_user)

    def look():
        return browser.get(address) if sent is None else browser.post(address, sent)

    look()
    few = queries_of(look)
    for number in range(10):
        fill(make_user, f"u{number}")
    with many_models(100):
        # New users are new rights, which are read anew.
        look()
        many = queries_of(look)

    assert many <= few + 2

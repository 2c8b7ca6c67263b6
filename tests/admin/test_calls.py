from __future__ import annotations

import csv
import html
import re
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from mcp_django.admin import calls, make_all_rows
from mcp_django.auth.authenticators import principal_of
from mcp_django.models import CallRecord, PersonalToken, UserRestriction
from tests.admin.looking import add_session, url
from tests.clients import browser_of

pytestmark = pytest.mark.django_db
LIST = "/admin/mcp_django/callrecord/"


@pytest.fixture
def make_user(make_user):
    return partial(make_user, is_staff=True)


@pytest.fixture
def auditor(make_user):
    return make_user("auditor", "view_callrecord")


@pytest.fixture
def browser(auditor):
    return browser_of(auditor)


def called(user=None, **changes):
    facts = {
        "kind": "tool",
        "principal": f"default/user:{user and user.pk}/laptop",
        "client": "Claude 1",
        "method": "tools/call",
        "target": "find_records shop.order",
        "outcome": "done",
    }
    return CallRecord.objects.create(user=user, **{**facts, **changes})


def targets(response):
    return [record.target for record in response.context["cl"].result_list]


def detail(record):
    return f"{LIST}{record.pk}/change/"


# Who sees them


def test_pages_about_a_model_a_tool_a_user_and_a_token_link_to_its_calls(make_user):
    auditor = make_user(
        "auditor",
        *("view_callrecord", "view_exposedmodel", "view_exposedtool", "view_userrestriction"),
        *("inspect_as", "view_session", "view_user"),
    )
    make_all_rows(using="default")
    token, _ = PersonalToken.create(user=auditor, name="my phone")
    restriction = UserRestriction.objects.create(user=auditor)
    mine = called(auditor, principal=principal_of(token).key)
    called(make_user("bob"), target="echo")
    add_session(user=auditor)
    browser = browser_of(auditor)

    def links():
        changed = [
            "exposedmodel/shop.order",
            "exposedtool/find_records",
            f"userrestriction/{restriction.pk}",
            f"personaltoken/{token.pk}",
        ]
        pages = [browser.get(f"/admin/mcp_django/{page}/change/") for page in changed]
        pages += [browser.get(url("live")), browser.post(url("inspect"), {"username": "auditor"})]
        sources = [page.content.decode() for page in pages]
        return [re.findall(rf'href="({LIST}\?[^"]*)"', source) for source in sources]

    for [link] in links():
        assert targets(browser.get(html.unescape(link))) == [mine.target], link
    auditor.user_permissions.remove(Permission.objects.get(codename="view_callrecord"))
    assert links() == [[]] * 6


def test_with_the_permission_there_are_those_of_everybody(browser, make_user):
    record = called(make_user("bob"), target="echo", arguments={"model": "shop.order"})
    silent = called(None, target="anonymous", reason="The query cannot run")

    page = browser.get(LIST)
    pages = [browser.get(detail(one)).content.decode() for one in (record, silent)]

    assert targets(page) == ["anonymous", "echo"]
    called(target="", method="tools/list")
    time = record.at.strftime("%Y-%m-%d %H:%M:%S")
    assert "tools/list" in browser.get(LIST).content.decode()
    for words in ("bob", "default/user:None/laptop", "The query cannot run", time):
        assert words in page.content.decode()
    assert "shop.order" in pages[0]
    assert "not kept" in pages[1]
    assert "The query cannot run" in pages[1]
    # The records of a deleted user stay.
    record.user.delete()
    record.refresh_from_db()
    assert record.user is None
    assert record.principal in browser.get(detail(record)).content.decode()


@pytest.mark.parametrize("superuser", [False, True])
def test_nobody_adds_changes_or_deletes_one(browser, auditor, superuser):
    auditor.is_superuser = superuser
    auditor.save()
    auditor.user_permissions.set(Permission.objects.filter(codename__endswith="_callrecord"))
    record = called(auditor)

    answers = [
        browser.get(f"{LIST}add/"),
        browser.post(f"{LIST}add/", {"method": "forged"}),
        browser.post(detail(record), {"method": "forged"}),
        browser.get(f"{LIST}{record.pk}/delete/"),
        browser.post(f"{LIST}{record.pk}/delete/", {"post": "yes"}),
        browser.post(LIST, {"action": "delete_selected", "_selected_action": record.pk}),
    ]

    assert {answer.status_code for answer in answers[:-1]} == {403}
    assert [one.method for one in CallRecord.objects.all()] == ["tools/call"]


# The list


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"kind__exact": "resource"}, ["django://site"]),
        ({"outcome__exact": "denied"}, ["pay"]),
        ({"client": "Editor 2"}, ["pay"]),
        ({"client": "nobody has it"}, []),
        ({"target": "find_records"}, ["find_records shop.order", "find_records"]),
        ({"target": "find_records shop.order"}, ["find_records shop.order"]),
        ({"at__gte": (timezone.now() - timedelta(days=1)).isoformat()}, ["pay", "django://site"]),
        *(({"q": words}, ["pay"]) for words in ("search for", "Editor 2", "ay", "c0ffee")),
        # Nonsense is no crash.
        *(
            ({name: value}, None)
            for name in ("user", "client", "target", "at__gte")
            for value in ("nonsense", "\x00", "9" * 500)
        ),
    ],
)
def test_filters_leave_what_they_say(browser, auditor, query, expected):
    old = timezone.now() - timedelta(days=60)
    called(auditor, target="find_records", at=old - timedelta(seconds=1))
    called(auditor, at=old)
    called(auditor, kind="resource", target="django://site")
    principal = "default/user:7/search for"
    facts = {"principal": principal, "client": "Editor 2", "correlation_id": "c0ffee"}
    called(auditor, target="pay", outcome="denied", **facts)

    page = browser.get(LIST, query)

    if expected is None:
        assert page.status_code in (200, 302)
    else:
        assert targets(page) == expected


def test_a_call_leads_to_the_records_that_it_wrote_and_to_all_calls_that_wrote_them(browser):
    first = called(target="update_record", model="shop.order", keys='["5", "a/b"]')
    last = called(target="delete_record", model="shop.order", keys='["5"]')
    called(target="other", model="shop.order", keys='["55"]')
    called(target="customer", model="shop.customer", keys='["5"]')
    called(target="gone", model="shop.gone", keys='["5"]')

    page = html.unescape(browser.get(detail(first)).content.decode())
    links = re.findall(r'href="([^"]+)"', page[page.index("Records written") :])

    assert links[0] == "/admin/shop/order/5/change/"
    assert links[2] == "/admin/shop/order/a_2Fb/change/"
    assert targets(browser.get(links[1])) == [last.target, first.target]
    assert targets(browser.get(links[3])) == [first.target]
    gone = browser.get(detail(CallRecord.objects.get(target="gone"))).content.decode()
    assert "5 (<a href=" in gone


def test_selected_calls_are_exported_and_no_cell_is_a_formula(browser, auditor):
    called(target="not selected")
    chosen = called(auditor, client="=1+1", arguments={"model": "shop.order"}, reason="a, b")

    response = browser.post(LIST, {"action": "export_csv", "_selected_action": [chosen.pk]})
    heading, row = csv.reader(response.content.decode().splitlines())

    cells = dict(zip(heading, row, strict=True))
    assert cells["client"] == "'=1+1"
    assert cells["user"] == str(auditor.pk)
    assert cells["arguments"] == '{"model": "shop.order"}'
    assert cells["reason"] == "a, b"


def test_filters_offer_what_the_newest_records_have_and_users_by_name(
    browser, auditor, make_user, monkeypatch
):
    bob = make_user("bob")
    monkeypatch.setattr(calls, "LOOKED_AT", 3)
    monkeypatch.setattr(calls, "MOST_VALUES", 2)
    called(auditor, client="Old 1", at=timezone.now() - timedelta(days=1))
    for user, client in ((bob, "New 1"), (auditor, ""), (bob, "New 2")):
        called(user, client=client, target=f"of {user.get_username()}")

    specs = {one.title: one for one in browser.get(LIST).context["cl"].filter_specs}

    offered = specs["client"].lookup_choices
    assert sorted(value for value, _ in offered) == ["New 1", "New 2"]
    names = {(str(auditor.pk), "auditor"), (str(bob.pk), "bob")}
    assert set(specs["user"].lookup_choices) == names
    assert targets(browser.get(LIST, {"user": bob.pk})) == ["of bob"] * 2


def test_columns_cannot_be_sorted_by_and_pages_end_where_counting_does(
    browser, monkeypatch, auditor
):
    monkeypatch.setattr(calls, "MOST_COUNTED", 150)
    CallRecord.objects.bulk_create(CallRecord(method="x") for _ in range(200))

    page = browser.get(LIST, {"o": "5"})

    assert page.context["cl"].paginator.count == 150
    assert "sortable" not in page.content.decode()
    assert browser.get(LIST, {"p": 2}).status_code == 200

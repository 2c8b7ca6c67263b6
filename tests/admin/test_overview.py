from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib import admin
from django.core.management import call_command
from django.test.utils import override_script_prefix
from django.urls import path
from django.utils import timezone

from mcp_django.asgi import get_mcp_application
from mcp_django.auth import resource
from mcp_django.exceptions import QueryError
from mcp_django.models import CallRecord, ExposedModel, PersonalToken
from mcp_django.testing import Client
from tests.admin.looking import allow, text_of, url
from tests.clients import browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def watcher(make_user):
    return make_user("watcher", "view_callrecord", is_staff=True)


@pytest.fixture
def make_call(watcher):
    def make(minutes=1, **facts):
        given = {"kind": "tool", "method": "tools/call", "target": "echo", "outcome": "done"}
        at = timezone.now() - timedelta(minutes=minutes)
        facts = {"principal": "default/user:1/x", "user": watcher, "at": at, **facts}
        return CallRecord.objects.create(**{**given, **facts})

    return make


# Who sees which block


def test_each_block_is_for_those_with_the_permission_for_it(watcher, make_user, make_call):
    make_call(client="Visible")
    owner = make_user("owner", is_staff=True)
    keeper = make_user("keeper", "view_personaltoken", "manage_all_tokens", is_staff=True)
    for user, name in ((keeper, "laptop"), (make_user("bob"), "bob's phone")):
        PersonalToken.create(user=user, name=name)

    of_watcher = text_of(browser_of(watcher).get(url("overview")))
    page_of_owner = browser_of(owner).get(url("overview"), {"period": "week"})
    of_keeper = text_of(browser_of(keeper).get(url("overview")))

    assert "Calls of the last 24 hours" in of_watcher
    assert "Visible" in of_watcher
    of_owner = text_of(page_of_owner)
    assert "figures" not in page_of_owner.context
    assert not [words for words in ("Calls of the last", "Visible") if words in of_owner]
    assert "Your tokens" in of_owner
    assert "Make a token" in of_owner
    # Own tokens are listed and those of others are not.
    assert "laptop" in of_keeper
    assert "bob" not in of_keeper
    assert browser_of(make_user("customer")).get(url("overview")).status_code == 302


def test_links_lead_to_the_pages_that_the_person_may_open(watcher):
    text = text_of(browser_of(watcher).get(url("overview")))
    assert not [words for words in ("What can it see?", "Try it", "Live") if words in text]

    names = ("inspect_as", "try_tools", "view_exposedtool", "view_session")
    allow(watcher, *(f"mcp_django.{name}" for name in names))
    page = browser_of(watcher).get(url("overview")).content.decode()

    for name in ("inspect", "try_it", "cost", "live"):
        assert f'href="{url(name)}"' in page
        assert browser_of(watcher).get(url(name)).status_code == 200


# The row in the lists of the admin


@pytest.mark.parametrize("page", ["/admin/", "/admin/mcp_django/"])
def test_a_row_leads_all_staff_to_the_page(staff, page):
    browser = browser_of(staff)

    assert ">Assistants</a>" in browser.get(page).content.decode()
    answer = browser.get("/admin/mcp_django/assistants/")
    assert answer["Location"] == url("overview")


def test_the_row_stands_for_no_records(admin_user):
    browser, out = browser_of(admin_user), StringIO()

    call_command("dumpdata", "mcp_django", stdout=out)
    ExposedModel.objects.create(label="mcp_django.assistants", level=5)

    assert "assistants" not in out.getvalue()
    assert "assistants" not in Client(user=admin_user).call_tool("list_models").text
    for page in ("add", "1/change", "1/delete", "1/history"):
        assert browser.get(f"/admin/mcp_django/assistants/{page}/").status_code == 404
    assert "assistants/add" not in browser.get("/admin/").content.decode()


# Connecting

ADVICE = ("Set PUBLIC_URL", "The path is /mcp .")
#: The setting, whether a developer is at work, and what is and is not on the page.
ADDRESSES = [
    ({"PUBLIC_URL": "http://testserver"}, False, ("http://testserver/mcp",), ADVICE),
    ({}, False, ADVICE, ("claude mcp add",)),
    ({}, True, ("http://evil.example/mcp", "claude mcp add"), ADVICE),
]


@pytest.mark.parametrize(("options", "debug", "words", "others"), ADDRESSES)
def test_the_address_is_that_of_the_settings_and_of_the_request_only_for_developers(
    watcher, settings, options, debug, words, others
):
    settings.ALLOWED_HOSTS, settings.DEBUG = ["*"], debug
    settings.MCP_DJANGO = {"NAME": "Shop", **options}

    text = text_of(browser_of(watcher).get(url("overview"), headers={"host": "evil.example"}))

    assert [word for word in words if word not in text] == []
    assert [word for word in others if word in text] == []
    assert debug or "evil.example" not in text


@pytest.mark.parametrize(("name", "server"), [("<b>Ädas Shop", "b-das-shop"), ("☃", "django")])
def test_configurations_name_the_server_as_clients_take_it(watcher, settings, name, server):
    settings.MCP_DJANGO = {"NAME": name, "PUBLIC_URL": "https://shop.example.com/"}

    page = browser_of(watcher).get(url("overview")).content.decode()

    assert f"claude mcp add --transport http {server} https://shop.example.com/mcp" in page
    assert "<b>" not in page.split("mcp-connect")[1].split("</section>")[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mcp", "https://shop.example.com/mcp"),
        ("/api/assistants/", "https://shop.example.com/api/assistants"),
        ("", "https://shop.example.com/"),
    ],
)
def test_the_path_is_that_of_the_application(settings, path, expected):
    settings.MCP_DJANGO = {"PUBLIC_URL": "https://shop.example.com"}

    get_mcp_application(path=path)

    assert resource.endpoint_url() == expected


class WithoutEndpoint:
    urlpatterns = [path("admin/", admin.site.urls)]


def test_a_script_name_stands_before_the_path(settings):
    settings.MCP_DJANGO = {"PUBLIC_URL": "https://example.com"}
    with override_script_prefix("/shop/"):
        of_view = resource.endpoint_url()
        resource.routed_to("/mcp")
        of_application = resource.endpoint_url()

    assert of_view == of_application == "https://example.com/shop/mcp"
    resource._routed.clear()
    settings.ROOT_URLCONF = WithoutEndpoint
    assert resource.endpoint_path() == "/mcp"


# Calls


def test_calls_of_a_day_are_added_up(watcher, make_call, make_user):
    nothing = text_of(browser_of(watcher).get(url("overview")))
    gone = make_user("gone")
    for number in range(10):
        make_call(outcome=["done", "asked", "refused"][number % 3], milliseconds=number * 10)
    make_call(
        outcome="failed", milliseconds=1000, bytes=2048, user=gone, principal="default/user:77/x"
    )
    gone.delete()
    make_call(minutes=60 * 25, milliseconds=9000)

    page = browser_of(watcher).get(url("overview"))

    assert (
        "Calls 11 Errors 1 (9.1 %) Median 50 ms 95th percentile 1000 ms Slowest 1000 ms "
        "Bytes 2.0 KB Tokens (about) 512"
    ) in text_of(page).replace("\xa0", " ")
    assert len(page.context["figures"]["last"]) == 10
    assert "default/user:77/x" in text_of(page)
    assert "There were none." in nothing
    assert "Last calls" not in nothing


@pytest.mark.parametrize(
    ("asked", "calls"),
    [("week", 2), ("day", 1), ("year", 1), ("", 1), ("<script>", 1), ("week\x00", 1)],
)
def test_any_other_period_is_a_day(watcher, make_call, asked, calls):
    for hours in (1, 50, 24 * 8):
        make_call(minutes=60 * hours)

    page = browser_of(watcher).get(url("overview"), {"period": asked})

    assert f"Calls {calls} Errors 0" in text_of(page)
    assert "<script>" not in page.content.decode().split("mcp-look", 1)[1]


def test_what_is_called_most_comes_first_and_a_list_has_an_end(watcher, make_call, make_user):
    bob = make_user("bob")
    for _ in range(3):
        make_call(target="echo", client="A", milliseconds=10, bytes=100)
    make_call(target="pay", client="B", outcome="failed", user=bob)
    make_call(target="", method="tools/list", client="", user=None)

    text = text_of(browser_of(watcher).get(url("overview"))).replace("\xa0", " ")
    for number in range(20):
        make_call(client=f"client {number}")
    tops = browser_of(watcher).get(url("overview")).context["figures"]["tops"]

    assert "Average ms Bytes echo 3 0 10 300 bytes pay 1 1 0 0 bytes Users with" in text
    assert "Bytes watcher 3 0 10 300 bytes anonymous or deleted 1 0 0 0 bytes bob 1" in text
    assert "Bytes A 3 0 10 300 bytes unnamed 1 0 0 0 bytes B 1 1" in text
    assert [len(lines) for _, _, lines in tops] == [2, 3, 5]


@pytest.mark.parametrize(
    ("model", "words"), [(CallRecord, "All calls"), (PersonalToken, "laptop")]
)
def test_a_site_without_the_list_of_calls_or_tokens_has_no_link_to_it(
    watcher, monkeypatch, model, words
):
    PersonalToken.create(user=watcher, name="laptop")
    allow(watcher, "mcp_django.inspect_as", "mcp_django.view_personaltoken")
    browser = browser_of(watcher)
    assert words in text_of(browser.get(url("overview")))
    assert "laptop" in text_of(browser.get(url("inspect")))

    monkeypatch.delitem(admin.site._registry, model)

    assert words not in text_of(browser.get(url("overview")))
    assert ("laptop" in text_of(browser.get(url("inspect")))) is (words != "laptop")


def test_a_database_that_takes_too_long_is_said_to(watcher, monkeypatch):
    def slow(since):
        raise QueryError("slow")

    monkeypatch.setattr("mcp_django.admin.overview.figures", slow)

    assert "too many calls to add them up" in text_of(browser_of(watcher).get(url("overview")))

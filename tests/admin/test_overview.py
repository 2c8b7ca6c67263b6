from __future__ import annotations

from datetime import timedelta
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.core.management import call_command
from django.urls import clear_script_prefix, set_script_prefix
from django.utils import timezone

from mcp_django.admin.inspect.impersonation import tokens_for
from mcp_django.admin.overview import own_tokens
from mcp_django.asgi import get_mcp_application
from mcp_django.auth import resource
from mcp_django.exceptions import QueryError
from mcp_django.models import CallRecord, ExposedModel, PersonalToken
from mcp_django.testing import Client
from tests.admin.looking import allow, queries_of, text_of, url
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


def test_staff_without_permissions_see_the_address_and_their_own_tokens(staff):
    text = text_of(browser_of(staff).get(url("overview")))

    assert "http://testserver/mcp" in text
    assert "Make a token" in text
    assert "Calls of the last" not in text


def test_nobody_else_gets_the_page(make_user):
    assert browser_of(make_user("customer")).get(url("overview")).status_code == 302


def test_each_block_is_for_those_with_the_permission_for_it(watcher, make_user, make_call):
    make_call()
    owner = make_user("owner", "view_personaltoken", "add_personaltoken", is_staff=True)

    of_watcher = text_of(browser_of(watcher).get(url("overview")))
    of_owner = text_of(browser_of(owner).get(url("overview")))

    assert "Calls of the last 24 hours" in of_watcher
    assert "Calls of the last" not in of_owner
    assert "Your tokens" in of_owner
    assert "Make a token" in of_owner


def test_links_lead_to_the_pages_that_the_person_may_open(watcher):
    text = text_of(browser_of(watcher).get(url("overview")))
    assert "What can it see?" not in text
    assert "Try it" not in text

    allow(watcher, "mcp_django.inspect_as", "mcp_django.try_tools", "mcp_django.view_exposedtool")
    page = browser_of(watcher).get(url("overview")).content.decode()

    for name in ("inspect", "try_it", "cost"):
        assert f'href="{url(name)}"' in page
        assert browser_of(watcher).get(url(name)).status_code == 200


# The row in the lists of the admin


@pytest.mark.parametrize("page", ["/admin/", "/admin/mcp_django/"])
def test_a_row_leads_all_staff_to_the_page(staff, page):
    browser = browser_of(staff)

    assert ">Assistants</a>" in browser.get(page).content.decode()
    answer = browser.get("/admin/mcp_django/assistants/")
    assert answer["Location"] == url("overview")


def test_the_row_has_no_records_to_add_change_or_delete(admin_user):
    browser = browser_of(admin_user)

    for page in ("add", "1/change", "1/delete", "1/history"):
        assert browser.get(f"/admin/mcp_django/assistants/{page}/").status_code == 404
    assert "assistants/add" not in browser.get("/admin/").content.decode()


def test_a_dump_of_the_site_asks_for_no_table_of_the_row(db):
    out = StringIO()

    call_command("dumpdata", "mcp_django", stdout=out)

    assert "assistants" not in out.getvalue()


def test_the_row_is_no_model_for_assistants(admin_user):
    ExposedModel.objects.create(label="mcp_django.assistants", level=5)

    models = Client(user=admin_user).call_tool("list_models").text

    assert "assistants" not in models


# Connecting


def test_the_address_is_that_of_the_settings_and_never_of_the_request(watcher, settings):
    settings.ALLOWED_HOSTS = ["*"]

    page = browser_of(watcher).get(url("overview"), headers={"host": "evil.example"})

    assert "http://testserver/mcp" in text_of(page)
    assert "evil.example" not in page.content.decode()


def test_without_a_public_url_there_is_no_address_but_advice(watcher, settings):
    settings.MCP_DJANGO = {"NAME": "Shop"}

    text = text_of(browser_of(watcher).get(url("overview")))

    assert "Set PUBLIC_URL" in text
    assert "The path is /mcp ." in text
    assert "claude mcp add" not in text


def test_on_a_machine_of_a_developer_the_address_is_that_of_the_request(watcher, settings):
    settings.MCP_DJANGO, settings.DEBUG = {"NAME": "Shop"}, True

    text = text_of(browser_of(watcher).get(url("overview")))

    assert "http://testserver/mcp" in text
    assert "claude mcp add" in text


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


def test_a_script_name_stands_before_the_path(settings):
    settings.MCP_DJANGO = {"PUBLIC_URL": "https://example.com"}
    set_script_prefix("/shop/")
    try:
        of_view = resource.endpoint_url()
        resource.routed_to("/mcp")
        of_application = resource.endpoint_url()
    finally:
        clear_script_prefix()

    assert of_view == of_application == "https://example.com/shop/mcp"


def test_where_nothing_is_routed_the_usual_path_is_told(settings):
    settings.ROOT_URLCONF = "tests.admin.no_endpoint"

    assert resource.endpoint_path() == "/mcp"


# Tokens


def test_own_tokens_are_listed_and_those_of_others_are_not(make_user):
    owner = make_user("owner", "view_personaltoken", "manage_all_tokens", is_staff=True)
    PersonalToken.create(user=owner, name="laptop")
    PersonalToken.create(user=make_user("bob"), name="bob's phone")

    text = text_of(browser_of(owner).get(url("overview")))

    assert "laptop" in text
    assert "bob" not in text


# Calls


def test_calls_of_a_day_are_added_up(watcher, make_call):
    for number in range(10):
        make_call(outcome=["done", "asked", "refused"][number % 3], milliseconds=number * 10)
    make_call(outcome="failed", milliseconds=1000, bytes=2048)
    make_call(minutes=60 * 25, milliseconds=9000)

    page = browser_of(watcher).get(url("overview"))

    assert (
        "Calls 11 Errors 1 (9.1 %) Median 50 ms 95th percentile 1000 ms Slowest 1000 ms "
        "Bytes 2.0 KB Tokens (about) 512"
    ) in text_of(page).replace("\xa0", " ")
    assert len(page.context["figures"]["last"]) == 10


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


def test_what_is_called_most_comes_first(watcher, make_call, make_user):
    bob = make_user("bob")
    for _ in range(3):
        make_call(target="echo", client="A", milliseconds=10, bytes=100)
    make_call(target="pay", client="B", outcome="failed", user=bob)
    make_call(target="", method="tools/list", client="", user=None)

    text = text_of(browser_of(watcher).get(url("overview"))).replace("\xa0", " ")

    assert "Average ms Bytes echo 3 0 10 300 bytes pay 1 1 0 0 bytes Users with" in text
    assert "Bytes watcher 3 0 10 300 bytes anonymous or deleted 1 0 0 0 bytes bob 1" in text
    assert "Bytes A 3 0 10 300 bytes unnamed 1 0 0 0 bytes B 1 1" in text


def test_without_the_permission_no_figure_is_shown(staff, make_call):
    make_call(client="Visible")

    page = browser_of(staff).get(url("overview"), {"period": "week"})

    assert "figures" not in page.context
    assert "Visible" not in page.content.decode()


def test_a_day_without_calls_says_so(watcher):
    text = text_of(browser_of(watcher).get(url("overview")))

    assert "There were none." in text
    assert "Last calls" not in text


def test_sizes_are_said_in_units_and_in_tokens(watcher, make_call):
    make_call(bytes=54_000)

    text = text_of(browser_of(watcher).get(url("overview")))

    assert "Bytes 52.7 KB Tokens (about) 13500" in text


def test_more_calls_are_no_more_queries_and_a_list_has_an_end(watcher, make_call):
    browser = browser_of(watcher)
    make_call()
    browser.get(url("overview"))
    before = queries_of(lambda: browser.get(url("overview")))

    for number in range(20):
        make_call(client=f"client {number}")

    assert queries_of(lambda: browser.get(url("overview"))) == before
    tops = browser.get(url("overview")).context["figures"]["tops"]
    assert [len(lines) for _, _, lines in tops] == [1, 1, 5]


def test_a_site_without_the_list_of_calls_has_no_link_to_it(watcher, monkeypatch):
    assert "All calls" in text_of(browser_of(watcher).get(url("overview")))

    monkeypatch.delitem(admin.site._registry, CallRecord)

    assert "All calls" not in text_of(browser_of(watcher).get(url("overview")))


def test_what_clients_call_themselves_is_text(watcher, make_call):
    make_call(client="<script>alert(1)</script>", target="<img src=x onerror=alert(1)>")

    page = browser_of(watcher).get(url("overview")).content.decode()

    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_calls_of_a_deleted_user_stay(watcher, make_call, make_user):
    gone = make_user("gone")
    make_call(user=gone, principal="default/user:77/x")
    gone.delete()

    assert "default/user:77/x" in text_of(browser_of(watcher).get(url("overview")))


def test_a_database_that_takes_too_long_is_said_to(watcher, monkeypatch):
    def slow(since):
        raise QueryError("slow")

    monkeypatch.setattr("mcp_django.admin.overview.figures", slow)

    assert "too many calls to add them up" in text_of(browser_of(watcher).get(url("overview")))


def test_a_site_without_the_admin_of_tokens_shows_none(rf, staff):
    request = rf.get("/")
    request.user = staff
    without: Any = SimpleNamespace(admin_site=AdminSite("without"))

    assert own_tokens(without, request) == {}
    assert not tokens_for(without, request).exists()

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import clear_script_prefix, reverse, set_script_prefix
from django.utils import timezone

from mcp_django.admin.overview import figures, height_of
from mcp_django.asgi import get_mcp_application
from mcp_django.exceptions import QueryError
from mcp_django.models import CallRecord, PersonalToken
from mcp_django.transports import requests
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


def test_staff_without_anything_of_ours_get_no_page(staff):
    assert browser_of(staff).get(url("overview")).status_code == 403


def test_each_block_is_for_those_with_the_permission_for_it(watcher, make_user, make_call):
    make_call()
    owner = make_user("owner", "view_personaltoken", "add_personaltoken", is_staff=True)

    of_watcher = text_of(browser_of(watcher).get(url("overview")))
    of_owner = text_of(browser_of(owner).get(url("overview")))

    assert "Calls of the last 24 hours" in of_watcher
    assert "Your tokens" not in of_watcher
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


def test_snippets_name_the_server_as_clients_take_it(watcher, settings):
    settings.MCP_DJANGO = {"NAME": "<b>Ädas Shop", "PUBLIC_URL": "https://shop.example.com/"}

    response = browser_of(watcher).get(url("overview"))

    first = response.context["snippets"][0]["text"]
    assert "claude mcp add --transport http b-das-shop https://shop.example.com/mcp" in first
    assert "<b>" not in response.content.decode().split("mcp-connect")[1].split("</section>")[0]


def test_a_name_without_letters_still_names_a_server(watcher, settings):
    settings.MCP_DJANGO = {"NAME": "☃", "PUBLIC_URL": "https://shop.example.com"}

    first = browser_of(watcher).get(url("overview")).context["snippets"][0]["text"]

    assert "http django https://shop.example.com/mcp" in first


@pytest.fixture
def forget_route():
    before = list(requests._routed)
    yield
    requests._routed[:] = before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mcp", "https://shop.example.com/mcp"),
        ("/api/assistants/", "https://shop.example.com/api/assistants"),
        ("", "https://shop.example.com/"),
    ],
)
def test_the_path_is_that_of_the_application(settings, forget_route, path, expected):
    settings.MCP_DJANGO = {"PUBLIC_URL": "https://shop.example.com"}

    get_mcp_application(path=path)

    assert requests.endpoint_url() == expected


def test_a_script_name_stands_before_the_path(settings, forget_route):
    settings.MCP_DJANGO = {"PUBLIC_URL": "https://example.com"}
    set_script_prefix("/shop/")
    try:
        requests._routed.clear()
        of_view = requests.endpoint_url()
        requests.routed_to("/mcp")
        of_application = requests.endpoint_url()
    finally:
        clear_script_prefix()

    assert of_view == of_application == "https://example.com/shop/mcp"


def test_where_nothing_is_routed_the_usual_path_is_told(settings, forget_route):
    settings.ROOT_URLCONF = "tests.admin.no_endpoint"
    requests._routed.clear()

    assert requests.endpoint_path() == "/mcp"


# Tokens


def test_own_tokens_are_listed_and_those_of_others_are_not(make_user):
    owner = make_user("owner", "view_personaltoken", "manage_all_tokens", is_staff=True)
    PersonalToken.create(user=owner, name="laptop")
    PersonalToken.create(user=make_user("bob"), name="bob's phone")

    text = text_of(browser_of(owner).get(url("overview")))

    assert "laptop" in text
    assert "bob" not in text
    assert "Make a token" not in text


# Calls


def test_calls_of_a_day_are_added_up(watcher, make_call):
    for number in range(10):
        make_call(milliseconds=number * 10)
    make_call(outcome="failed", milliseconds=1000)
    make_call(minutes=60 * 25, milliseconds=9000)

    found = browser_of(watcher).get(url("overview")).context["figures"]

    assert (found.calls, found.errors, found.error_percent) == (11, 1, "9.1")
    assert (found.median, found.slow, found.slowest) == (50, 1000, 1000)
    assert len(found.last) == 10


def test_each_hour_has_a_bar_and_a_number(make_call, watcher):
    noon = timezone.now().replace(minute=30)
    make_call(at=noon)
    make_call(at=noon, outcome="crashed")
    make_call(at=noon - timedelta(hours=3))

    found = figures(now=noon)

    assert [bar.calls for bar in found.bars] == [0] * 20 + [1, 0, 0, 2]
    assert found.bars[-1].height == found.height
    assert found.bars[-1].error_height == found.height // 2
    assert found.bars[-4].height == found.height // 2
    assert found.bars[-1].y == 0
    assert found.most == 2


def test_one_call_among_thousands_is_still_drawn():
    assert height_of(1, 100_000) == 2
    assert height_of(0, 100_000) == 0


def test_a_day_without_calls_says_so(watcher):
    text = text_of(browser_of(watcher).get(url("overview")))

    assert "There were none." in text
    assert "Last calls" not in text


def test_the_drawing_has_its_numbers_as_text(watcher, make_call):
    make_call()
    make_call(outcome="denied")

    page = browser_of(watcher).get(url("overview")).content.decode()

    assert 'role="img"' in page
    assert "2 in all, 1 of them not done, at most 2 in one hour" in page


def test_many_calls_take_no_more_queries_than_few(watcher, make_call, stopped_clock):
    def queries():
        browser = browser_of(watcher)
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(url("overview")).status_code == 200
        return len(captured)

    make_call()
    few = queries()
    rows = [
        CallRecord(kind="tool", method="tools/call", principal=f"p{n}", outcome="done")
        for n in range(2000)
    ]
    CallRecord.objects.bulk_create(rows)

    assert queries() == few
    assert few <= 12


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
    def slow():
        raise QueryError("slow")

    monkeypatch.setattr("mcp_django.admin.overview.figures", slow)

    assert "too many calls to add them up" in text_of(browser_of(watcher).get(url("overview")))


def test_the_page_of_the_app_leads_to_the_overview(watcher):
    response = browser_of(watcher).get(reverse("admin:app_list", args=["mcp_django"]))

    assert f'href="{url("overview")}"' in response.content.decode()

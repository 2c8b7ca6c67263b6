"""What staff decide about tools, the server and single users in the admin."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.urls import reverse

from mcp_django.admin import make_all_rows
from mcp_django.exposure.decisions import read_decisions
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    ServerSettings,
    UserRestriction,
)
from mcp_django.testing import Client, ProtocolFailure
from tests.clients import CheckedClient, browser_of
from tests.decisions import decide_on_tool
from tests.exposure.stored import make_prompt

pytestmark = pytest.mark.django_db

LIST = reverse("admin:mcp_django_exposedtool_changelist")
SERVER = reverse("admin:mcp_django_serversettings_change", args=["default"])
SERVERS = reverse("admin:mcp_django_serversettings_changelist")
USERS = reverse("admin:mcp_django_userrestriction_changelist")


def page_of(name):
    return reverse("admin:mcp_django_exposedtool_change", args=[name])


def decided():
    return read_decisions("default").tools


@pytest.fixture(autouse=True)
def _rows(db):
    make_all_rows(using="default")


@pytest.fixture
def editor(make_user):
    names = ("exposedtool", "serversettings", "userrestriction", "exposedprompt")
    codenames = [f"{verb}_{name}" for name in names for verb in ("change", "add", "delete")]
    return make_user("editor", *codenames, "view_order", is_staff=True)


@pytest.fixture
def browser(editor):
    return browser_of(editor)


def save(browser, url, **changed):
    """Send the form of a page back as a browser would, with what somebody changed."""
    form = browser.get(url).context["adminform"].form
    sent = {}
    for name in form.fields:
        value = form[name].value()
        if name == "groups":
            value = [getattr(group, "pk", group) for group in value or []]
        if value not in (None, False):
            sent[name] = value
    sent = {name: value for name, value in {**sent, **changed}.items() if value is not None}
    return browser.post(url, sent)


def lines(browser, address=LIST, **query):
    return {row.name: row.line for row in browser.get(address, query).context["cl"].result_list}


# Tools


def test_every_tool_is_listed_with_where_it_is_from(browser):
    ExposedModel.objects.filter(label="shop.customer").update(level=3)

    found = lines(browser)

    told = {name: (line["source"], line["state"], line["effect"]) for name, line in found.items()}
    assert told["find_records"] == ("generic", "on", "only reads")
    assert told["delete_record"] == ("generic", "on", "may overwrite or delete")
    assert told["echo"] == ("function", "on", "only reads")
    assert told["shop_customer_greet"][:2] == ("admin action", "on")
    assert found["shop_customer_greet"]["remarks"] == (
        "Nobody gets it: shop.customer is at the level “read”, and actions need “act”"
    )
    assert not any(name.endswith("delete_selected") for name in found)


@pytest.mark.parametrize(
    ("query", "some", "others"),
    [
        ({"q": "ECHO_l"}, {"echo_later"}, {"echo"}),
        ({"source": "admin action"}, {"shop_customer_greet"}, {"echo", "find_records"}),
        ({"state": "off"}, {"echo"}, {"find_records"}),
        ({"state": "no longer in code"}, {"old_tool"}, {"echo"}),
        ({"q": "clerks"}, {"fail"}, {"echo"}),
        ({"decided": "staff"}, {"fail", "echo"}, {"old_tool", "find_records"}),
    ],
)
def test_the_list_is_searched_and_filtered(browser, query, some, others):
    decide_on_tool("echo", enabled=False)
    decide_on_tool("old_tool", enabled=False)
    decide_on_tool("fail").groups.add(Group.objects.create(name="clerks"))

    found = set(lines(browser, **query))

    assert some <= found
    assert not others & found


@pytest.mark.parametrize(
    ("name", "on"), [("echo", ""), ("find_records", ""), ("shop_customer_greet", "true")]
)
def test_a_tool_is_switched_off_and_on_again(browser, make_client, make_user, name, on):
    boss = make_user("boss", is_staff=True, is_superuser=True)
    # A row of another server decides nothing here.
    ExposedTool.objects.create(server="second", name=name, enabled=False)
    save(browser, page_of(name), enabled="false")
    off = CheckedClient(user=boss).tools()
    refused = make_client().failure("tools/call", name=name, arguments={})

    save(browser, page_of(name), enabled=on)

    assert refused == (-32602, f"Unknown tool: {name}")
    assert name not in off
    assert name in CheckedClient(user=boss).tools()
    assert not decided() or on


def test_words_annotations_and_limits_are_decided(browser, editor):
    save(
        browser,
        page_of("echo"),
        title="Parrot",
        description="Repeats.",
        stricter=["readOnlyHint", "destructiveHint"],
        needs_confirmation="on",
        calls_per_minute="5",
    )

    row = ExposedTool.objects.get(name="echo")
    assert row.annotations == {"readOnlyHint": False, "destructiveHint": True}
    assert (row.needs_confirmation, row.calls_per_minute) == (True, 5)
    found = next(one for one in Client(user=editor).list_tools() if one["name"] == "echo")
    assert (found["title"], found["description"]) == ("Parrot", "Repeats.")
    assert "confirmation" in found["inputSchema"]["properties"]
    shown = lines(browser)["echo"]
    assert shown["effect"] == "may overwrite or delete"
    assert shown["remarks"] == "Needs confirmation. 5 calls per minute"
    save(browser, page_of("echo"), stricter=[])
    assert ExposedTool.objects.get(name="echo").annotations == {}


def test_only_what_is_stricter_than_code_is_offered(browser):
    form = browser.get(page_of("delete_record")).context["adminform"].form

    assert [name for name, _ in form.fields["stricter"].choices] == ["openWorldHint"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"stricter": ["idempotentHint"]}, {"stricter": ["title"]}, {"calls_per_minute": "-1"},
        {"calls_per_minute": "0"}, {"calls_per_minute": "9" * 30}, {"calls_per_minute": "many"},
        {"title": "x" * 101}, {"description": "x" * 1001}, {"based_on": "forged"},
        {"groups": ["4711"]},
    ],
    ids=lambda wrong: str(wrong)[:40],
)  # fmt: skip
def test_a_forged_form_saves_nothing(browser, wrong):
    answer = save(browser, page_of("echo"), **wrong)

    assert answer.status_code == 200
    assert answer.context["errors"]
    assert not decided()


# The server


def test_instructions_and_read_only_are_decided_for_the_whole_server(browser, editor, configure):
    configure(INSTRUCTIONS="From the settings.")
    ServerSettings.objects.all().delete()
    assert browser.get(SERVERS).url == SERVER

    save(browser, SERVER, instructions="Ask twice.", read_only="on")

    assert Client(user=editor).discover()["instructions"] == "Ask twice."
    legacy = Client(user=editor, revision="2025-11-25")
    assert legacy.initialize()["instructions"] == "Ask twice."
    assert "pay" not in CheckedClient(user=editor).tools()
    page = browser.get(SERVER).content.decode()
    history = browser.get(re.search(r'href="([^"]+)" class="historylink"', page)[1])
    assert "read only: off -&gt; on" in history.content.decode()
    save(browser, SERVER, closed="on")
    assert LogEntry.objects.latest("pk").get_change_message() == "closed: off -> on"
    assert ServerSettings.objects.get().closed
    assert browser.get(SERVER.replace("default", "other")).status_code == 302


# Users


def test_a_user_is_made_read_only_and_blocked_and_let_in_again(browser, make_user):
    ada = make_user("ada", "change_order", is_staff=True)
    add = reverse("admin:mcp_django_userrestriction_add")

    browser.post(add, {"user": ada.pk, "read_only": "on"})
    twice = browser.post(add, {"user": ada.pk, "read_only": "on"})

    row = UserRestriction.objects.get()
    assert "pay" not in CheckedClient(user=ada).tools()
    assert "There is a restriction of this user already." in twice.content.decode()
    page = reverse("admin:mcp_django_userrestriction_change", args=[row.pk])
    browser.post(page, {"user": ada.pk, "blocked": "on"})
    row.refresh_from_db()
    assert row.blocked
    browser.post(page, {"user": ada.pk})
    assert [one.get_change_message() for one in LogEntry.objects.order_by("pk")] == [
        "user: ada; read only: on; blocked: off",
        "read only: on -> off; blocked: off -> on",
        "blocked: on -> off",
    ]
    assert "pay" in CheckedClient(user=ada).tools()


def test_restrictions_are_found_by_the_name_of_the_user(browser, make_user):
    for name in ("ada", "ben"):
        UserRestriction.objects.create(user=make_user(name))

    found = browser.get(USERS, {"q": "ad"}).context["cl"].result_list

    assert [str(one) for one in found] == ["ada"]


# One decision about many tools


def choose(browser, action, *names, **sent):
    rows = ExposedTool.objects.filter(name__in=names).values_list("pk", flat=True)
    return browser.post(LIST, {"action": action, "_selected_action": list(rows), **sent})


def test_tools_are_switched_together_once_that_is_confirmed(browser):
    names = ("echo", "list_models")
    asked = choose(browser, "switch_off", *names)
    before = decided()

    choose(browser, "switch_off", *names, based_on=asked.context["based_on"])

    assert not before
    assert {name: row.enabled for name, row in decided().items()} == dict.fromkeys(names, False)
    again = choose(browser, "switch_on", *names)
    choose(browser, "switch_on", *names, based_on=again.context["based_on"])
    assert {row.enabled for row in decided().values()} == {True}


# Prompts of code and of files


PROMPTS = reverse("admin:mcp_django_exposedprompt_changelist")
PAGE_OF_HELLO = reverse("admin:mcp_django_exposedprompt_change", args=["hello"])
of_hello = pytest.mark.usefixtures("_hello")


@pytest.fixture
def _hello(db, add_prompt):
    def hello() -> str:
        """Say hello."""
        return "Hello"

    add_prompt(hello)
    make_all_rows(using="default")


@of_hello
def test_a_prompt_has_the_words_of_staff_and_does_not_exist_when_it_is_switched_off(
    browser, client
):
    save(browser, PAGE_OF_HELLO, title="Greeting", description="A kind word.")
    (found,) = (one for one in client.list_prompts() if one["name"] == "hello")

    save(browser, PAGE_OF_HELLO, enabled="false")

    assert (found["title"], found["description"]) == ("Greeting", "A kind word.")
    assert "hello" not in client.prompts()
    with pytest.raises(ProtocolFailure, match="Unknown prompt: hello"):
        client.get_prompt("hello")
    line = lines(browser, PROMPTS)["hello"]
    assert (line["title"], line["state"]) == ("Greeting", "off")


@of_hello
def test_a_stored_prompt_of_the_same_name_decides_for_itself(client):
    make_prompt("late", "Hi.")
    ExposedPrompt.objects.create(name="late", enabled=False)

    assert "late" in client.prompts()

"""What staff decide about tools, the server and single users in the admin."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.urls import reverse

from mcp_django.models import ExposedModel, ExposedTool, ServerSettings, UserRestriction
from mcp_django.testing import Client, ProtocolFailure
from tests.clients import browser_of

pytestmark = pytest.mark.django_db

LIST = reverse("admin:mcp_django_exposedtool_changelist")
SERVER = reverse("admin:mcp_django_serversettings_change", args=["default"])
SERVERS = reverse("admin:mcp_django_serversettings_changelist")
USERS = reverse("admin:mcp_django_userrestriction_changelist")


def page_of(name):
    return reverse("admin:mcp_django_exposedtool_change", args=[name])


@pytest.fixture
def editor(make_user):
    names = ("exposedtool", "serversettings", "userrestriction")
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


def lines(browser, **query):
    return {one.name: one for one in browser.get(LIST, query).context["lines"]}


def names_of(user):
    return {one["name"] for one in Client(user=user).list_tools()}


# Tools


def test_every_tool_is_listed_with_where_it_is_from(browser):
    found = lines(browser)

    assert (found["find_records"].source_name, found["find_records"].state) == ("Generic", "on")
    assert (found["echo"].source_name, found["echo"].state) == ("Function", "on")
    greet = found["shop_customer_greet"]
    assert (greet.source_name, greet.label, greet.state) == ("Admin action", "shop.customer", "on")
    assert (found["echo"].annotation, found["delete_record"].annotation) == (
        "only reads",
        "may overwrite or delete",
    )
    assert not any(name.endswith("delete_selected") for name in found)


@pytest.mark.parametrize(
    ("query", "some", "others"),
    [
        ({"q": "ECHO_l"}, {"echo_later"}, {"echo"}),
        ({"source": "action"}, {"shop_customer_greet"}, {"echo", "find_records"}),
        ({"state": "off"}, {"echo"}, {"find_records"}),
        ({"state": "gone"}, {"old_tool"}, {"echo"}),
        ({"q": "clerks"}, {"fail"}, {"echo"}),
    ],
)
def test_the_list_is_searched_and_filtered(browser, query, some, others):
    ExposedTool.objects.create(name="echo", enabled=False)
    ExposedTool.objects.create(name="old_tool", enabled=False)
    ExposedTool.objects.create(name="fail").groups.add(Group.objects.create(name="clerks"))

    found = set(lines(browser, **query))

    assert some <= found
    assert not others & found


def test_a_tool_is_switched_off_and_on_again(browser, editor):
    save(browser, page_of("echo"), enabled="off")
    off = names_of(editor)

    save(browser, page_of("echo"), enabled="")

    assert "echo" not in off
    assert "echo" in names_of(editor)
    assert not ExposedTool.objects.exists()


def test_an_action_of_the_admin_is_switched_on(browser, make_user):
    boss = make_user("boss", is_staff=True, is_superuser=True)
    save(browser, page_of("shop_customer_greet"), enabled="off")
    off = names_of(boss)

    save(browser, page_of("shop_customer_greet"), enabled="on")

    assert "shop_customer_greet" not in off
    assert "shop_customer_greet" in names_of(boss)


def test_an_action_of_a_model_that_is_too_low_is_marked(browser):
    ExposedModel.objects.create(label="shop.customer", level=3)

    warning = lines(browser)["shop_customer_greet"].warning

    assert warning == (
        "Nobody gets it: shop.customer is at the level “read”, and actions need “act”."
    )


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

    row = ExposedTool.objects.get()
    assert row.annotations == {"readOnlyHint": False, "destructiveHint": True}
    assert (row.needs_confirmation, row.calls_per_minute) == (True, 5)
    found = next(one for one in Client(user=editor).list_tools() if one["name"] == "echo")
    assert (found["title"], found["description"]) == ("Parrot", "Repeats.")
    assert "confirmation" in found["inputSchema"]["properties"]
    shown = lines(browser)["echo"]
    assert (shown.title, shown.annotation) == ("Parrot", "may overwrite or delete")
    assert shown.extras == "needs confirmation, 5 calls per minute"


def test_annotations_go_back_to_those_of_code(browser):
    save(browser, page_of("echo"), stricter=["readOnlyHint"], title="x")

    save(browser, page_of("echo"), stricter=[])

    assert ExposedTool.objects.get().annotations == {}


def test_only_what_is_stricter_than_code_is_offered(browser):
    form = browser.get(page_of("delete_record")).context["adminform"].form

    assert [name for name, _ in form.fields["stricter"].choices] == ["openWorldHint"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"enabled": "perhaps"},
        {"stricter": ["idempotentHint"]},
        {"stricter": ["title"]},
        {"calls_per_minute": "-1"},
        {"calls_per_minute": "0"},
        {"calls_per_minute": "9" * 30},
        {"calls_per_minute": "many"},
        {"title": "x" * 101},
        {"description": "x" * 1001},
        {"based_on": "forged"},
        {"groups": ["4711"]},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_a_forged_form_saves_nothing(browser, wrong):
    answer = save(browser, page_of("echo"), **wrong)

    assert answer.status_code == 200
    assert answer.context["errors"]
    assert not ExposedTool.objects.exists()


def test_a_tool_that_code_has_no_more_can_be_forgotten(browser):
    row = ExposedTool.objects.create(name="old_tool", enabled=False)

    page = browser.get(page_of(row.pk)).content.decode()
    refused = save(browser, page_of(row.pk))
    kept = ExposedTool.objects.get().enabled
    save(browser, page_of(row.pk), reset="on")

    assert "code no longer has this tool" in page
    assert "All you can do is reset it" in refused.content.decode()
    assert kept is False
    assert not ExposedTool.objects.exists()


@pytest.mark.parametrize("name", ["nothing", "find_record", "x" * 300, "a\x00b"])
def test_a_name_of_no_tool_has_no_page(browser, name):
    assert browser.get(page_of(name)).status_code == 302
    assert browser.post(page_of(name), {"enabled": "on"}).status_code == 302
    assert not ExposedTool.objects.exists()


def test_the_log_says_what_it_was_and_what_it_is(browser):
    save(browser, page_of("echo"), enabled="off", title="<b>Parrot</b>")

    told = LogEntry.objects.get()

    assert told.object_id == "echo"
    assert told.get_change_message() == (
        "state: as in code -> off; title: as in code -> <b>Parrot</b>"
    )


def test_staff_who_may_only_look_change_nothing(make_user):
    looker = browser_of(make_user("looker", "view_exposedtool", is_staff=True))
    ExposedTool.objects.create(name="echo", title="Parrot")

    page = looker.get(page_of("echo"))

    assert "Parrot" in page.content.decode()
    assert 'name="enabled"' not in page.content.decode()
    assert looker.post(page_of("echo"), {"enabled": "off"}).status_code == 403


@pytest.mark.parametrize("url", [LIST, page_of("echo"), SERVER, SERVERS, USERS])
def test_staff_without_the_permission_find_no_page(make_user, url):
    nobody = browser_of(make_user("nobody", is_staff=True))

    assert nobody.get(url).status_code == 403
    assert nobody.post(url, {"read_only": "on"}).status_code == 403


@pytest.mark.parametrize("url", [page_of("echo"), SERVER])
def test_without_the_token_of_the_page_nothing_is_saved(editor, url):
    answer = save(browser_of(editor, enforce_csrf_checks=True), url, read_only="on", title="x")

    assert answer.status_code == 403
    assert not ExposedTool.objects.exists()
    assert not ServerSettings.objects.exists()


def test_what_people_wrote_is_text_and_never_markup(browser):
    evil = "<script>alert(1)</script>\"'>"
    row = ExposedTool.objects.create(name="echo", title=evil, description=evil)
    row.groups.add(Group.objects.create(name=evil))
    ExposedTool.objects.create(name=evil[:40])

    for url in (LIST, page_of("echo")):
        page = browser.get(url).content.decode()
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page


# The server


def test_instructions_and_read_only_are_decided_for_the_whole_server(browser, editor):
    assert browser.get(SERVERS).url == SERVER

    save(browser, SERVER, instructions="Ask twice.", read_only="on")

    assert Client(user=editor).discover()["instructions"] == "Ask twice."
    assert "pay" not in names_of(editor)
    assert "read-only: no -> yes" in LogEntry.objects.get().get_change_message()


def test_the_server_is_closed_and_opened_again(browser, editor):
    save(browser, SERVER, closed="on")

    with pytest.raises(ProtocolFailure) as refusal:
        names_of(editor)
    assert refusal.value.status == 503
    assert LogEntry.objects.get().get_change_message() == "closed: no -> yes"
    save(browser, SERVER, closed=None)
    assert "echo" in names_of(editor)
    assert not ServerSettings.objects.exists()


def test_the_server_is_as_in_code_again(browser):
    save(browser, SERVER, read_only="on")

    save(browser, SERVER, reset="on")

    assert not ServerSettings.objects.exists()


def test_staff_who_may_only_look_see_the_server(make_user):
    looker = browser_of(make_user("looker", "view_serversettings", is_staff=True))
    ServerSettings.objects.create(instructions="Ask twice.")

    assert "Ask twice." in looker.get(SERVER).content.decode()
    assert looker.post(SERVER, {"read_only": "on"}).status_code == 403


def test_the_history_of_the_server_is_there_before_and_after_the_first_decision(browser):
    def history():
        shown = browser.get(SERVER).content.decode()
        return re.search(r'href="([^"]+)" class="historylink"', shown)[1]

    before = browser.get(history())
    save(browser, SERVER, read_only="on")
    after = browser.get(history())
    row = ServerSettings.objects.get()
    by_row = browser.get(SERVER.replace("default/change", f"{row.pk}/history"))

    assert before.status_code == 200
    assert "read-only: no -&gt; yes" in after.content.decode()
    assert "read-only: no -&gt; yes" in by_row.content.decode()


def test_there_is_one_server(browser):
    other = reverse("admin:mcp_django_serversettings_change", args=["other"])

    assert browser.get(other).status_code == 302


# Users


def test_a_user_is_made_read_only(browser, make_user):
    ada = make_user("ada", "change_order", is_staff=True)
    add = reverse("admin:mcp_django_userrestriction_add")

    browser.post(add, {"user": ada.pk, "read_only": "on"})
    twice = browser.post(add, {"user": ada.pk, "read_only": "on"})

    row = UserRestriction.objects.get()
    assert "pay" not in names_of(ada)
    assert "There is a restriction of this user already." in twice.content.decode()
    browser.post(
        reverse("admin:mcp_django_userrestriction_change", args=[row.pk]), {"user": ada.pk}
    )
    assert [one.get_change_message() for one in LogEntry.objects.order_by("pk")] == [
        "read-only: yes; blocked: no",
        "read-only: yes -> no",
    ]
    assert "pay" in names_of(ada)


def test_a_user_is_blocked_and_let_in_again(browser, make_user):
    ada = make_user("ada", "change_order", is_staff=True)

    browser.post(
        reverse("admin:mcp_django_userrestriction_add"), {"user": ada.pk, "blocked": "on"}
    )

    with pytest.raises(ProtocolFailure) as refusal:
        names_of(ada)
    assert refusal.value.status == 401
    assert LogEntry.objects.get().get_change_message() == "read-only: no; blocked: yes"
    row = UserRestriction.objects.get()
    browser.post(
        reverse("admin:mcp_django_userrestriction_change", args=[row.pk]), {"user": ada.pk}
    )
    assert "pay" in names_of(ada)


def test_restrictions_are_found_by_the_name_of_the_user(browser, make_user):
    for name in ("ada", "ben"):
        UserRestriction.objects.create(user=make_user(name))

    found = browser.get(USERS, {"q": "ad"}).context["cl"].result_list

    assert [str(one) for one in found] == ["ada"]


# One decision about many tools


def test_tools_are_switched_together_once_that_is_confirmed(browser):
    sent = {"action": "off", "chosen": ["echo", "list_models"]}
    asked = browser.post(LIST, sent)
    before = ExposedTool.objects.count()

    browser.post(LIST, {**sent, "based_on": asked.context["based_on"]})

    assert before == 0
    assert dict(ExposedTool.objects.values_list("name", "enabled")) == {
        "echo": False,
        "list_models": False,
    }
    again = browser.post(LIST, {**sent, "action": "on"})
    browser.post(LIST, {**sent, "action": "on", "based_on": again.context["based_on"]})
    assert set(ExposedTool.objects.values_list("enabled", flat=True)) == {True}


def test_tools_that_are_so_already_are_left_alone(browser):
    answer = browser.post(LIST, {"action": "on", "chosen": ["echo"]})

    assert "Nothing would change." in answer.content.decode()

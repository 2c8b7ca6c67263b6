"""What staff decide about prompts of code and of files, in the admin, and what comes of it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from mcp_django.admin import make_all_rows
from mcp_django.models import ExposedPrompt
from mcp_django.testing import Client, ProtocolFailure
from tests.admin.test_exposed_tools import browser_of, save
from tests.exposure.stored import make_prompt

pytestmark = pytest.mark.django_db

LIST = reverse("admin:mcp_django_exposedprompt_changelist")


def page_of(name):
    return reverse("admin:mcp_django_exposedprompt_change", args=[name])


@pytest.fixture
def browser(make_user):
    return browser_of(make_user("editor", "change_exposedprompt", is_staff=True))


@pytest.fixture(autouse=True)
def _hello(db, add_prompt):
    def hello() -> str:
        """Say hello."""
        return "Hello"

    add_prompt(hello)
    make_all_rows(using="default")


def names(client):
    return {one["name"] for one in client.list_prompts()}


def lines(browser, **query):
    return {row.name: row.line for row in browser.get(LIST, query).context["cl"].result_list}


def test_a_prompt_that_is_switched_off_does_not_exist(browser, client):
    assert "hello" in names(client)

    assert save(browser, page_of("hello"), enabled="false").status_code == 302

    assert "hello" not in names(client)
    with pytest.raises(ProtocolFailure, match="Unknown prompt: hello"):
        client.get_prompt("hello")
    assert lines(browser)["hello"]["state"] == "off"


def test_the_words_of_staff_take_the_place_of_those_of_code(browser, client):
    save(browser, page_of("hello"), title="Greeting", description="A kind word.")

    (found,) = (one for one in client.list_prompts() if one["name"] == "hello")
    assert (found["title"], found["description"]) == ("Greeting", "A kind word.")
    assert lines(browser)["hello"]["title"] == "Greeting"


def test_a_prompt_for_a_group_exists_for_its_members_and_for_nobody_without_it(
    browser, client, staff
):
    group = Group.objects.create(name="clerks")
    save(browser, page_of("hello"), groups=[group.pk])
    before = names(client)
    staff.groups.add(group)
    meanwhile = names(client)

    group.delete()

    assert "hello" in meanwhile - before
    assert "hello" not in names(client)
    assert ExposedPrompt.objects.get(name="hello").enabled is False


def test_a_stored_prompt_of_the_same_name_decides_for_itself(client):
    make_prompt("late", "Hi.")
    ExposedPrompt.objects.create(name="late", enabled=False)

    assert "late" in names(client)


def test_rows_of_another_server_decide_nothing(client):
    ExposedPrompt.objects.create(server="second", name="hello", enabled=False)

    assert "hello" in names(client)


def test_completion_of_a_prompt_that_is_off_is_refused(browser, staff, add_prompt):
    def greet(tone: str) -> str:
        """Greet."""
        return tone

    add_prompt(greet)
    ExposedPrompt.objects.create(name="greet", enabled=False)

    with pytest.raises(ProtocolFailure):
        Client(user=staff).complete("greet", "tone", "a")

"""What can it see: tools, resources and prompts, and why some are not there."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group

from mcp_django.levels import Level
from mcp_django.models import ExposedPrompt, ExposedTool, PromptTemplate
from mcp_django.testing import Client
from tests.admin.looking import allow, decide, row_of, text_of
from tests.exposure.stored import make_prompt
from tests.shop.models import Order

pytestmark = pytest.mark.django_db


# Tools and resources


def test_an_action_of_the_admin_says_whether_it_is_there_or_why_not(look, bob, looker):
    allow(looker, "shop.change_customer")
    before = look()
    allow(bob, "shop.change_customer")
    offered = look()
    ExposedTool.objects.create(name="shop_customer_greet", enabled=False)

    assert "The admin does not offer it to this user." in row_of(before, "shop_customer_greet")
    assert "yes" in row_of(offered, "shop_customer_greet")
    assert "Staff switched it off." in row_of(look(), "shop_customer_greet")


# The level is that of the user, and not the one to which staff opened the model.


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["change_order"], "write: records, and to change"),
        (["add_order", "change_order"], "write: records, and to create and change"),
        (
            ["add_order", "change_order", "delete_order"],
            "write: records, and to create, change and delete",
        ),
    ],
)
def test_a_user_who_writes_is_told_which_verbs(look, bob, given, words):
    decide("shop.order", level=Level.WRITE)
    allow(bob, *(f"shop.{name}" for name in given))

    for response in (look(), look(model="shop.order")):
        text = text_of(response).replace("Write: ", "write: ")
        assert words in text
        assert f"{words} and" not in text


def test_an_action_of_the_user_is_the_level_act(look, bob, monkeypatch):
    def shout(modeladmin, request, queryset):
        """Not called here."""

    monkeypatch.setattr(type(admin.site.get_model_admin(Order)), "actions", [shout])
    decide("shop.order", level=Level.WRITE)
    before = row_of(look(), "shop.order")

    ExposedTool.objects.create(name="shop_order_shout", enabled=True)

    assert "yes read: records." in before
    assert "act: records, and actions of the admin." in row_of(look(), "shop.order")


def test_resources_are_those_that_both_have(look, bob, add_resource):
    def report(request):
        """What was sold."""

    def weather():
        """What it is like outside."""

    def of_year(year: int):
        """What was sold in a year."""

    add_resource("shop://report", report, permission="shop.view_memo")
    add_resource("shop://weather", weather)
    add_resource("shop://years/{year}", of_year)

    response = look()

    assert "does not have the permission shop.view_memo" in row_of(response, "shop://report")
    assert "yes What it is like outside." in row_of(response, "shop://weather")
    assert "yes" in row_of(response, "shop://years/{year}")
    assert "yes" in row_of(response, "django://objects/shop.order")
    assert "django://objects/shop.memo" not in text_of(response)


# Prompts


@pytest.fixture
def _prompts(add_prompt):
    def hello() -> str:
        """Say hello."""
        return "Hello"

    def ledger() -> str:
        """Read the books."""
        return "Read"

    add_prompt(hello)
    add_prompt(ledger, permission="shop.view_memo")
    make_prompt("reply", "Reply.", description="Answer a customer.")


@pytest.fixture
def offered_to():
    """The names that prompts/list answers with."""

    def offered_to(user):
        return {one["name"] for one in Client(user=user).list_prompts()}

    return offered_to


def prompts_there(response):
    return {one.name for one in response.context["prompts"] if one.is_there}


@pytest.mark.usefixtures("_prompts")
def test_the_prompts_that_are_there_are_those_that_the_assistant_lists(
    look, looker, bob, offered_to
):
    allow(looker, "mcp_django.view_prompttemplate")
    support = Group.objects.create(name="Support")
    make_prompt("for_support", "Help.", groups=[support])
    make_prompt("off", "Off.", enabled=False)
    make_prompt("hello", "A row that code has the name of.")
    ExposedPrompt.objects.create(name="hello", title="Greeting")

    response = look()

    assert prompts_there(response) == offered_to(bob) >= {"hello", "reply"}
    assert "Greeting hello yes Say hello." in row_of(response, "hello")
    assert "yes Answer a customer." in row_of(response, "reply")
    bob.groups.add(support)
    assert prompts_there(look()) == offered_to(bob) >= {"for_support"}


@pytest.mark.usefixtures("_prompts")
def test_each_prompt_that_is_not_there_says_why(look, bob, looker):
    allow(looker, "mcp_django.view_prompttemplate", "auth.view_group")
    support = Group.objects.create(name="Support")
    make_prompt("for_support", "Help.", groups=[support])
    make_prompt("off", "Off.", enabled=False)
    PromptTemplate.objects.create(name="empty")
    ExposedPrompt.objects.create(name="hello", enabled=False).groups.add(support)

    response = look()

    assert "does not have the permission shop.view_memo" in row_of(response, "ledger")
    assert "groups that this user is not in: Support." in row_of(response, "for_support")
    assert "Staff switched it off." in row_of(response, "off")
    assert "It cannot be read: see the log." in row_of(response, "empty")
    assert "Staff switched it off." in row_of(response, "hello")
    assert "groups that this user is not in: Support." in row_of(response, "hello")

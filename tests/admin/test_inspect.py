"""What can it see: who may look at whom, and which models, tools and prompts there are."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group

from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import ExposedModel, ExposedPrompt, ExposedTool, PromptTemplate
from tests.admin.looking import allow, row_of, text_of, url
from tests.clients import CheckedClient, browser_of
from tests.decisions import decide
from tests.exposure.stored import make_prompt
from tests.shop.models import Customer, Memo, Order

pytestmark = pytest.mark.django_db


# Who may look at whom


def test_a_get_looks_at_nobody_and_writes_no_log_and_an_empty_name_is_oneself(looker, look, bob):
    response = browser_of(looker).get(url("inspect"), {"username": "bob"})

    assert response.status_code == 200
    assert "As bob" not in text_of(response)
    assert not LogEntry.objects.exists()
    assert "As you" in text_of(look(""))


def test_a_link_to_one_model_asks_for_a_person_and_then_shows_this_model(looker, bob):
    page = f"{url('inspect')}?model=shop.order"

    asked = browser_of(looker).get(page)
    shown = browser_of(looker).post(page, {"username": "bob", "token": ""})

    assert "Only shop.order" in text_of(asked)
    assert not asked.context.get("chosen")
    assert shown.context["model"]["seen"].label == "shop.order"


@pytest.mark.parametrize("name", ["nobody", "bob' OR 1=1 --", "bob\x00", "ä" * 300])
def test_forged_names_find_nobody(look, bob, name):
    response = look(name)

    assert response.status_code == 200
    assert "models" not in response.context
    assert not LogEntry.objects.exists()


def test_users_whom_the_user_admin_does_not_show_do_not_exist(look, bob, make_user, monkeypatch):
    narrow = make_user("narrow", "inspect_as", "view_order", is_staff=True)
    others = type(bob).objects.exclude(pk=bob.pk)
    rules = {
        "get_queryset": lambda self, request: others,
        "has_view_permission": lambda self, request, obj=None: obj is None,
    }

    pages = [look(by=narrow)]
    for name, rule in rules.items():
        with monkeypatch.context() as patched:
            user_admin = type(admin.site.get_model_admin(type(bob)))
            patched.setattr(user_admin, name, rule, raising=False)
            pages.append(look())
    monkeypatch.delitem(admin.site._registry, type(bob))
    pages.append(look())

    for page in pages:
        assert "There is no such user whom you may see." in text_of(page)
    assert "bob" not in text_of(browser_of(narrow).get(url("inspect")))
    assert "shop.order" in text_of(look("looker"))


def test_each_look_is_in_the_log_before_anything_is_read(look, bob, looker):
    look(model="shop.order")

    entry = LogEntry.objects.get()
    assert entry.user == looker
    assert entry.object_id == str(bob.pk)
    assert "what assistants see of shop.order, as bob" in entry.change_message


# Models


def test_groups_are_named_to_those_who_may_view_groups(look, bob, looker):
    group = Group.objects.create(name="Support")
    decide("shop.order").groups.add(group)

    assert "to groups that this user is not in." in row_of(look(), "shop.order")
    allow(looker, "auth.view_group")
    assert "not in: Support." in row_of(look(), "shop.order")
    bob.groups.add(group)
    assert "yes" in row_of(look(), "shop.order")


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
        (["change"], "write: records, and to change"),
        (["add", "change"], "write: records, and to create and change"),
        (["add", "change", "delete"], "write: records, and to create, change and delete"),
    ],
)
def test_a_user_who_writes_is_told_which_verbs(look, bob, given, words):
    decide("shop.order", level=Level.WRITE)
    allow(bob, *(f"shop.{verb}_order" for verb in given))

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


def prompts_there(response):
    return {one.name for one in response.context["prompts"] if one.is_there}


@pytest.mark.usefixtures("_prompts")
def test_the_prompts_that_are_there_are_those_that_the_assistant_lists(look, looker, bob):
    allow(looker, "mcp_django.view_prompttemplate")
    support = Group.objects.create(name="Support")
    make_prompt("for_support", "Help.", groups=[support])
    make_prompt("off", "Off.", enabled=False)
    make_prompt("hello", "A row that code has the name of.")
    ExposedPrompt.objects.create(name="hello", title="Greeting")
    offered = CheckedClient(user=bob)

    response = look()

    assert prompts_there(response) == offered.prompts().keys() >= {"hello", "reply"}
    assert "Greeting hello yes Say hello." in row_of(response, "hello")
    assert "yes Answer a customer." in row_of(response, "reply")
    bob.groups.add(support)
    assert prompts_there(look()) == offered.prompts().keys() >= {"for_support"}


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


# Tokens


ALL_TOKENS = ("view_personaltoken", "manage_all_tokens")
#: Permissions besides that of the page, who is named besides the token, and what is said.
REFUSED = [
    (("view_personaltoken", "view_user"), "", "Select a valid choice"),
    (("view_user",), "", "Select a valid choice"),
    (ALL_TOKENS, "", "There is no such user whom you may see."),
    ((*ALL_TOKENS, "view_user"), "bob", "Choose a user or a token, not both."),
]


@pytest.mark.parametrize(("names", "who", "words"), REFUSED)
def test_tokens_that_the_admin_does_not_show_do_not_exist(
    look, token_of, make_user, names, who, words
):
    narrow = make_user("narrow", "inspect_as", *names, is_staff=True)

    response = look(who, by=narrow, token=token_of().pk)

    assert words in text_of(response)
    assert "As token" not in text_of(response)
    assert not LogEntry.objects.exists()


# Middleware of the site


def turn_away(get_response):
    from django.http import HttpResponse

    return lambda request: HttpResponse("no")


# All of it at once


def test_nothing_of_a_superuser_shows_through_to_somebody_with_fewer_rights(
    look, admin_user, make_user, add_tool, add_prompt
):
    def canary_tool() -> str:
        """A canary-description."""
        return ""

    add_tool(canary_tool, permission="shop.view_memo")
    add_prompt(canary_tool, permission="shop.view_memo")
    make_prompt("canary_off", "Off.", enabled=False)
    narrow = make_user("narrow", "inspect_as", "view_user", "view_order", is_staff=True)
    customer = Customer.objects.create(name="canary-customer", country="FR")
    Order.objects.create(number="A-1", customer=customer, margin=987654321)
    Memo.objects.create(text="canary-text", code="canary-code")
    make_prompt("canary_group", "Help.", groups=[Group.objects.create(name="canary-group")])
    ExposedModel.objects.create(label="shop.order").groups.add(Group.objects.get())
    labels = [exposure.label for exposure in registry.candidates.values()]

    pages = [look("admin", label, by=narrow) for label in ["", *labels]]

    texts = [text_of(page) for page in pages]
    assert any("yes" in text and "find_records" in text for text in texts)
    for text in texts:
        for secret in ("canary", "987654321", "shop.memo", "shop.customer", "shop.ledger"):
            assert secret not in text
        assert not {"shop_customer_greet", "pay"} & {*text.split()}

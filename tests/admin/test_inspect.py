from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.db import models
from django.test.utils import isolate_apps
from django.urls import resolve
from django.utils import timezone

import mcp_django as mcp
from mcp_django.admin.inspect.access import as_text
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
    ServerSettings,
    UserRestriction,
)
from mcp_django.testing import Client
from tests.admin.looking import (
    allow,
    many_models,
    queries_of,
    row_of,
    text_of,
    url,
)
from tests.clients import browser_of
from tests.exposure.stored import make_prompt
from tests.library.models import Author, Book
from tests.shop.models import Customer, Ledger, Memo, Order

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(make_user):
    """Whose assistants are looked at: orders and customers, no memos."""
    return make_user("bob", "view_order", "view_customer", is_staff=True)


@pytest.fixture
def looker(make_user):
    """Sees everything of the shop, and users."""
    user = make_user(
        "looker",
        *("view_order", "view_customer", "view_memo", "change_order", "view_user"),
        *("inspect_as", "view_personaltoken", "manage_all_tokens", "view_ledger"),
        is_staff=True,
    )
    return user


@pytest.fixture
def look(looker):
    def look(who="bob", model="", *, by=looker, **data):
        return browser_of(by).post(
            url("inspect"), {"username": who, "token": "", "model": model, **data}
        )

    return look


def decide(label, **decision):
    found = ExposedModel.objects.create(label=label, **decision)
    return found


# Who may look at whom


def test_without_the_permission_there_is_no_page(staff):
    assert browser_of(staff).get(url("inspect")).status_code == 403
    assert browser_of(staff).post(url("inspect"), {"username": "staff"}).status_code == 403


def test_somebody_who_is_no_staff_is_sent_to_the_login(make_user):
    user = allow(make_user("eve"), "mcp_django.inspect_as")

    assert browser_of(user).get(url("inspect")).status_code == 302


def test_a_get_looks_at_nobody_and_writes_no_log(looker, bob):
    response = browser_of(looker).get(url("inspect"), {"username": "bob"})

    assert response.status_code == 200
    assert "As bob" not in text_of(response)
    assert not LogEntry.objects.exists()


def test_a_post_without_a_csrf_token_looks_at_nobody(looker, bob):
    browser = browser_of(looker, enforce_csrf_checks=True)

    assert browser.post(url("inspect"), {"username": "bob"}).status_code == 403
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("name", ["nobody", "bob' OR 1=1 --", "bob\x00", "ä" * 300])
def test_forged_names_find_nobody(look, bob, name):
    response = look(name)

    assert response.status_code == 200
    assert "models" not in response.context
    assert not LogEntry.objects.exists()


def test_users_whom_the_user_admin_does_not_show_do_not_exist(look, bob, make_user):
    narrow = make_user("narrow", "inspect_as", "view_order", is_staff=True)

    response = look(by=narrow)

    assert "There is no such user whom you may see." in text_of(response)
    assert "bob" not in text_of(browser_of(narrow).get(url("inspect")))


def test_users_whom_the_user_admin_refuses_one_by_one_do_not_exist(look, bob, monkeypatch):
    user_admin = admin.site.get_model_admin(type(bob))
    monkeypatch.setattr(
        type(user_admin),
        "has_view_permission",
        lambda self, request, obj=None: obj is None,
    )

    assert "There is no such user whom you may see." in text_of(look())


def test_a_site_without_a_user_admin_shows_oneself_only(look, bob, monkeypatch, looker):
    monkeypatch.delitem(admin.site._registry, type(bob))

    assert "There is no such user whom you may see." in text_of(look())
    assert "shop.order" in text_of(look("looker"))


def test_a_deleted_user_is_nobody(look, bob):
    bob.delete()

    assert "There is no such user whom you may see." in text_of(look())


def test_a_blocked_user_has_nothing(look, bob):
    UserRestriction.objects.create(user=bob, blocked=True)

    assert "Staff blocked this user" in text_of(look())


def test_an_inactive_user_has_nothing(look, bob):
    bob.is_active = False
    bob.save()

    response = look()

    assert "no credential of the user opens anything" in text_of(response)
    assert "models" not in response.context


def test_each_look_is_in_the_log_before_anything_is_read(look, bob, looker):
    look(model="shop.order")

    entry = LogEntry.objects.get()
    assert entry.user == looker
    assert entry.object_id == str(bob.pk)
    assert "what assistants see of shop.order, as bob" in entry.change_message


def test_an_empty_name_is_oneself(look):
    assert "As you" in text_of(look(""))


# Models


def test_each_model_says_whether_it_is_there_or_why_not(look, bob):
    response = look()

    assert "yes read: records" in row_of(response, "shop.order")
    assert "This user does not have the permission shop.view_memo." in row_of(
        response, "shop.memo"
    )
    assert "neither code nor staff opened it" in row_of(response, "shop.ledger")


def test_models_that_the_looker_may_not_view_are_not_named(look, bob, make_user):
    narrow = make_user("narrow", "inspect_as", "view_order", "view_user", is_staff=True)

    text = text_of(look(by=narrow))

    assert "shop.order" in text
    assert "shop.customer" not in text
    assert "shop.memo" not in text
    assert "shop.ledger" not in text


def test_what_staff_hid_is_named_to_those_who_see_it_in_the_admin(look, bob):
    decide("shop.order", level=Level.HIDDEN)

    assert "Staff hid it." in row_of(look(), "shop.order")


def test_groups_are_named_to_those_who_may_view_groups(look, bob, looker):
    group = Group.objects.create(name="Support")
    decide("shop.order").groups.add(group)

    assert "to groups that this user is not in." in row_of(look(), "shop.order")
    allow(looker, "auth.view_group")
    assert "not in: Support." in row_of(look(), "shop.order")
    bob.groups.add(group)
    assert "yes" in row_of(look(), "shop.order")


def test_a_user_who_is_no_staff_is_not_let_in_by_the_admin(look, bob):
    bob.is_staff = False
    bob.save()

    assert "The admin does not let this user in: not staff." in row_of(look(), "shop.order")


def test_a_site_that_turns_staff_away_says_so(look, bob, monkeypatch):
    monkeypatch.setattr(
        admin.AdminSite,
        "has_permission",
        lambda self, request: request.user.get_username() != "bob",
    )

    assert "The admin does not let this user in." in row_of(look(), "shop.order")


def test_a_missing_admin_site_is_named(look, bob, settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "ADMIN_SITES": ["admin", "elsewhere"]}

    # The looker finds it as little as bob, so it is on nobody's page.
    assert "shop.memo" not in text_of(look())


def test_rules_of_a_model_admin_are_blamed_by_name(look, bob, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)
    monkeypatch.setattr(
        type(order_admin),
        "has_view_permission",
        lambda self, request, obj=None: request.user.get_username() != "bob",
    )

    assert "The rules of OrderAdmin refuse this user" in row_of(look(), "shop.order")


def test_code_of_the_site_that_fails_is_no_error_of_the_page(look, bob, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)

    def get_queryset(self, request):
        if request.user.get_username() == "bob":
            raise RuntimeError("no tenant")
        return Order.objects.all()

    monkeypatch.setattr(type(order_admin), "get_queryset", get_queryset, raising=False)

    assert "failed: see the log" in row_of(look(), "shop.order")


def test_an_exposure_that_decides_itself_is_blamed_by_name(look, bob, monkeypatch):
    class Private(mcp.ModelExposure):
        fields = ["id", "amount"]

        def has_view_permission(self, request, obj=None):
            return request.user.get_username() == "looker"

    registry.register(Ledger, Private)
    try:
        assert "The rules of Private refuse this user." in row_of(look(), "shop.ledger")
    finally:
        registry.unregister(Ledger)


def test_what_code_hides_is_said_to_be_hidden_by_code(look, bob):
    mcp.register(Ledger, fields=["id", "amount"], level=Level.HIDDEN)
    try:
        assert "Code hides it." in row_of(look(), "shop.ledger")
    finally:
        registry.unregister(Ledger)


# Tokens


@pytest.fixture
def token_of(bob):
    def make(**options):
        return PersonalToken.create(user=bob, name="phone", **options)[0]

    return make


def test_a_token_shows_what_its_limits_leave(look, token_of):
    token = token_of(scopes=["mcp:read"], models=["shop.order"], read_only=True)

    response = look("", token=token.pk)

    assert "As token phone of bob" in text_of(response)
    assert "yes" in row_of(response, "shop.order")
    assert "The token is held to other models." in row_of(response, "shop.customer")


def test_a_token_without_reading_shows_the_scope_that_is_missing(look, token_of):
    token = token_of(scopes=["mcp:action"])

    response = look("", token=token.pk)

    assert "lacks the scope mcp:read" in row_of(response, "shop.order")
    assert "lacks a scope" in row_of(response, "find_records")
    assert "No" not in row_of(response, "find_records")[:3]


@pytest.mark.parametrize("state", ["expired", "revoked"])
def test_a_token_that_is_over_opens_nothing(look, token_of, state):
    token = token_of()
    if state == "revoked":
        token.revoke()
    else:
        PersonalToken.objects.update(expires_at=timezone.now())

    assert f"This token is {state}: it opens nothing." in text_of(look("", token=token.pk))


def test_tokens_that_the_token_admin_does_not_show_do_not_exist(look, token_of, make_user):
    narrow = make_user("narrow", "inspect_as", "view_personaltoken", "view_user", is_staff=True)

    response = look("", by=narrow, token=token_of().pk)

    assert "Select a valid choice" in text_of(response)
    assert not LogEntry.objects.exists()


def test_tokens_of_users_who_may_not_be_seen_find_nobody(look, token_of, make_user):
    narrow = make_user(
        "narrow", "inspect_as", "view_personaltoken", "manage_all_tokens", is_staff=True
    )

    response = look("", by=narrow, token=token_of().pk)

    assert "There is no such user whom you may see." in text_of(response)


def test_without_a_token_admin_no_token_is_offered(look, token_of, make_user):
    narrow = make_user("narrow", "inspect_as", "view_user", is_staff=True)

    assert "phone" not in text_of(look(by=narrow))
    assert token_of


def test_a_user_and_a_token_at_once_are_refused(look, token_of):
    response = look("bob", token=token_of().pk)

    assert "Choose a user or a token, not both." in text_of(response)


# Tools and resources


def test_each_tool_says_whether_it_is_there_or_why_not(look, bob):
    response = look()

    assert "yes" in row_of(response, "find_records")
    assert "This user does not have the permission shop.change_order." in row_of(response, "pay")


def test_tools_that_the_looker_has_not_are_not_named(look, bob, make_user):
    narrow = make_user("narrow", "inspect_as", "view_user", is_staff=True)

    assert "pay" not in text_of(look(by=narrow)).split()


def test_staff_who_switched_a_tool_off_read_that_they_did(look, bob):
    ExposedTool.objects.create(name="echo", enabled=False)

    assert "Staff switched it off." in row_of(look(), "echo")


def test_an_action_of_the_admin_says_whether_it_is_there_or_why_not(look, bob, looker):
    allow(looker, "shop.change_customer")
    before = look()
    allow(bob, "shop.change_customer")
    offered = look()
    ExposedTool.objects.create(name="shop_customer_greet", enabled=False)

    assert "The admin does not offer it to this user." in row_of(before, "shop_customer_greet")
    assert "yes" in row_of(offered, "shop_customer_greet")
    assert "Staff switched it off." in row_of(look(), "shop_customer_greet")


def test_an_action_on_a_model_that_the_user_does_not_have_says_so(look, looker, make_user):
    allow(looker, "shop.change_customer")
    make_user("eve", is_staff=True)

    row = row_of(look("eve"), "shop_customer_greet")

    assert "It is about shop.customer, which this user does not have." in row


def test_a_token_that_may_not_act_says_so(look, looker, bob, token_of):
    allow(looker, "shop.change_customer")
    allow(bob, "shop.change_customer")

    row = row_of(look("", token=token_of(scopes=["mcp:read"]).pk), "shop_customer_greet")

    assert "The credential lacks a scope." in row
    assert "does not offer" not in row


def test_an_action_that_the_looker_is_not_offered_is_not_named(look, bob):
    allow(bob, "shop.change_customer")

    assert "shop_customer_greet" not in text_of(look())


def test_a_tool_for_a_group_says_so(look, bob):
    ExposedTool.objects.create(name="echo").groups.add(Group.objects.create(name="Support"))

    assert "groups that this user is not in" in row_of(look(), "echo")


def test_a_tool_for_staff_says_so(look, bob):
    bob.is_staff = False
    bob.save()

    assert "It is for active staff, which this user is not." in row_of(look(), "echo")


def test_a_tool_that_writes_says_that_there_is_nothing_to_write(look, bob):
    decide("shop.order", level=Level.WRITE)

    before = row_of(look(), "update_record")
    allow(bob, "shop.change_order")

    assert "There is no model of which this user's assistants may change records." in before
    assert "yes" in row_of(look(), "update_record")


def test_a_rule_of_the_site_is_all_that_can_be_said_of_a_function(look, bob, add_tool):
    def secret_tool() -> str:
        """Only for lookers."""
        return ""

    add_tool(secret_tool, permission=lambda request: request.user.get_username() == "looker")

    assert "The rules of the site refuse this user." in row_of(look(), "secret_tool")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("setting", "READ_ONLY is set for the site."),
        ("server", "Staff made the server read-only."),
        ("user", "Staff made assistants of this user read-only."),
        ("token", "The token is read-only."),
    ],
)
def test_read_only_says_where_it_was_switched(look, bob, token_of, settings, how, sentence):
    allow(bob, "shop.change_order")
    token = token_of(scopes=["mcp:read", "mcp:write"], read_only=how == "token")
    if how == "setting":
        settings.MCP_DJANGO = {**settings.MCP_DJANGO, "READ_ONLY": True}
    elif how == "server":
        ServerSettings.objects.create(read_only=True)
    elif how == "user":
        UserRestriction.objects.create(user=bob, read_only=True)

    row = row_of(look("", token=token.pk), "pay")

    assert sentence in row
    assert "scope" not in row


def test_a_tool_that_lacks_two_things_says_both(look, bob, token_of):
    token = token_of(scopes=["mcp:read"], read_only=True)

    row = row_of(look("", token=token.pk), "pay")

    assert "This user does not have the permission shop.change_order." in row


def test_a_token_for_some_models_has_no_tool_about_others(look, bob, token_of):
    token = token_of(models=["shop.order"])

    assert "The token is held to some models." in row_of(look("", token=token.pk), "echo")


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


@pytest.fixture
def add_resource():
    added = []

    def add(uri, function, **options):
        mcp.resource(uri, **options)(function)
        added.append(uri)

    yield add
    for uri in added:
        registry.remove_resource(uri)


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


@pytest.mark.usefixtures("_prompts")
def test_prompts_that_the_looker_may_not_see_are_not_named(look, bob, make_user):
    make_prompt("canary_group", "Help.", groups=[Group.objects.create(name="Support")])
    make_prompt("canary_off", "Off.", enabled=False)
    bob.groups.set(Group.objects.all())
    allow(bob, "shop.view_memo")
    narrow = make_user("narrow", "inspect_as", "view_user", is_staff=True)

    response = look(by=narrow)

    assert {one.name for one in response.context["prompts"]} >= {"hello", "reply"}
    for name in ("ledger", "canary_group", "canary_off"):
        assert name not in text_of(response)


@pytest.mark.usefixtures("_prompts")
def test_a_token_without_reading_has_no_prompt_and_says_so(look, token_of):
    response = look("", token=token_of(scopes=["mcp:action"]).pk)

    assert prompts_there(response) == set()
    assert "The credential lacks the scope mcp:read." in row_of(response, "reply")
    assert "The credential lacks a scope." in row_of(response, "hello")


@pytest.mark.usefixtures("_prompts")
def test_words_of_a_prompt_are_texts_and_no_html(look, bob):
    make_prompt("script", "x", title="<script>alert(1)</script>", description="<b>bold</b>")

    content = look().content.decode()

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content
    assert "<b>bold</b>" not in content


# Fields and records


@pytest.fixture
def orders():
    ada = Customer.objects.create(name="Ada", country="FR", credit_rating=7)
    return [
        Order.objects.create(number=f"A-{n}", customer=ada, total=n, margin=99) for n in range(5)
    ]


def test_each_field_says_for_what_it_is_or_why_for_nothing(look, bob):
    decide("shop.order", fields=["id", "number", "customer", "status"])

    response = look(model="shop.order")

    assert "yes show, filter, order" in row_of(response, "number")
    assert "yes filter" in row_of(response, "customer__country")
    assert "Staff took it out." in row_of(response, "total")
    assert "Code does not name it." in row_of(response, "margin")


def test_paths_through_models_that_the_user_has_not_say_so(look, bob):
    bob.user_permissions.set(bob.user_permissions.exclude(codename="view_customer"))

    row = row_of(look(model="shop.order"), "customer__country")

    assert "It leads through shop.customer, which this user does not have." in row


def test_paths_that_staff_took_out_of_the_other_model_say_so(look, bob):
    decide("shop.customer", fields=["id", "name"])

    row = row_of(look(model="shop.order"), "customer__country")

    assert "Staff took it out of shop.customer." in row


def test_paths_through_numbers_only_say_so(look, bob):
    decide("shop.customer", level=Level.AGGREGATES)

    row = row_of(look(model="shop.order"), "customer__country")

    assert "It leads through shop.customer, which has only numbers about groups." in row


def test_paths_through_judged_records_say_so(look, bob, monkeypatch):
    customer_admin = admin.site.get_model_admin(Customer)
    monkeypatch.setattr(
        type(customer_admin),
        "has_view_permission",
        lambda self, request, obj=None: obj is None or obj.pk > 0,
    )

    # Judged for the looker as well, who therefore has no such path.
    assert "customer__country" not in text_of(look(model="shop.order"))


def test_fields_that_the_admin_hides_from_the_user_say_so(look, bob, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)

    def get_fields(self, request, obj=None):
        return ["number"] if request.user.get_username() == "bob" else ["number", "status"]

    monkeypatch.setattr(type(order_admin), "get_fields", get_fields, raising=False)
    monkeypatch.setattr(type(order_admin), "list_display", ["number"])
    response = look(model="shop.order")

    assert "The site does not show status of shop.order" in row_of(response, "status")
    # And what it hides from both is not named at all.
    assert "margin" not in text_of(response)


def test_what_looks_secret_and_what_code_excludes_say_so(look, looker, bob):
    user_model = type(bob)
    mcp.register(user_model, fields=["id", "username", "email"], exclude=["email"])
    try:
        response = look(model="auth.user")
    finally:
        registry.unregister(user_model)

    assert "does not have the permission auth.view_user" in text_of(response)
    allow(bob, "auth.view_user")
    mcp.register(user_model, fields=["id", "username", "email"], exclude=["email"])
    try:
        response = look(model="auth.user")
    finally:
        registry.unregister(user_model)
    assert "It looks secret" in row_of(response, "password")
    assert "Code excludes it." in row_of(response, "email")


def test_a_model_of_the_admin_that_staff_opened_has_what_the_admin_shows(look, looker, bob):
    allow(bob, "auth.view_user")
    decide("auth.user", level=Level.READ)

    response = look(model="auth.user")

    assert "yes" in row_of(response, "username")
    assert "secret" in row_of(response, "password")


def test_three_records_are_shown_that_both_may_see(look, bob, orders):
    response = look(model="shop.order")

    assert len(response.context["model"]["rows"]["rows"]) == 3
    assert "A-0" in text_of(response)
    assert "margin" not in response.context["model"]["rows"]["columns"]


def test_no_record_is_shown_that_the_looker_would_not_get(look, bob, orders, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)

    def get_queryset(self, request):
        rows = Order.objects.all()
        return rows if request.user.get_username() == "bob" else rows.filter(number="A-3")

    monkeypatch.setattr(type(order_admin), "get_queryset", get_queryset, raising=False)
    text = text_of(look(model="shop.order"))

    assert "A-3" in text
    assert "A-0" not in text


def test_no_value_is_shown_that_the_looker_would_not_get(look, bob, orders, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)

    def get_fields(self, request, obj=None):
        return ["number", "total"] if request.user.get_username() == "bob" else ["number"]

    monkeypatch.setattr(type(order_admin), "get_fields", get_fields, raising=False)
    monkeypatch.setattr(type(order_admin), "list_display", ["number"])
    response = look(model="shop.order")

    assert set(response.context["model"]["rows"]["columns"]) == {"id", "number"}
    assert "total" not in text_of(response)


def test_a_label_that_only_the_user_would_get_is_left_out(look, looker, bob):
    class Authors(mcp.ModelExposure):
        fields = ["id", "name"]
        label_fields = ["name"]

        def get_queryset(self, request):
            rows = Author.objects.all()
            return rows if request.user == bob else rows.filter(name="Ada")

    for name in ("Ada", "Eve"):
        Book.objects.create(title=f"On {name}", author=Author.objects.create(name=name))
    for user in (looker, bob):
        allow(user, "library.view_book", "library.view_author")
    mcp.register(Author)(Authors)
    mcp.register(Book, fields=["id", "title", "author"])
    try:
        response = look(model="library.book")
    finally:
        registry.unregister(Author)
        registry.unregister(Book)

    shown = response.context["model"]["rows"]
    assert shown["columns"] == ["id", "title", "author"]
    of_ada, of_eve = shown["rows"]
    assert of_ada[2].startswith("Ada (")
    assert of_eve[1] == "On Eve"
    assert '"label": null' in of_eve[2]
    assert "Eve (" not in text_of(response)


def test_rows_that_the_site_has_cut_already_are_shown_as_they_are(look, bob, orders, monkeypatch):
    order_admin = admin.site.get_model_admin(Order)
    monkeypatch.setattr(
        type(order_admin),
        "get_queryset",
        lambda self, request: Order.objects.order_by("-number")[:1],
        raising=False,
    )

    text = text_of(look(model="shop.order"))

    assert "A-4" in text
    assert "A-0" not in text


def test_where_both_share_no_record_the_page_says_so(look, bob):
    assert "There is no record that both of you may see." in text_of(look(model="shop.order"))


def test_a_model_of_numbers_shows_no_records(look, bob, orders):
    decide("shop.order", level=Level.AGGREGATES)

    response = look(model="shop.order")

    assert "rows" not in response.context["model"]
    assert "A-0" not in text_of(response)


def test_a_model_that_is_hidden_shows_neither_fields_nor_records(look, bob):
    text = text_of(look(model="shop.memo"))

    assert "does not have the permission shop.view_memo" in text
    assert "code" not in text.split()


@pytest.mark.parametrize("label", ["shop.nothing", "auth.permission", "<script>", "shop.ORDER"])
def test_labels_that_are_none_of_the_lookers_models_say_one_thing(look, bob, label):
    assert "There is no such model that you may see." in text_of(look(model=label))


def test_paths_through_records_of_which_the_user_sees_some_say_so(look, looker, bob):
    class Authors(mcp.ModelExposure):
        fields = ["id", "country"]

        def get_queryset(self, request):
            rows = Author.objects.all()
            return rows.filter(country="FR") if request.user == bob else rows

    mcp.register(Author)(Authors)
    mcp.register(Book, fields=["id", "author__country"], filter_fields=["id"])
    for user in (looker, bob):
        allow(user, "library.view_book", "library.view_author")
    try:
        row = row_of(look(model="library.book"), "author__country")
    finally:
        registry.unregister(Author)
        registry.unregister(Book)

    assert "of which this user sees some" in row


def test_columns_that_the_admin_does_not_have_say_so(look, bob, monkeypatch):
    ledger_admin = type(admin.site.get_model_admin(Ledger))
    monkeypatch.setattr(ledger_admin, "list_display", ["id"])
    monkeypatch.setattr(ledger_admin, "exclude", ["amount"])
    registry.forget_resolved()
    allow(bob, "shop.view_ledger")
    decide("shop.ledger", level=Level.READ)
    try:
        row = row_of(look(model="shop.ledger"), "amount")
    finally:
        registry.forget_resolved()

    assert "neither in the list nor in the form" in row


def test_names_and_values_are_text_whatever_they_hold(look, looker, bob, orders, make_user):
    evil = "<script>alert(1)</script>"
    Order.objects.filter(number="A-0").update(number="<img src=x>")
    make_user(evil, "view_order", is_staff=True)

    page = look(evil, model="shop.order").content.decode()

    assert evil not in page
    assert "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"value": "new", "label": "New"}, "New (new)"),
        ({"id": 5, "label": "Ada"}, "Ada (5)"),
        ({"label": 5, "a": 1}, '{"label": 5, "a": 1}'),
        ({"a": "ä"}, '{"a": "ä"}'),
        (None, "-"),
        ("x", "x"),
        (1.5, "1.5"),
    ],
)
def test_values_are_shown_as_people_read_them(value, text):
    assert as_text(value) == text


def test_long_values_are_cut(look, bob, looker):
    allow(bob, "shop.view_memo")
    Memo.objects.create(text="x" * 5000, code="long")

    page = look(model="shop.memo").content.decode()

    assert "x" * 200 + "…" in page
    assert "x" * 201 not in page


def test_a_model_without_a_table_says_so(look, looker, bob):
    with isolate_apps("tests.shop"):

        class Ghost(models.Model):
            name = models.CharField(max_length=5)

            class Meta:
                app_label = "shop"

    class GhostExposure(mcp.ModelExposure):
        fields = ["id", "name"]

        def has_view_permission(self, request, obj=None):
            return True

    registry.register(Ghost, GhostExposure)
    try:
        assert "yes" in row_of(look(), "shop.ghost")
        assert "The database cannot read it." in text_of(look(model="shop.ghost"))
    finally:
        registry.unregister(Ghost)


def test_a_declaration_that_is_wrong_says_so(look, bob):
    mcp.register(Ledger, fields=["id", "nothing"])
    try:
        allow(bob, "shop.view_ledger")
        assert "Ledger has no field nothing" in text_of(look(model="shop.ledger"))
    finally:
        registry.unregister(Ledger)


def test_middleware_that_answers_in_place_of_a_call_is_said_to(look, bob, settings):
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO,
        "RUN_MIDDLEWARE": ["tests.admin.test_inspect.turn_away"],
    }

    assert "Middleware of this site answers in place of the call." in text_of(look())


def turn_away(get_response):
    from django.http import HttpResponse

    return lambda request: HttpResponse("no")


def test_middleware_is_in_front_of_the_view_of_the_endpoint(look, bob, settings):
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO,
        "RUN_MIDDLEWARE": ["tests.admin.test_inspect.note_view"],
    }
    noted.clear()

    assert "yes" in row_of(look(), "shop.order")
    assert noted == [("mcp_django:endpoint", "mcp_django:endpoint")]


def test_middleware_sees_the_user_who_is_looked_at(look, bob, settings):
    settings.MCP_DJANGO = {
        **settings.MCP_DJANGO,
        "RUN_MIDDLEWARE": ["tests.admin.test_inspect.note_user"],
    }
    noted.clear()

    assert "yes" in row_of(look(), "shop.order")
    assert noted == ["bob"]


noted = []


def note_view(get_response):
    def middleware(request):
        noted.append((resolve(request.path_info).view_name, request.resolver_match.view_name))
        return get_response(request)

    return middleware


def note_user(get_response):
    def middleware(request):
        noted.append(request.user.get_username())
        return get_response(request)

    return middleware


# All of it at once


def test_nothing_of_a_superuser_shows_through_to_somebody_with_fewer_rights(
    look, admin_user, make_user, add_tool
):
    def canary_tool() -> str:
        """A canary-description."""
        return ""

    add_tool(canary_tool, permission="shop.view_memo")
    narrow = make_user("narrow", "inspect_as", "view_user", "view_order", is_staff=True)
    customer = Customer.objects.create(name="canary-customer", country="FR")
    Order.objects.create(number="A-1", customer=customer, margin=987654321)
    Memo.objects.create(text="canary-text", code="canary-code")
    Group.objects.create(name="canary-group")
    ExposedModel.objects.create(label="shop.order").groups.add(Group.objects.get())
    labels = [exposure.label for exposure in registry.candidates.values()]

    pages = [look("admin", label, by=narrow) for label in ["", *labels]]

    texts = [text_of(page) for page in pages]
    assert any("yes" in text and "find_records" in text for text in texts)
    for text in texts:
        for secret in ("canary", "987654321", "shop.memo", "shop.customer", "shop.ledger"):
            assert secret not in text


@pytest.mark.parametrize("label", ["", "shop.order"])
def test_two_hundred_models_take_no_more_queries_than_few(looker, bob, label):
    browser = browser_of(looker)

    def work():
        return browser.post(url("inspect"), {"username": "bob", "model": label})

    few = queries_of(work)
    with many_models(200):
        many = queries_of(work)

    assert many <= few + 2
    assert many <= 60

"""Stored prompts as clients meet them."""

from __future__ import annotations

import logging
from datetime import date

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group
from django.db import DatabaseError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

import mcp_django as mcp
from mcp_django.cached import Cached
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.prompts import stored
from mcp_django.exposure.prompts.stored import add_version, all_prompts, stored_prompts
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PromptTemplate,
    PromptVersion,
)
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.databases import failing_for
from tests.exposure.function_tools import rights_of
from tests.exposure.races import together
from tests.exposure.stored import ORDER, TONE, make_prompt, say
from tests.exposure.stored import contents_of as made_of
from tests.shop.models import Customer, Order

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    """What another test wrote was rolled back without a word."""
    monkeypatch.setattr(stored, "_prompts", Cached())


def texts(client, prompt, /, **arguments):
    return [one["content"].get("text") for one in client.get_prompt(prompt, **arguments)]


# The list


def test_a_row_is_a_prompt_in_every_revision(client, revision):
    make_prompt(
        "late",
        "Draft a {{ tone }} mail.",
        {"role": "assistant", "text": "Gladly."},
        arguments=[{**TONE, "title": "Tone", "description": "How.", "required": True}],
        title="Late",
        description="For late orders.",
    )

    found = client.prompts()["late"]
    messages = client.get_prompt("late", tone="warm")

    has_titles = revision.features.titles
    assert found.get("title") == ("Late" if has_titles else None)
    assert found["description"] == "For late orders."
    assert found["arguments"][0]["name"] == "tone"
    assert found["arguments"][0]["required"] is True
    assert found["arguments"][0]["description"] == "How."
    assert [(one["role"], one["content"]["text"]) for one in messages] == [
        ("user", "Draft a warm mail."),
        ("assistant", "Gladly."),
    ]


def test_code_wins_over_a_file_and_both_win_over_a_row_and_are_listed_before_it(
    client, add_prompt
):
    def pear():
        """Of code."""
        return "code"

    for name in ("pear", "shop_greeting", "apple"):
        make_prompt(name, "row")
    assert texts(client, "pear") == ["row"]
    add_prompt(pear)

    assert texts(client, "pear") == ["code"]
    assert texts(client, "shop_greeting", name="Ada") != ["row"]
    assert [*client.prompts()] == ["pear", "shop_greeting", "apple"]
    rights = rights_of()
    rights.registry = registry
    assert sorted(one.name for one in all_prompts(rights)) == ["apple", "pear", "shop_greeting"]


def test_a_version_that_was_rolled_back_says_nothing_for_the_next_one_with_its_key(client):
    with transaction.atomic():
        template = make_prompt("apple", "one")
        key = template.versions.get().pk
        assert texts(client, "apple") == ["one"]
        transaction.set_rollback(True)

    template = PromptTemplate.objects.create(name="apple")
    PromptVersion.objects.create(
        pk=key, template=template, number=1, messages=[{"role": "user", "text": "two"}]
    )

    assert texts(client, "apple") == ["two"]


def test_every_change_counts_at_once(client):
    template = make_prompt("apple", "one", enabled=False)
    group = Group.objects.create(name="Support")
    assert "apple" not in client.prompts()

    template.enabled = True
    template.save()
    assert "apple" in client.prompts()
    template.groups.add(group)
    assert "apple" not in client.prompts()
    template.groups.clear()
    assert "apple" in client.prompts()
    template.versions.all().delete()
    assert "apple" not in client.prompts()
    for number, text in enumerate(("two", "three"), 1):
        say(template, text)
        assert texts(client, "apple") == [text]
        assert template.versions.first().number == number
    PromptTemplate.objects.update(server="other")
    template.refresh_from_db()
    template.save()
    assert client.failure("prompts/get", name="apple") == (-32602, "Unknown prompt: apple")
    template.delete()
    assert "apple" not in client.prompts()


def test_prompts_cost_the_same_queries_however_many_they_are_and_none_while_nothing_changes(
    client, clock
):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            client.list_prompts()
        return len(captured)

    group = Group.objects.create(name="Support")
    make_prompt("p0", "Hi {{ order }}", arguments=[ORDER], groups=[group])
    queries()
    PromptTemplate.objects.get(name="p0").save()
    few = queries()
    for number in range(1, 10):
        make_prompt(f"p{number}", "Hi {{ order }}", arguments=[ORDER], groups=[group])
    many = queries()

    assert many == few
    assert queries() == 0


@pytest.mark.parametrize(
    "broken",
    [
        {"messages": [{"text": "{% load x %}"}]},
        {"messages": []},
        {"messages": [1]},
        {"arguments": "x", "messages": [{"text": "Hi"}]},
        {"arguments": [{"name": "settings"}], "messages": [{"text": "Hi"}]},
    ],
    ids=str,
)
def test_a_broken_row_is_left_out_and_the_log_says_why(client, caplog, broken):
    make_prompt("apple", "fine")
    template = PromptTemplate.objects.create(name="broken")
    PromptVersion.objects.create(template=template, number=1, **{"messages": [], **broken})

    with caplog.at_level(logging.ERROR, "mcp_django"):
        assert [*client.prompts()] == ["shop_greeting", "apple"]
        PromptTemplate.objects.get(name="apple").save()
        client.list_prompts()

    (record,) = caplog.records  # once, and not at every change
    assert "The stored prompt broken 1 is left out: " in record.getMessage()
    assert client.failure("prompts/get", name="broken") == (-32602, "Unknown prompt: broken")


def failing(error):
    return failing_for("mcp_django_prompttemplate", error)


def test_without_tables_there_are_no_rows_and_a_lost_connection_is_no_shorter_list(client, caplog):
    make_prompt("apple", "one")

    with failing(OperationalError("server closed the connection unexpectedly")):
        code, _ = client.failure("prompts/list")
    with failing(DatabaseError("no such table")):
        without = [*client.prompts()]

    assert code == -32603
    assert without == ["shop_greeting"]
    assert "Stored prompts cannot be read" in caplog.text
    assert [*client.prompts()] == ["shop_greeting", "apple"]


# Who gets it


def test_a_prompt_of_a_group_exists_for_its_members_only(make_user, superuser):
    support, sales = (Group.objects.create(name=name) for name in ("Support", "Sales"))
    make_prompt("apple", "one", groups=[support, sales])
    make_prompt("open", "two")
    member, other = make_user("member", is_staff=True), make_user("other")
    member.groups.add(sales)

    def seen(user, **options):
        client = CheckedClient(user=user, **options)
        found = client.prompts().keys() - {"shop_greeting"}
        if "apple" not in found:
            assert client.failure("prompts/get", name="apple") == (-32602, "Unknown prompt: apple")
            with pytest.raises(ProtocolFailure, match="Unknown prompt: apple"):
                client.complete("apple", "x")
        return found

    assert seen(member) == {"apple", "open"}
    assert seen(other) == {"open"}
    assert seen(superuser) == {"open"}
    assert seen(member, models=["shop.order"]) == {"apple", "open"}
    assert not stored_prompts("default")["open"].exists_for(rights_of(member, scopes=()))
    member.groups.clear()
    assert seen(member) == {"open"}


class Own(ModelBackend):
    """A backend of the site's own."""

    def has_perm(self, *args, **kwargs):
        return super().has_perm(*args, **kwargs)


def test_where_code_of_the_site_has_a_say_groups_are_asked_for_at_each_call(staff, settings):
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Own"]
    group = Group.objects.create(name="Support")
    staff.groups.add(group)
    make_prompt("apple", "one", groups=[group])
    prompt = stored_prompts("default")["apple"]
    first = rights_of(staff)

    with CaptureQueriesContext(connection) as captured:
        assert prompt.exists_for(first)
        assert prompt.exists_for(Rights(first.request, first.principal))

    assert len([one for one in captured if "auth_group" in one["sql"]]) == 2


def test_users_without_groups_get_what_is_for_everybody():
    group = Group.objects.create(name="Support")
    make_prompt("apple", "one", groups=[group])
    make_prompt("open", "one")
    found = stored_prompts("default")

    class Plain:
        pk = 1
        groups = None

    class Roles(Plain):
        groups = Customer.objects

    for user in (AnonymousUser(), Plain(), Roles()):
        rights = rights_of(user)
        assert found["open"].exists_for(rights)
        assert not found["apple"].exists_for(rights)


def test_what_is_for_deleted_groups_only_is_closed_and_not_everybodys(client, staff):
    support, sales = (Group.objects.create(name=name) for name in ("Support", "Sales"))
    make_prompt("one", "Hi", groups=[support])
    both = make_prompt("both", "Hi", groups=[support, sales])
    make_prompt("open", "Hi")
    model = ExposedModel.objects.create(label="shop.order")
    tool = ExposedTool.objects.create(name="echo")
    # Of a file.
    prompt = ExposedPrompt.objects.create(name="shop_greeting")
    for row in (model, tool, prompt):
        row.groups.add(support)
    of_others = [*client.prompts()]
    staff.groups.add(support)
    of_members = [*client.prompts()]

    support.delete()

    for row in (both, model, tool, prompt):
        row.refresh_from_db()
    assert of_others == [*client.prompts()] == ["open"]
    assert of_members == ["shop_greeting", "both", "one", "open"]
    assert not PromptTemplate.objects.get(name="one").enabled
    assert (both.enabled, list(both.groups.all())) == (True, [sales])
    assert (model.level, tool.enabled, prompt.enabled) == (Level.HIDDEN, False, False)


# Arguments

DAY = {"name": "day", "type": "date"}


def test_arguments_are_read_by_their_types(client):
    make_prompt(
        "typed",
        "{{ many }} {{ many|pluralize }}{% if many > 2 %}!{% endif %} {{ day|date:'Y-m' }} "
        "{{ tone }} {{ note }}.",
        arguments=[{"name": "many", "type": "number"}, DAY, TONE, {"name": "note"}],
    )

    (said,) = texts(client, "typed", many="3", day="2026-11-18", tone="warm", note="x")
    assert said == "3 s! 2026-11 warm x."
    assert texts(client, "typed") == ["."]
    assert texts(client, "typed", many="", day="", tone="", note="") == ["."]
    for given, sentence in (
        ({"many": "x"}, "Argument many: 'x' is not a number such as 2.50."),
        ({"many": "9" * 50}, "is not a number such as"),
        ({"many": "nan"}, "is not a number such as"),
        ({"day": "18.11."}, "Argument day: '18.11.' is not a date such as 2026-11-18."),
        ({"tone": "loud"}, "Argument tone: 'loud' is not one of: warm, firm."),
        ({"other": "x"}, "Unknown argument 'other'"),
    ):
        code, message = client.failure("prompts/get", name="typed", arguments=given)
        assert (code, sentence in message) == (-32602, True), message


def test_an_object_is_completed_and_read_with_the_rights_of_the_caller(client):
    anne = Customer.objects.create(name="Anne", country="FR", credit_rating=9)
    order = Order.objects.create(
        number="A1", customer=anne, total="10.50", margin=7, placed_at="2026-11-18T12:00Z"
    )
    other = Order.objects.create(number="B2")
    make_prompt(
        "about",
        "{{ order }}|{{ order.pk }}|{{ order.status }}|{{ order.get_status_display }}|"
        "{{ order.total|floatformat:1 }}|{{ order.placed_at|date:'Y' }}|{{ order.customer }}|"
        "{{ order.margin }}{{ order.customer.credit_rating }}{{ order.customer.country }}"
        "{{ order.customer.order_set }}{{ order.delete }}{{ order.pk.real }}|"
        "{% if order.status == 'new' %}new{% endif %}",
        arguments=[{**ORDER, "required": False}, TONE],
    )
    left_out = "{% if order %}some{% else %}none{% endif %}"
    make_prompt("left_out", left_out, arguments=[{**ORDER, "required": False}])

    (said,) = texts(client, "about", order=str(order.pk))
    fence = said.partition("<data-")[2].partition(">")[0]
    shown = said.replace(f"<data-{fence}>", "").replace(f"</data-{fence}>", "")

    assert shown == f"A1|{order.pk}|new|New|10.5|2026|Anne||new"
    assert client.complete("about", "order") == [str(order.pk), str(other.pk)]
    assert client.complete("about", "order", "A") == [str(order.pk)]
    assert client.complete("about", "order", "zzz") == []
    assert client.complete("about", "tone", "f") == ["firm"]
    assert texts(client, "left_out") == texts(client, "left_out", order="") == ["none"]


# Resources


def test_a_resource_is_embedded_with_its_arguments_filled_in(client):
    order = Order.objects.create(number="A1", margin=7)
    Order.objects.create(number="B2", status="paid")
    make_prompt(
        "about",
        {"resource": "django://objects/shop.order/{order}"},
        {"resource": "django://objects/shop.order?status={tone}"},
        arguments=[ORDER, {**TONE, "choices": ["paid", "a/../b?c"]}],
    )

    one, many = client.get_prompt("about", order="A1", tone="paid")

    assert one["content"]["resource"]["uri"] == f"django://objects/shop.order/{order.pk}"
    assert '"A1"' in one["content"]["resource"]["text"]
    assert "margin" not in one["content"]["resource"]["text"]
    assert '"B2"' in many["content"]["resource"]["text"]
    assert "A1" not in many["content"]["resource"]["text"]
    arguments = {"order": "A1", "tone": "a/../b?c"}
    code, message = client.failure("prompts/get", name="about", arguments=arguments)
    assert code == -32602
    assert "status" in message


def test_a_value_chooses_no_other_resource_and_one_that_is_not_there_is_named(client):
    order = Order.objects.create(number="A1")
    address = "django://objects/shop.order/{pk}"
    make_prompt("about", {"resource": address}, arguments=[{"name": "pk"}])

    for pk, shown in (
        ("99", "99"),
        ("../shop.memo/1", "..%2Fshop.memo%2F1"),
        (f"{order.pk}?fields=number", f"{order.pk}%3Ffields%3Dnumber"),
        (f"{order.pk}/", f"{order.pk}%2F"),
        ("1#x", "1%23x"),
    ):
        sentence = (
            f"The prompt needs {address.replace('{pk}', shown)}, and there is no such resource."
        )
        failure = client.failure("prompts/get", name="about", arguments={"pk": pk})
        assert failure == (-32602, sentence)


def test_resources_of_code_may_be_embedded_unless_they_are_async(client, monkeypatch):
    monkeypatch.setattr(registry, "resources", {})

    @mcp.resource("shop://today/{day}")
    def today(day: date) -> str:
        """Of a day."""
        return f"Open on {day}."

    @mcp.resource("shop://later")
    async def later() -> str:
        """Later."""
        return "x"

    make_prompt("now", {"resource": "shop://today/{day}"}, arguments=[DAY])
    make_prompt("then", {"resource": "shop://later"})

    (message,) = client.get_prompt("now", day="2026-11-20")

    assert message["content"]["resource"]["text"] == "Open on 2026-11-20."
    sentence = "shop://later cannot stand in a prompt: its function is async."
    assert client.failure("prompts/get", name="then") == (-32602, sentence)


# Versions


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_of_saves_at_once_each_becomes_a_version_with_a_number_of_its_own():
    template = make_prompt("apple", "one")

    made = together(lambda number: add_version(template, made_of(f"by {number}")), count=4)

    versions = list(template.versions.order_by("number"))
    assert {one.number for one in made} == {2, 3, 4, 5}
    assert [one.number for one in versions] == [1, 2, 3, 4, 5]
    assert {one.messages[0]["text"] for one in versions[1:]} == {f"by {n}" for n in range(4)}

"""Which lists change for whom."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission

import mcp_django as mcp
from mcp_django.exposure.registry import Registry
from mcp_django.exposure.uris import SITE
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
    ServerSettings,
    UserRestriction,
)
from mcp_django.subscriptions.receivers import registered
from mcp_django.subscriptions.topics import (
    LISTS,
    PROMPTS,
    RESOURCES,
    TOOLS,
    Change,
)
from tests.changed import list_changed
from tests.shop.models import Ledger

pytestmark = pytest.mark.django_db


def everybody():
    return {Change(topic=name) for name in LISTS}


def only(*users):
    keys = frozenset(str(user.pk) for user in users)
    return {Change(topic=name, users=keys) for name in LISTS}


@pytest.mark.parametrize(
    ("model", "values", "lists"),
    [
        (ExposedModel, {"label": "shop.memo"}, LISTS),
        (ExposedTool, {"name": "echo"}, {TOOLS}),
        (ExposedPrompt, {"name": "hello"}, {PROMPTS}),
        (PromptTemplate, {"name": "hello"}, {PROMPTS}),
        (ServerSettings, {}, {TOOLS}),
    ],
)
def test_a_row_changes_the_lists_that_it_decides_about(heard, committed, model, values, lists):
    for server in ("default", "other"):
        with committed():
            row = model.objects.create(server=server, **values)
        assert heard.lists == {list_changed(name, server=server) for name in lists}

    with committed():
        row.save()
    assert heard.lists == {list_changed(name, server="other") for name in lists}

    with committed():
        row.delete()
    assert heard.lists == {list_changed(name, server="other") for name in lists}


def test_an_exposed_model_has_another_definition_and_other_records(heard, committed):
    with committed():
        ExposedModel.objects.create(label="shop.Memo", level=2)

    assert heard.changes == {
        Change(topic="django://models/shop.memo", server="default"),
        Change(topic="django://objects/shop.memo", server="default", is_whole=True),
        Change(topic=SITE, server="default"),
    }


def test_a_version_of_a_prompt_changes_prompts(heard, committed):
    template = PromptTemplate.objects.create(name="hello")

    with committed():
        template.versions.create(number=1)

    assert {change.topic for change in heard.lists} == {PROMPTS}


def test_the_groups_of_a_row_change_its_lists(heard, committed):
    row = ExposedTool.objects.create(name="echo")
    group = Group.objects.create(name="clerks")

    with committed():
        row.groups.add(group)
    assert heard.lists == {list_changed(TOOLS)}

    with committed():
        row.groups.remove(group)
    assert heard.lists == {list_changed(TOOLS)}


def test_rights_of_one_user_change_the_lists_of_that_user(heard, committed, make_user):
    user = make_user("ada")
    group = Group.objects.create(name="clerks")
    permission = Permission.objects.first()

    for change in (
        lambda: user.groups.add(group),
        lambda: user.user_permissions.add(permission),
        user.groups.clear,
        user.save,
        lambda: group.user_set.add(user),
        lambda: UserRestriction.objects.create(user=user, read_only=True),
    ):
        with committed():
            change()
        assert heard.lists == only(user)


def test_of_several_users_each_hears(heard, committed, make_user):
    ada, bob = make_user("ada"), make_user("bob")

    with committed():
        Group.objects.create(name="clerks").user_set.add(ada, bob)

    lists = heard.lists
    assert only(ada, bob) <= lists
    assert all(change.concerns(server="x", user=str(bob.pk)) for change in only(ada, bob))


def test_what_many_have_changes_the_lists_of_all(heard, committed, make_user):
    group = Group.objects.create(name="clerks")
    group.user_set.add(make_user("ada"))
    permission = Permission.objects.first()

    for change in (
        lambda: group.permissions.add(permission),
        lambda: permission.group_set.clear(),
        lambda: group.user_set.clear(),
        group.delete,
        permission.save,
    ):
        with committed():
            change()
        assert heard.lists == everybody()


def test_logins_tokens_and_new_users_change_no_list(heard, committed, make_user, client):
    user = make_user("ada")

    with committed():
        user.save(update_fields=["last_login"])
        PersonalToken.objects.create(user=user, name="x")
        make_user("bob")

    assert all(change.topic not in LISTS or change.users for change in heard.everything)


def test_adding_a_right_that_is_there_changes_nothing(heard, committed, make_user):
    user = make_user("ada", "view_order")

    with committed():
        user.user_permissions.add(*user.user_permissions.all())

    assert not heard.lists


def test_many_rights_in_one_transaction_are_one_change(heard, committed, make_user):
    user = make_user("ada")

    with committed():
        for permission in Permission.objects.all()[:20]:
            user.user_permissions.add(permission)
    everything = heard.everything

    assert everything == only(user)


def test_registrations_at_run_time_change_lists(heard, add_tool, add_prompt):
    def sing() -> str:
        """Sing."""
        return "la"

    add_tool(sing)
    assert heard.lists == {list_changed(TOOLS)}

    add_prompt(sing)
    assert heard.lists == {list_changed(PROMPTS)}

    mcp.register(Ledger, fields=["amount"])
    assert heard.lists == {list_changed(name) for name in LISTS}
    mcp.unregister(Ledger)
    assert heard.lists == {list_changed(name) for name in LISTS}


def test_resources_of_code_that_come_and_go_change_resources(heard):
    from mcp_django.exposure.registry import registry

    @mcp.resource("shop://now")
    def now() -> str:
        """The time."""
        return "now"

    assert heard.lists == {list_changed(RESOURCES)}
    registry.remove_resource("shop://now")
    assert heard.lists == {list_changed(RESOURCES)}


def test_what_is_registered_while_the_site_starts_changes_nothing(heard, monkeypatch):
    monkeypatch.setattr(apps, "ready", False)

    registered(sender=Registry(), kind="tool")

    assert not heard.lists

"""Which lists change for whom."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission

import mcp_django as mcp
from mcp_django.exposure.registry import Registry, registry
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
from mcp_django.subscriptions.topics import LISTS, PROMPTS, RESOURCES, TOOLS, Change
from tests.changed import list_changed
from tests.shop.models import Ledger

pytestmark = pytest.mark.django_db


def lists_of(*users):
    """Those of these users, or of everybody."""
    keys = frozenset(str(user.pk) for user in users) or None
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
def test_a_row_changes_the_lists_that_it_decides_about(
    heard, announced, committed, model, values, lists
):
    for server in ("default", "other"):
        with committed():
            row = model.objects.create(server=server, **values)
        assert heard.lists == {list_changed(name, server=server) for name in lists}

    for change in (row.save, row.delete):
        assert announced(change).lists == {list_changed(name, server="other") for name in lists}


def test_an_exposed_model_has_another_definition_and_other_records(announced):
    assert announced(lambda: ExposedModel.objects.create(label="shop.Memo", level=2)).changes == {
        Change(topic="django://models/shop.memo", server="default"),
        Change(topic="django://objects/shop.memo", server="default", is_whole=True),
        Change(topic=SITE, server="default"),
    }


def test_the_versions_and_the_groups_of_a_row_change_its_lists(announced):
    template = PromptTemplate.objects.create(name="hello")
    tool = ExposedTool.objects.create(name="echo")
    group = Group.objects.create(name="clerks")

    for change, changed in (
        (lambda: template.versions.create(number=1), Change(topic=PROMPTS)),
        (lambda: tool.groups.add(group), list_changed(TOOLS)),
        (lambda: tool.groups.remove(group), list_changed(TOOLS)),
    ):
        assert announced(change).lists == {changed}


#: Of a user, a group and a permission.
CHANGES_OF_ONE = {
    "a group is given": lambda its: its.user.groups.add(its.group),
    "a right is given": lambda its: its.user.user_permissions.add(its.right),
    "groups are taken": lambda its: its.user.groups.clear(),
    "the user is saved": lambda its: its.user.save(),
    "a group takes the user": lambda its: its.group.user_set.add(its.user),
    "a group takes several users": lambda its: its.group.user_set.add(its.user, its.other),
    "a restriction": lambda its: UserRestriction.objects.create(user=its.user, read_only=True),
}
CHANGES_OF_ALL = {
    "a group is given a right": lambda its: its.group.permissions.add(its.right),
    "a right leaves groups": lambda its: its.right.group_set.clear(),
    "a group loses all users": lambda its: its.group.user_set.clear(),
    "a group is deleted": lambda its: its.group.delete(),
    "a right is saved": lambda its: its.right.save(),
}


@pytest.mark.parametrize("name", [*CHANGES_OF_ONE, *CHANGES_OF_ALL])
def test_a_change_of_rights_changes_the_lists_of_whoever_has_them(announced, make_user, name):
    user, other = make_user("ada"), make_user("bob")
    group, right = Group.objects.create(name="clerks"), Permission.objects.first()
    its = SimpleNamespace(user=user, other=other, group=group, right=right)
    users = [user, other] if "several" in name else [user]
    if name in CHANGES_OF_ALL:
        group.user_set.add(user)
        users = []

    change = {**CHANGES_OF_ONE, **CHANGES_OF_ALL}[name]
    assert announced(lambda: change(its)).lists == lists_of(*users)


def test_logins_tokens_and_new_users_change_no_list(heard, committed, make_user):
    user = make_user("ada", "view_order")

    with committed():
        user.save(update_fields=["last_login"])
        PersonalToken.objects.create(user=user, name="x")
        make_user("bob")
        user.user_permissions.add(*user.user_permissions.all())

    assert not heard.lists


def sing() -> str:
    """Sing."""
    return "la"


@pytest.mark.parametrize(
    ("add", "remove", "lists"),
    [
        (mcp.tool(read_only=True), lambda: registry.remove("tool", "sing"), {TOOLS}),
        (mcp.prompt(), lambda: registry.remove("prompt", "sing"), {PROMPTS}),
        (
            mcp.resource("shop://now"),
            lambda: registry.remove("resource", "shop://now"),
            {RESOURCES},
        ),
        (
            lambda function: mcp.register(Ledger, fields=["amount"]),
            lambda: mcp.unregister(Ledger),
            LISTS,
        ),
    ],
    ids=["tool", "prompt", "resource", "model"],
)
def test_registrations_at_run_time_change_lists(heard, add, remove, lists):
    add(sing)
    added = heard.lists
    remove()

    assert added == heard.lists == {list_changed(name) for name in lists}


def test_what_is_registered_while_the_site_starts_changes_nothing(heard, monkeypatch):
    monkeypatch.setattr(apps, "ready", False)

    registered(sender=Registry(), kind="tool")

    assert not heard.lists

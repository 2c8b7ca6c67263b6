from __future__ import annotations

import json

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.core.management import CommandError

from mcp_django.levels import Level
from mcp_django.models import UserRestriction
from tests.decisions import decide, decide_on_tool
from tests.exposure.stored import make_prompt

pytestmark = pytest.mark.django_db
COMMAND = "mcp_list"
needs_admin = pytest.mark.skipif(
    not apps.is_installed("django.contrib.admin"), reason="Users have what the admin gives them."
)


@pytest.fixture
def rows(run):
    """What the command says for programs, by kind and name."""

    def rows(*arguments):
        found = json.loads(run("--json", *arguments).out)
        return {(row.pop("kind"), row.pop("name")): row for row in found}

    return rows


@pytest.fixture
def clerk(make_user):
    return make_user("clerk", "view_order", is_staff=True)


def only_on_fridays(request):
    return False


def hours() -> str:
    """Say when the shop is open."""
    return ""


@needs_admin
def test_a_model_is_listed_with_its_level_with_who_opened_it_and_with_what_it_needs(rows):
    decide("shop.ledger", level=Level.AGGREGATES)
    decide("shop.memo", level=Level.HIDDEN)

    listed = rows()

    assert listed["model", "shop.order"] == {
        "state": "read, opened by code",
        "needs": [
            "the scope mcp:read",
            "the permission shop.view_order",
            "to be let in by the admin",
        ],
    }
    assert listed["model", "shop.ledger"]["state"] == "aggregates, opened by staff"
    assert listed["model", "shop.memo"]["state"] == "hidden, opened by code"
    assert ("model", "auth.user") not in listed


def test_a_function_is_listed_with_the_scope_and_the_permission_that_it_needs(
    rows, add_tool, add_prompt, add_resource
):
    add_tool(hours, permission=only_on_fridays)
    add_resource("shop://hours", hours, permission="shop.view_memo")
    group = Group.objects.create(name="Sales")
    make_prompt("sales_talk", "Sell it.", groups=[group])
    decide_on_tool("echo", enabled=False)

    listed = rows()

    assert listed["tool", "pay"]["needs"] == [
        "the scope mcp:write",
        "the permission shop.change_order",
    ]
    assert listed["tool", "hours"]["needs"][1:] == ["what code of the site decides"]
    assert listed["tool", "echo"] == {
        "state": "switched off by staff",
        "needs": ["the scope mcp:read", "to be staff"],
    }
    assert listed["tool", "delete_record"]["needs"][0] == "the scope mcp:delete"
    assert listed["resource", "shop://hours"]["needs"][1:] == ["the permission shop.view_memo"]
    assert listed["prompt", "sales_talk"]["needs"][1:] == ["a group that staff chose"]


@needs_admin
def test_a_user_has_some_of_it_and_a_reason_stands_with_all_the_rest(rows, clerk):
    listed = rows("--user", "clerk")

    assert listed["model", "shop.order"] == {"state": "read: records", "reasons": []}
    assert listed["model", "shop.memo"] == {
        "state": "missing",
        "reasons": ["This user does not have the permission shop.view_memo."],
    }
    assert listed["tool", "pay"]["reasons"] == [
        "This user does not have the permission shop.change_order."
    ]
    assert listed["tool", "echo"] == {"state": "on", "reasons": []}
    assert all(bool(row["reasons"]) == (row["state"] == "missing") for row in listed.values())


@needs_admin
def test_what_a_user_has_is_what_the_clients_of_the_user_get(rows, make_client):
    client = make_client("view_order", "change_order", name="seller")

    listed = rows("--user", "seller")

    models, tools = (
        {name for (of, name), row in listed.items() if of == kind and not row["reasons"]}
        for kind in ("model", "tool")
    )
    assert (models, tools) == ({*client.models()}, {*client.tools()})


@needs_admin
def test_people_read_one_line_for_each_thing(run, clerk):
    everything, hers = run().out, run("--user", "clerk").out

    assert "tool\tpay\ton\tthe scope mcp:write\tthe permission shop.change_order\n" in everything
    assert "model\tshop.order\tread: records\n" in hers


@needs_admin
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--user", "nobody"], "There is no user"),
        (["--user", "gone"], "This user may not act"),
        (["--user", "blocked"], "Staff blocked this user"),
    ],
)
def test_a_user_without_any_credential_is_told_in_a_sentence(run, make_user, arguments, sentence):
    make_user("gone", is_active=False)
    UserRestriction.objects.create(user=make_user("blocked"), blocked=True)

    with pytest.raises(CommandError, match=sentence):
        run(*arguments)

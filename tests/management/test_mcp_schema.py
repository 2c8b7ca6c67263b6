from __future__ import annotations

import json

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.core.management import CommandError
from django.utils import timezone

from mcp_django.levels import Level
from tests.decisions import decide, decide_on_tool

COMMAND = "mcp_schema"
needs_admin = pytest.mark.skipif(
    not apps.is_installed("django.contrib.admin"), reason="Users have what the admin gives them."
)


@pytest.fixture
def schema(run):
    """What the command writes, by scope, kind and name."""
    return lambda *arguments: json.loads(run(*arguments).out)


def hours() -> str:
    """Say when the shop is open."""
    return ""


def of_day(day: str) -> str:
    """Say when the shop is open on a day."""
    return ""


def asks_database(*args):
    return Group.objects.exists()


@needs_admin
@pytest.mark.parametrize(
    ("scope", "kind", "name", "needs"),
    [
        ("mcp:read", "models", "shop.order", "the permission shop.view_order"),
        ("mcp:read", "tools", "echo", "to be staff"),
        ("mcp:write", "tools", "pay", "the permission shop.change_order"),
        ("mcp:write", "tools", "create_record", "the permission to add records of some model"),
        ("mcp:delete", "tools", "delete_record", "the permission to delete records of some model"),
        ("mcp:action", "tools", "shop_customer_greet", "the permission to change shop.customer"),
        ("mcp:read", "prompts", "shop_greeting", "to be staff"),
    ],
)
def test_each_thing_stands_below_its_scope_with_what_it_needs(schema, scope, kind, name, needs):
    assert schema()[scope][kind][name]["needs"][0].startswith(needs)


def test_no_database_is_asked_and_what_code_of_the_site_decides_is_there(
    schema, expose, add_tool, add_prompt, add_resource
):
    add_tool(hours, permission=asks_database)
    add_prompt(hours, permission=asks_database, name="hours")
    add_resource("shop://hours", hours, permission=asks_database, last_modified=asks_database)
    add_resource("shop://hours/{day}", of_day)
    expose(Group, fields=["id", "name"], has_view_permission=asks_database, mask={"name": "text"})

    read = schema()["mcp:read"]

    decided = ["what code of the site decides"]
    assert read["tools"]["hours"]["needs"] == decided
    assert read["prompts"]["hours"]["needs"] == decided
    assert read["resources"]["shop://hours"]["needs"] == decided
    assert read["resourceTemplates"]["shop://hours/{day}"]["needs"] == ["to be staff"]
    assert read["models"]["auth.group"]["needs"] == decided
    assert read["models"]["auth.group"]["fields"] == ["id", "name"]
    assert read["models"]["auth.group"]["mask"] == {"name": "text"}


def test_the_text_is_sorted_and_the_same_each_time(run):
    first, second = run().out, run().out

    assert first == second
    assert first == json.dumps(json.loads(first), indent=2, sort_keys=True) + "\n"


@needs_admin
@pytest.mark.django_db
def test_what_staff_decided_counts_for_a_user_and_not_for_what_code_offers(schema, make_user, run):
    before = run().out
    make_user("clerk", "view_order", "view_memo", is_staff=True)
    decide("shop.memo", level=Level.HIDDEN)
    decide_on_tool("echo", description="In the words of staff.")
    decide_on_tool("fail", enabled=False)

    hers = schema("--user", "clerk")["mcp:read"]

    assert run().out == before
    assert [*hers["models"]] == ["shop.order"]
    assert hers["tools"]["echo"]["description"] == "In the words of staff."
    assert "fail" not in hers["tools"]


@needs_admin
@pytest.mark.django_db
def test_what_a_user_is_offered_is_what_the_clients_of_the_user_get(
    schema, make_client, add_resource
):
    client = make_client("view_order", "change_order", "view_customer", name="seller")
    add_resource("shop://hours", hours, last_modified=lambda request: timezone.now())

    hers = schema("--user", "seller")

    def of(kind):
        things = [thing for kinds in hers.values() for thing in kinds.get(kind, {}).values()]
        for thing in things:
            del thing["needs"]
        return sorted(things, key=lambda one: one["name"])

    assert of("tools") == sorted(client.list_tools(), key=lambda one: one["name"])
    assert of("prompts") == sorted(client.list_prompts(), key=lambda one: one["name"])
    templates = client.list_all("resources/templates/list", "resourceTemplates")
    assert of("resourceTemplates") == sorted(templates, key=lambda one: one["name"])
    assert {one["uri"] for one in of("resources")} == {"shop://hours"}
    for model in of("models"):
        described = client.read_resource(f"django://models/{model['name']}")
        assert model == {name: described[name] for name in model}


@needs_admin
@pytest.mark.django_db
def test_a_user_without_any_credential_is_told_in_a_sentence(run, make_user):
    make_user("gone", is_active=False)

    with pytest.raises(CommandError, match="This user may not act"):
        run("--user", "gone")


# Files

ONE_MORE = "If that is right: manage.py mcp_schema > "


def test_a_file_that_is_right_passes_and_another_one_is_shown_with_what_to_type(
    run, tmp_path, capsys, add_tool
):
    file = tmp_path / "schema.json"
    file.write_text(run().out, encoding="utf-8")
    right = run("--check", file).out
    add_tool(hours)

    with pytest.raises(CommandError) as refused:
        run("--check", file)

    shown = capsys.readouterr().out
    assert right == f"{file} is what is offered now.\n"
    assert str(refused.value).endswith(f"{ONE_MORE}{file}")
    assert refused.value.returncode == 1
    assert shown.startswith(f"--- {file}\n+++ now\n@@")
    assert '\n+      "hours": {\n' in shown
    assert "\n-" not in shown


@needs_admin
@pytest.mark.django_db
def test_a_file_that_is_missing_can_be_written_by_what_the_sentence_says(run, tmp_path, make_user):
    make_user("clerk", is_staff=True)

    with pytest.raises(CommandError, match=r"manage\.py mcp_schema --user clerk > .*/none\.json"):
        run("--user", "clerk", "--check", tmp_path / "none.json")

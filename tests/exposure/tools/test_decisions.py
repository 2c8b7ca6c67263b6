"""What staff decided about tools, the server and single users, as clients notice it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from mcp_django.models import ExposedTool, ServerSettings, UserRestriction
from mcp_django.testing import Client
from tests.clients import CheckedClient

pytestmark = pytest.mark.django_db


def decide(name, **decided):
    return ExposedTool.objects.update_or_create(name=name, defaults=decided)[0]


def definition(client, name):
    return next((one for one in client.list_tools() if one["name"] == name), None)


@pytest.mark.parametrize("name", ["echo", "find_records"])
def test_a_tool_that_is_switched_off_does_not_exist_until_that_is_taken_back(client, name):
    row = decide(name, enabled=False)

    _, message = client.failure("tools/call", name=name, arguments={})
    hidden = definition(client, name)
    row.delete()
    # That of another server decides nothing here.
    ExposedTool.objects.create(server="second", name=name, enabled=False)

    assert message == f"Unknown tool: {name}"
    assert hidden is None
    assert definition(client, name) is not None


def test_a_tool_for_a_group_exists_for_its_members_only(client, staff):
    group = Group.objects.create(name="talkers")
    decide("echo").groups.add(group)
    before = definition(client, "echo")

    staff.groups.add(group)

    assert before is None
    assert definition(client, "echo") is not None


def test_a_group_gives_no_right_that_the_tool_itself_refuses(make_user):
    outsider = make_user("outsider")
    group = Group.objects.create(name="talkers")
    outsider.groups.add(group)
    decide("echo", enabled=True).groups.add(group)

    assert definition(CheckedClient(user=outsider), "echo") is None


def test_the_words_of_staff_take_the_place_of_those_of_code_and_annotations_get_stricter(client):
    before = definition(client, "echo")
    hints = {"readOnlyHint": False, "destructiveHint": True}
    decide("echo", title="Parrot", description="Repeats, and nothing else.", annotations=hints)

    after = definition(client, "echo")

    assert (after["title"], after["description"]) == ("Parrot", "Repeats, and nothing else.")
    assert after["inputSchema"] == before["inputSchema"]
    assert before["annotations"]["readOnlyHint"] is True
    assert "readOnlyHint" not in after["annotations"]
    assert after["annotations"]["destructiveHint"] is True


@pytest.mark.parametrize(
    "annotations", [{"readOnlyHint": True}, {"destructiveHint": False}, {"title": "x"}, ["x"]]
)
def test_annotations_that_would_promise_more_are_refused(annotations):
    row = ExposedTool(name="echo", annotations=annotations)

    with pytest.raises(ValidationError, match="stricter"):
        row.full_clean()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_instructions_of_staff_take_the_place_of_those_of_the_settings(staff, settings, revision):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "INSTRUCTIONS": "From the settings."}
    client = Client(user=staff, revision=revision)
    greet = client.discover if revision == "2026-07-28" else client.initialize
    before = greet()["instructions"]

    ServerSettings.objects.create(instructions="From the admin.")

    assert before == "From the settings."
    assert greet()["instructions"] == "From the admin."


@pytest.mark.parametrize("is_for_all", [True, False])
def test_whom_staff_made_read_only_has_no_tool_that_writes(staff, make_user, add_tool, is_for_all):
    def write_down(text: str) -> str:
        """Write it down."""
        return text

    add_tool(write_down, read_only=False)
    client = CheckedClient(user=staff)
    other = CheckedClient(user=make_user("other", is_staff=True))
    before = definition(client, "write_down")

    if is_for_all:
        ServerSettings.objects.create(read_only=True)
    else:
        UserRestriction.objects.create(user=staff)

    assert before is not None
    assert definition(client, "write_down") is None
    assert definition(client, "echo") is not None
    assert (definition(other, "write_down") is None) is is_for_all
    assert "Unknown tool" in client.failure("tools/call", name="write_down", arguments={})[1]

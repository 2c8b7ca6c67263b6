"""Where staff want a person to agree, the first call changes nothing."""

from __future__ import annotations

import pytest

from mcp_django.models import ExposedTool
from tests.workshop.models import Tag

pytestmark = pytest.mark.django_db
CREATE = {"model": "workshop.tag", "values": {"name": "new"}}


@pytest.fixture(autouse=True)
def _guarded(db):
    for name in ("create_record", "update_record"):
        ExposedTool.objects.create(name=name, needs_confirmation=True)


def names():
    return sorted(Tag.objects.values_list("name", flat=True))


def test_a_creation_is_shown_and_then_done(client):
    shown = client.call_tool("create_record", **CREATE)

    assert shown.structured["difference"]["created"][0]["record"]["name"] == "new"
    assert "Nothing was changed." in shown.structured["next"]
    assert names() == []
    done = client.call_tool(
        "create_record", **CREATE, confirmation=shown.structured["confirmation"]
    )
    assert not done.is_error, done.text
    assert names() == ["new"]
    again = client.call_tool(
        "create_record", **CREATE, confirmation=shown.structured["confirmation"]
    )
    assert "used already" in again.text
    assert names() == ["new"]


def test_a_key_of_a_call_counts_from_the_call_that_is_done(client):
    call = {**CREATE, "idempotency_key": "k"}
    token = client.call_tool("create_record", **call).structured["confirmation"]

    first = client.call_tool("create_record", **call, confirmation=token)
    second = client.call_tool("create_record", **call, confirmation=token)

    assert first.structured == second.structured
    assert names() == ["new"]


def test_a_change_is_shown_and_then_done_while_nobody_else_changes_the_record(client, tags):
    call = {"model": "workshop.tag", "pk": tags[0].pk, "values": {"name": "new"}}
    stale = client.call_tool("update_record", **call).structured["confirmation"]
    Tag.objects.filter(pk=tags[0].pk).update(is_active=False)

    refused = client.call_tool("update_record", **call, confirmation=stale)
    assert "no longer what was shown" in refused.text
    assert "new" not in names()

    token = client.call_tool("update_record", **call).structured["confirmation"]
    other = {**call, "values": {"name": "other"}}
    assert client.call_tool("update_record", **other, confirmation=token).is_error
    assert not client.call_tool("update_record", **call, confirmation=token).is_error
    assert "new" in names()


@pytest.mark.parametrize("token", ["true", "x", "ü"])
def test_a_forged_confirmation_changes_nothing(token, client, tags):
    before = names()

    assert client.call_tool("create_record", **CREATE, confirmation=token).is_error
    assert client.call_tool(
        "update_record", model="workshop.tag", pk=tags[0].pk, values={"name": "new"},
        confirmation=token,
    ).is_error  # fmt: skip
    assert names() == before


def test_what_is_only_tried_gives_no_confirmation(client):
    answer = client.call_tool("create_record", **CREATE, dry_run=True)

    assert "confirmation" not in answer.structured

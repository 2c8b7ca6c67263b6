"""What is only tried is told, and taken back."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry

from tests.workshop.models import Job, Keeper, Tag, Thing

pytestmark = pytest.mark.django_db


def test_a_record_that_would_be_created_is_shown_and_not_there(client):
    answer = client.call_tool(
        "create_record", model="workshop.thing", dry_run=True,
        values={"title": "T"},
        inlines={"parts": [{"name": "p"}]},
    )  # fmt: skip

    assert not answer.is_error, answer.text
    assert answer.structured["dry_run"] is True
    assert answer.structured["changed"] == ["title", "slug", "parts"]
    made = {one["model"]: one["record"] for one in answer.structured["difference"]["created"]}
    assert made["workshop.thing"]["title"] == "T"
    assert made["workshop.part"]["name"] == "p"
    assert "pk" not in answer.structured
    assert "unseen" not in answer.text
    assert (Thing.objects.count(), LogEntry.objects.count()) == (0, 0)


def test_a_change_is_shown_as_far_as_the_caller_reads(client, thing, snapshot):
    before = snapshot(thing)

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, dry_run=True,
        values={"title": "new", "count": 7},
    )  # fmt: skip

    (change,) = answer.structured["difference"]["changed"]
    assert change["fields"]["title"] == {"before": "T", "after": "new"}
    assert "count" not in change["fields"]
    assert answer.structured["changed"] == ["title", "count"]
    assert snapshot(thing) == before


def test_a_fault_is_told_as_without_it(client, thing):
    call = {"model": "workshop.thing", "pk": thing.pk, "values": {"state": "nope"}}

    tried = client.call_tool("update_record", **call, dry_run=True)

    assert tried.is_error
    assert tried.text == client.call_tool("update_record", **call).text


def test_a_deletion_is_tried_without_a_confirmation(client, thing):
    answer = client.call_tool("delete_record", model="workshop.thing", pk=thing.pk, dry_run=True)

    assert answer.structured["deleted"]["workshop.thing"] == 1
    gone = {one["model"] for one in answer.structured["difference"]["deleted"]}
    assert gone == {"workshop.thing", "workshop.part"}
    assert "scrap" not in answer.text
    assert thing.parts.count() == 3


def test_several_deletions_are_tried_together(client, tags):
    keys = [one.pk for one in tags]

    answer = client.call_tool("delete_record", model="workshop.tag", pk=keys, dry_run=True)

    assert len(answer.structured["difference"]["deleted"]) == 3
    assert Tag.objects.count() == 3


def test_what_is_protected_is_told_and_not_tried(client, thing):
    Keeper.objects.create(thing=thing)

    answer = client.call_tool("delete_record", model="workshop.thing", pk=thing.pk, dry_run=True)

    assert answer.structured["protected_by"] == {"workshop.keeper": 1}
    assert answer.structured["deleted"] is None
    assert answer.structured["difference"]["deleted"] == []


def test_a_dry_run_uses_no_key_of_a_call(client):
    call = {"model": "workshop.job", "values": {"name": "x"}, "idempotency_key": "k"}

    client.call_tool("create_record", **call, dry_run=True)

    assert not Job.objects.exists()
    assert not client.call_tool("create_record", **call).is_error
    assert Job.objects.count() == 1

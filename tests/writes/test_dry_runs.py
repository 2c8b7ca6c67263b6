"""What is only tried is told, and taken back."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry

from mcp_django.models import CallRecord
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.workshop.models import Job, Keeper, Tag, Thing

pytestmark = pytest.mark.django_db


def test_a_record_that_would_be_created_is_shown_and_not_there(client):
    answer = client.call_tool(
        "create_record", model="workshop.thing", dry_run=True,
        values={"title": "T"},
        inlines={"parts": [{"name": "p"}]},
    )  # fmt: skip

    assert not answer.is_error, answer.text
    assert answer.data["dry_run"] is True
    assert list(answer.data["changed"]) == ["title", "slug", "parts"]
    assert answer.data["changed"]["title"] == [None, "T"]
    assert "pk" not in answer.data
    assert "unseen" not in answer.text
    assert (Thing.objects.count(), LogEntry.objects.count()) == (0, 0)


def test_a_change_is_shown_as_far_as_the_caller_reads(client, thing, snapshot):
    before = snapshot(thing)

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, dry_run=True,
        values={"title": "new", "count": 7},
    )  # fmt: skip

    assert answer.data == {"dry_run": True, "changed": {"title": ["T", "new"], "count": None}}
    assert snapshot(thing) == before


def test_a_fault_is_told_as_without_it(client, thing):
    call = {"model": "workshop.thing", "pk": thing.pk, "values": {"state": "nope"}}

    tried = client.call_tool("update_record", **call, dry_run=True)

    assert tried.is_error
    assert tried.text == client.call_tool("update_record", **call).text


def test_a_deletion_is_tried_without_a_confirmation(client, thing):
    answer = client.call_tool("delete_record", model="workshop.thing", pk=thing.pk, dry_run=True)

    assert answer.data["deleted"] == {"workshop.thing": 1, "workshop.part": 3}
    assert "scrap" not in answer.text
    assert thing.parts.count() == 3


@pytest.mark.thorough
def test_several_deletions_are_tried_together(client, tags):
    keys = [one.pk for one in tags]

    answer = client.call_tool("delete_record", model="workshop.tag", pk=keys, dry_run=True)

    assert answer.data["deleted"] == {"workshop.tag": 3}
    assert answer.data["keys"] == keys
    assert Tag.objects.count() == 3


def test_what_is_protected_is_told_and_not_tried(client, thing):
    Keeper.objects.create(thing=thing)

    answer = client.call_tool("delete_record", model="workshop.thing", pk=thing.pk, dry_run=True)

    assert answer.data["protected_by"] == {"workshop.keeper": 1}
    assert answer.is_error


def test_a_dry_run_uses_no_key_of_a_call(client):
    call = {"model": "workshop.job", "values": {"name": "x"}, "idempotency_key": "k"}

    client.call_tool("create_record", **call, dry_run=True)

    assert not Job.objects.exists()
    assert not client.call_tool("create_record", **call).is_error
    assert Job.objects.count() == 1


# How often


@pytest.fixture
def limited(settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "DRY_RUNS_PER_MINUTE": 2}


@pytest.mark.thorough
def test_dry_runs_have_a_limit_of_their_own_whichever_tool_and_however_they_end(
    client, make_user, tags, thing, limited
):
    tag = {"model": "workshop.tag"}
    client.call_tool("create_record", **tag, values={"name": "x"}, dry_run=True)
    client.call_tool("update_record", **tag, pk=999, values={}, dry_run=True)

    third = client.call_tool("delete_record", **tag, pk=tags[0].pk, dry_run=True)
    written = client.call_tool("create_record", **tag, values={"name": "x"})
    refused_false = client.call_tool("create_record", **tag, values={"name": "y"}, dry_run=False)
    other = CheckedClient(user=make_user("other", is_staff=True, is_superuser=True))
    of_another = other.call_tool("delete_record", **tag, pk=tags[0].pk, dry_run=True)

    assert third.is_error
    assert re.fullmatch(r"Too many dry runs\. Try again in \d+ seconds\.", third.text)
    assert not written.is_error
    assert not refused_false.is_error
    assert not of_another.is_error


def test_a_function_may_mean_something_else_by_the_name_and_is_no_dry_run(
    client, limited, add_tool
):
    def rehearse(*, dry_run: bool) -> str:
        """Mean something else by it."""
        return "rehearsed"

    add_tool(rehearse)

    answers = [client.call_tool("rehearse", dry_run=True) for _ in range(3)]

    assert not any(answer.is_error for answer in answers)


def test_each_dry_run_is_recorded_also_one_that_is_refused(boss, tags, limited):
    client = CheckedClient(user=boss, record=True)
    call = {"model": "workshop.tag", "dry_run": True}

    client.call_tool("create_record", **call, values={"name": "x"})
    client.call_tool("create_record", **call, values={"name": ["x"]})
    client.call_tool("create_record", **call, values={"name": "x"})
    client.call_tool("create_record", model="workshop.tag", values={"name": "x"})

    rows = CallRecord.objects.filter(method="tools/call").order_by("pk")
    assert list(rows.values_list("target", "outcome", "user")) == [
        ("create_record workshop.tag (dry run)", "done", boss.pk),
        ("create_record workshop.tag (dry run)", "failed", boss.pk),
        ("create_record workshop.tag (dry run)", "limited", boss.pk),
        ("create_record workshop.tag", "done", boss.pk),
    ]


def test_whatever_is_called_as_a_dry_run_has_a_record_that_fits(boss):
    client = CheckedClient(user=boss, record=True)

    with pytest.raises(ProtocolFailure):
        client.call_tool("x" * 5000, dry_run=True)

    assert len(CallRecord.objects.get(method="tools/call").target) == 300


# What cannot be read


@pytest.mark.parametrize("is_same", [True, False])
def test_a_field_that_the_caller_cannot_read_counts_as_changed_whatever_it_held(
    is_same, client, thing
):
    keys = [one.pk for one in thing.tags.all()] if is_same else []
    values = {"title": "T2", "count": 12345 if is_same else 1, "tags": {"set": keys}}

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values=values, dry_run=True
    )

    assert list(answer.data["changed"]) == ["title", "count", "tags"]


@pytest.mark.exposure(Part={"fields": ["id", "name"]})
@pytest.mark.parametrize("quantity", [1, 2])
def test_the_same_goes_for_a_row_in_the_form(quantity, client, thing):
    row = {"pk": thing.parts.first().pk, "quantity": quantity}

    answer = client.call_tool(
        "update_record",
        model="workshop.thing",
        pk=thing.pk,
        inlines={"parts": [row]},
        dry_run=True,
    )

    assert list(answer.data["changed"]) == ["parts"]


@pytest.mark.exposure(Thing={"filter_fields": ["count", "tags"]})
def test_what_can_be_filtered_by_is_no_secret(client, thing):
    values = {"count": 12345, "tags": {"set": [one.pk for one in thing.tags.all()]}, "title": "T"}

    answer = client.call_tool(
        "update_record", model="workshop.thing", pk=thing.pk, values=values, dry_run=True
    )

    assert list(answer.data["changed"]) == []

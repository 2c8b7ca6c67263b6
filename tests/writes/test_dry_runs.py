"""Dry runs: what they take, what is recorded of them, and how many there may be."""

from __future__ import annotations

import re

import pytest

from mcp_django.models import CallRecord
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.workshop.models import Job

pytestmark = pytest.mark.django_db

TAG = {"model": "workshop.tag"}


def test_a_dry_run_uses_no_key_of_a_call(client):
    call = {"model": "workshop.job", "values": {"name": "x"}, "idempotency_key": "k"}

    client.data("create_record", **call, dry_run=True)
    jobs_before = Job.objects.count()
    client.data("create_record", **call)

    assert (jobs_before, Job.objects.count()) == (0, 1)


@pytest.fixture
def limited(settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "DRY_RUNS_PER_MINUTE": 2}


@pytest.mark.thorough
def test_dry_runs_have_a_limit_of_their_own_whichever_tool_and_however_they_end(
    client, make_client, tags, limited
):
    deletion = {**TAG, "pk": tags[0].pk, "dry_run": True}
    client.call_tool("create_record", **TAG, values={"name": "x"}, dry_run=True)
    client.call_tool("update_record", **TAG, pk=999, values={}, dry_run=True)

    third = client.refusal("delete_record", **deletion)
    client.data("create_record", **TAG, values={"name": "x"})
    client.data("create_record", **TAG, values={"name": "y"}, dry_run=False)
    make_client(is_superuser=True).data("delete_record", **deletion)

    assert re.fullmatch(r"Too many dry runs, .+\. Try again in \d+ seconds\.", third)


def test_a_function_may_mean_something_else_by_the_name_and_is_no_dry_run(
    client, limited, add_tool
):
    def rehearse(*, dry_run: bool) -> str:
        """Mean something else by it."""
        return "rehearsed"

    add_tool(rehearse)

    answers = [client.call_tool("rehearse", dry_run=True) for _ in range(3)]

    assert not any(answer.is_error for answer in answers)


def test_each_dry_run_is_recorded_also_one_that_is_refused(superuser, tags, limited):
    client = CheckedClient(user=superuser, record=True)

    for name, options in [
        ("x", {"dry_run": True}),
        (["x"], {"dry_run": True}),
        ("x", {"dry_run": True}),
        ("x", {}),
    ]:
        client.call_tool("create_record", **TAG, values={"name": name}, **options)

    rows = CallRecord.objects.filter(method="tools/call").order_by("pk")
    assert list(rows.values_list("target", "outcome", "user")) == [
        ("create_record workshop.tag (dry run)", "done", superuser.pk),
        ("create_record workshop.tag (dry run)", "failed", superuser.pk),
        ("create_record workshop.tag (dry run)", "limited", superuser.pk),
        ("create_record workshop.tag", "done", superuser.pk),
    ]


def test_whatever_is_called_as_a_dry_run_has_a_record_that_fits(superuser):
    client = CheckedClient(user=superuser, record=True)

    with pytest.raises(ProtocolFailure):
        client.call_tool("x" * 5000, dry_run=True)

    assert len(CallRecord.objects.get(method="tools/call").target) == 300

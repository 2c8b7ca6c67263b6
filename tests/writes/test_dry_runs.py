"""Dry runs: what they take, what is recorded of them, and how many there may be."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connections

from mcp_django.auth import throttles
from mcp_django.exposure.admin_bridge import writes
from mcp_django.models import CallRecord
from mcp_django.testing import ProtocolFailure
from tests.clients import CheckedClient
from tests.waiting import PATIENCE
from tests.workshop.admin import TagAdmin
from tests.workshop.models import Job, Tag

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


# The seconds that they take


class Watch:
    """In place of the module `time`: seconds pass where a test says so."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def slow(monkeypatch):
    """To save a tag takes a second, of a clock that stands still otherwise."""
    watch = Watch()
    for module in (throttles, writes):
        monkeypatch.setattr(module, "time", watch)

    def save_model(self, request, obj, form, change):
        watch.now += 1
        obj.save()

    monkeypatch.setattr(TagAdmin, "save_model", save_model)


def try_many(client, tags, count):
    pks = [tag.pk for tag in tags[:count]]
    return client.call_tool("update_records", **TAG, pks=pks, values={"name": "x"}, dry_run=True)


def test_a_dry_run_of_too_many_records_ends_behind_the_first_and_says_how_many_fit(client, slow):
    tags = Tag.objects.bulk_create(Tag(name=f"t{at}") for at in range(30))

    refused = try_many(client, tags, 30)
    fitting = [try_many(client, tags, 3).data["records"] for _ in range(3)]
    further = client.refusal("create_record", **TAG, values={"name": "x"}, dry_run=True)

    assert refused.text == (
        "A dry run of 30 records takes too long. Nothing was changed. Name at most 3 records."
    )
    # One second of the first call and nine of these are the ten of a minute.
    assert fitting == [3, 3, 3]
    assert further == "Your dry runs took too long. Try again in 60 seconds."


def test_where_the_first_record_took_all_the_time_none_fits(client, slow, tags, configure):
    configure(DRY_RUN_SECONDS_PER_MINUTE=1)

    assert try_many(client, tags, 2).text == (
        "A dry run of 2 records takes too long. Nothing was changed. Try again in a minute."
    )


def test_dry_runs_of_others_and_of_the_next_minute_and_writes_have_their_own_time(
    client, slow, tags, configure, make_client, clock
):
    configure(DRY_RUN_SECONDS_PER_MINUTE=1)
    call = {**TAG, "values": {"name": "x"}}
    client.data("create_record", **call, dry_run=True)
    assert client.call_tool("create_record", **call, dry_run=True).is_error

    client.data("create_record", **call)
    make_client(is_superuser=True).data("create_record", **call, dry_run=True)
    clock.now += 60
    client.data("create_record", **call, dry_run=True)


@pytest.mark.thorough
@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_of_three_dry_runs_at_once_two_are_refused_and_the_site_writes_when_the_first_ends(
    client, monkeypatch
):
    tags = Tag.objects.bulk_create(Tag(name=f"t{at}") for at in range(20))
    clients = [CheckedClient(token=client.token, inline=False) for _ in range(3)]
    begun, may_end = threading.Event(), threading.Event()

    def save_model(self, request, obj, form, change):
        begun.set()
        assert may_end.wait(PATIENCE)
        obj.save()

    def write():
        try:
            Tag.objects.create(name="by the site")
        finally:
            connections.close_all()

    monkeypatch.setattr(TagAdmin, "save_model", save_model)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(try_many, clients[0], tags, 20)
        assert begun.wait(PATIENCE)
        written = threads.submit(write)
        others = [try_many(other, tags, 20).text for other in clients[1:]]
        may_end.set()

        assert first.result(PATIENCE).data["records"] == 20
        written.result(PATIENCE)

    assert others == ["You have another dry run that goes on. Wait for its answer first."] * 2
    assert Tag.objects.filter(name="by the site").exists()
    assert not Tag.objects.filter(name="x").exists()


# Writes that are refused tell as much


def refusals_of(client, *calls):
    return [client.refusal("create_record", model="workshop.thing", **call) for call in calls]


def test_a_write_whose_values_are_refused_counts_as_a_dry_run(client, limited):
    wrong = {"values": {"title": ""}}

    first, tried, third = refusals_of(client, wrong, {**wrong, "dry_run": True}, wrong)

    assert "title: This field is required." in first
    assert "title: This field is required." in tried
    assert third.startswith("Too many dry runs, or writes that were refused. Try again in")
    # One that works is none.
    assert not client.call_tool("create_record", **TAG, values={"name": "x"}).is_error


def test_what_the_database_refuses_because_of_other_records_counts_as_well(
    client, limited, tags, monkeypatch
):
    def save_model(*args):
        raise IntegrityError("unique")

    monkeypatch.setattr(TagAdmin, "save_model", save_model)
    call = {**TAG, "values": {"name": "x"}}
    tried = [client.refusal("create_record", **call) for _ in range(3)]

    assert ["Too many dry runs" in text for text in tried] == [False, False, True]


def test_each_record_of_many_that_is_refused_makes_the_call_count_once(
    client, limited, tags, monkeypatch
):
    def clean(self):
        if self.name == "same":
            raise ValidationError("Somebody else has it.")

    call = {"pks": [tag.pk for tag in tags], "values": {"name": "same"}, **TAG}
    token = client.data("update_records", **call)["confirmation"]
    monkeypatch.setattr(Tag, "clean", clean)

    texts = [client.refusal("update_records", **call, confirmation=token) for _ in range(3)]

    assert ["Too many dry runs" in text for text in texts] == [False, False, True]


def test_where_no_dry_run_is_allowed_people_still_learn_what_is_wrong_with_a_write(
    client, configure
):
    configure(DRY_RUNS_PER_MINUTE=0)
    wrong = {"values": {"title": ""}}

    *written, tried = refusals_of(client, wrong, wrong, {**wrong, "dry_run": True})

    assert all("This field is required." in text for text in written)
    assert tried.startswith("Too many dry runs")

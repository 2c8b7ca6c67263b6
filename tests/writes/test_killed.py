"""A process that is killed in the middle of a write leaves nothing of it, and nothing in the way.

The process is killed by its id at a point that a receiver of a signal marks, so that it can
neither clean up nor say goodbye.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection

from mcp_django.models import IdempotentAnswer, SpentConfirmation
from tests.children import start
from tests.clients import call_with_token
from tests.workshop.models import Part, Thing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live, pytest.mark.thorough]

CREATION = {
    "model": "workshop.thing",
    "values": {"title": "new"},
    "inlines": {"parts": [{"name": "a"}, {"name": "b"}]},
    "idempotency_key": "k1",
}


@pytest.fixture(scope="module")
def other(django_db_setup):
    """A process that makes each call in a fork of its own."""
    with start(
        [
            sys.executable,
            "-m",
            "tests.writes.killed_process",
            str(connection.settings_dict["NAME"]),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def kill(client, other):
    """Let another process call, and kill it at the first, second, ... time of a signal."""

    def kill(point, name, **arguments):
        other.stdin.write(json.dumps([client.token, point, name, arguments]) + "\n")
        other.stdin.flush()
        said, pid = other.stdout.readline().split()
        assert said == "here"
        os.kill(int(pid), signal.SIGKILL)
        assert other.stdout.readline() == "-9\n"

    return kill


@pytest.mark.parametrize(
    "point",
    [
        "post_save mcp_django.idempotentanswer 1",
        "post_save workshop.thing 1",
        "post_save workshop.part 1",
        "post_save workshop.part 2",
        "post_save admin.logentry 1",
        "post_save mcp_django.idempotentanswer 2",
    ],
)
def test_a_creation_that_was_killed_left_nothing_and_may_be_sent_again(client, kill, point):
    kill(point, "create_record", **CREATION)

    left = [model.objects.count() for model in (Thing, Part, LogEntry, IdempotentAnswer)]
    again = client.call_tool("create_record", **CREATION)
    repeated = client.call_tool("create_record", **CREATION)

    assert left == [0, 0, 0, 0]
    assert not again.is_error, again.text
    assert repeated.data == again.data
    assert [model.objects.count() for model in (Thing, Part, LogEntry)] == [1, 2, 1]


@pytest.mark.parametrize(
    "point",
    [
        "post_save workshop.thing 1",
        "m2m_changed workshop.thing_tags 1",
        "post_save workshop.part 1",
        "post_save admin.logentry 1",
    ],
)
def test_a_change_that_was_killed_changed_nothing(client, kill, thing, snapshot, point):
    before = snapshot(thing)
    version = client.call_tool("get_record", model="workshop.thing", pk=thing.pk).data
    first, second, _ = thing.parts.order_by("pk")
    change = {
        "model": "workshop.thing",
        "pk": thing.pk,
        "values": {"title": "other", "tags": {"set": []}},
        "inlines": {"parts": [{"pk": first.pk, "quantity": 9}, {"pk": second.pk, "delete": True}]},
        "version": version["_version"],
    }

    token = client.call_tool("update_record", **change).data["confirmation"]

    kill(point, "update_record", **change, confirmation=token)
    after = snapshot(thing)
    done = call_with_token(client, "update_record", **change)

    assert after == before
    # Nobody holds a lock, and the version that was read is still the newest.
    assert not done.is_error, done.text
    assert LogEntry.objects.count() == 1
    assert not Part.objects.filter(pk=second.pk).exists()


@pytest.mark.parametrize(
    "point",
    [
        "post_save mcp_django.spentconfirmation 1",
        "post_save admin.logentry 1",
        "post_delete workshop.part 2",
        "post_delete workshop.thing 1",
    ],
)
def test_a_deletion_that_was_killed_deleted_nothing(client, kill, thing, snapshot, point):
    before = snapshot(thing)
    deletion = {"model": "workshop.thing", "pk": thing.pk}
    token = client.call_tool("delete_record", **deletion).data["confirmation"]

    kill(point, "delete_record", **deletion, confirmation=token)
    after = snapshot(thing)
    spent = SpentConfirmation.objects.count()
    logged = LogEntry.objects.count()
    done = client.call_tool("delete_record", **deletion, confirmation=token)

    assert after == before
    assert (spent, logged) == (0, 0)
    # What a person has agreed to once is done once.
    assert done.data["deleted"]["workshop.thing"] == 1
    assert client.call_tool("delete_record", **deletion, confirmation=token).is_error

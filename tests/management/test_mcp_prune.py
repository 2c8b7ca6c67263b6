from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from mcp_django.management.commands import mcp_prune
from mcp_django.models import CallRecord, IdempotentAnswer, SpentConfirmation, Upload
from mcp_django.stores.interface import Session, get_store

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(django_user_model):
    return django_user_model.objects.create_user("alice")


def called(user, *, days):
    at = timezone.now() - timedelta(days=days)
    return CallRecord.objects.create(user=user, at=at, method="tools/call", principal="x")


def run(*arguments):
    out = StringIO()
    call_command("mcp_prune", *arguments, stdout=out)
    return out.getvalue()


def left():
    return set(CallRecord.objects.values_list("pk", flat=True))


def test_records_older_than_the_setting_go_and_others_stay(alice, settings):
    settings.MCP_DJANGO = {"AUDIT_DAYS": 5}
    called(alice, days=5.1)
    young = called(alice, days=4.9)

    out = run()

    assert left() == {young.pk}
    assert "Records of calls deleted: 1." in out


def test_the_days_may_be_given(alice):
    called(alice, days=3)
    young = called(alice, days=1)

    run("--days", "2")

    assert left() == {young.pk}


def test_no_days_leave_nothing(alice):
    called(alice, days=0.001)

    run("--days", "0")

    assert left() == set()


def test_all_records_of_a_user_go_however_young_and_nobody_elses(alice, django_user_model):
    bob = django_user_model.objects.create_user("bob")
    called(alice, days=0)
    called(alice, days=100)
    theirs = [called(bob, days=100), called(None, days=100)]

    run("--user", "alice")

    assert left() == {one.pk for one in theirs}


def test_a_users_records_may_be_pruned_by_age(alice):
    called(alice, days=10)
    young = called(alice, days=1)

    run("--user", "alice", "--days", "2")

    assert left() == {young.pk}


def test_more_than_one_chunk_is_deleted(alice, monkeypatch):
    monkeypatch.setattr(mcp_prune, "CHUNK", 2)
    for _ in range(5):
        called(alice, days=100)
    young = called(alice, days=0)

    out = run()

    assert left() == {young.pk}
    assert "deleted: 5." in out


def test_a_chunk_takes_nothing_that_stands_between_its_rows(alice, django_user_model):
    bob = django_user_model.objects.create_user("bob")
    called(alice, days=1)
    theirs = called(bob, days=1)
    called(alice, days=1)

    run("--user", "alice")

    assert left() == {theirs.pk}


def test_files_for_assistants_go_when_they_have_expired(alice):
    for hours in (23, 25):
        Upload.objects.create(
            user=alice,
            filename=f"{hours}.txt",
            data=b"x",
            size=1,
            created_at=timezone.now() - timedelta(hours=hours),
        )

    out = run()

    assert [one.filename for one in Upload.objects.all()] == ["23.txt"]
    assert "Expired files for assistants deleted: 1." in out


def test_promises_that_nobody_can_use_any_more_go_as_well():
    now = timezone.now()
    for hours in (-1, 1):
        SpentConfirmation.objects.create(
            digest=str(hours), expires_at=now + timedelta(hours=hours)
        )
    for days in (0, 10):
        IdempotentAnswer.objects.create(
            principal="x",
            tool="y",
            key=str(days),
            answer={},
            created_at=now - timedelta(days=days),
        )

    out = run()

    assert [one.digest for one in SpentConfirmation.objects.all()] == ["1"]
    assert [one.key for one in IdempotentAnswer.objects.all()] == ["0"]
    assert "Confirmations and repeated answers deleted: 2." in out


def test_pruning_a_user_leaves_promises(alice):
    SpentConfirmation.objects.create(digest="x", expires_at=timezone.now() - timedelta(days=9))

    run("--user", "alice")

    assert SpentConfirmation.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--user", "nobody"], "There is no user"),
        (["--days", "-1"], "--days is a number of days"),
        (["--days", "99999999"], "--days is a number of days"),
    ],
)
def test_mistakes_are_told_and_delete_nothing(alice, arguments, sentence):
    called(alice, days=1000)

    with pytest.raises(CommandError, match=sentence):
        run(*arguments)

    assert len(left()) == 1


def test_idle_sessions_go_from_the_store_of_the_site():
    now = timezone.now()
    # In this order, since to add one may prune.
    for key, minutes in (("used", 29), ("idle", 31)):
        get_store().add_session(
            Session(
                key=key,
                server="default",
                principal="default/user:1/",
                transport="streamable_http",
                revision="2025-06-18",
                created=now - timedelta(hours=1),
                seen=now - timedelta(minutes=minutes),
            )
        )

    out = run()

    assert "Sessions, streams and questions deleted: 1." in out
    assert [one.key for one in get_store().sessions()] == ["used"]


def test_one_user_has_no_part_of_the_store(alice):
    assert "Sessions" not in run("--user", "alice")

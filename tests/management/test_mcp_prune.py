from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from mcp_django.management.commands import mcp_prune
from mcp_django.models import CallRecord, IdempotentAnswer, SpentConfirmation, Upload

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(django_user_model):
    return django_user_model.objects.create_user("alice")


def run(*arguments):
    out = StringIO()
    call_command("mcp_prune", *arguments, stdout=out)
    return out.getvalue()


#: Whose, and how many days old. In this order, and chunks are small.
CALLS = [("alice", 100), ("bob", 100), ("alice", 3), (None, 100), ("bob", 1), ("alice", 0.001)]


@pytest.fixture
def left(alice, django_user_model, monkeypatch):
    """The calls that are still there."""
    monkeypatch.setattr(mcp_prune, "CHUNK", 2)
    users = {"alice": alice, "bob": django_user_model.objects.create_user("bob"), None: None}
    for name, days in CALLS:
        at = timezone.now() - timedelta(days=days)
        CallRecord.objects.create(
            user=users[name], at=at, method="tools/call", target=str((name, days))
        )
    return lambda: list(CallRecord.objects.order_by("pk").values_list("target", flat=True))


@pytest.mark.parametrize(
    ("arguments", "is_pruned"),
    [
        # As the setting says.
        ([], lambda name, days: days > 5),
        (["--days", "2"], lambda name, days: days > 2),
        (["--days", "0"], lambda name, days: True),
        (["--user", "alice"], lambda name, days: name == "alice"),
        (["--user", "alice", "--days", "2"], lambda name, days: name == "alice" and days > 2),
    ],
    ids=["setting", "days", "no days", "user", "user and days"],
)
def test_records_go_by_age_or_by_user_and_others_stay(left, settings, arguments, is_pruned):
    settings.MCP_DJANGO = {"AUDIT_DAYS": 5}

    out = run(*arguments)

    staying = [str(call) for call in CALLS if not is_pruned(*call)]
    assert left() == staying
    assert f"Records of calls deleted: {len(CALLS) - len(staying)}." in out


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--user", "nobody"], "There is no user"),
        (["--days", "-1"], "--days is a number of days"),
        (["--days", "99999999"], "--days is a number of days"),
    ],
)
def test_mistakes_are_told_and_delete_nothing(left, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        run(*arguments)

    assert len(left()) == len(CALLS)


def test_one_user_has_no_part_of_promises(alice):
    SpentConfirmation.objects.create(digest="x", expires_at=timezone.now() - timedelta(days=9))

    run("--user", "alice")

    assert SpentConfirmation.objects.exists()

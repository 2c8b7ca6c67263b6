from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.utils import timezone

from mcp_django.models import CallRecord, IdempotentAnswer, SpentConfirmation, Upload
from mcp_django.stores import transactions

pytestmark = pytest.mark.django_db
COMMAND = "mcp_prune"


#: Whose, and how many days old. In this order, and chunks are small.
CALLS = [("alice", 100), ("bob", 100), ("alice", 3), (None, 100), ("bob", 1), ("alice", 0.001)]


@pytest.fixture
def left(alice, django_user_model, monkeypatch):
    """The calls that are still there."""
    monkeypatch.setattr(transactions, "MOST_DELETED", 2)
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
def test_records_go_by_age_or_by_user_and_others_stay(run, left, settings, arguments, is_pruned):
    settings.MCP_DJANGO = {"AUDIT_DAYS": 5}

    out, _ = run(*arguments)

    staying = [str(call) for call in CALLS if not is_pruned(*call)]
    assert left() == staying
    assert f"Records of calls deleted: {len(CALLS) - len(staying)}." in out


def test_files_and_promises_go_when_nobody_can_use_them_any_more(run, alice):
    now = timezone.now()
    for hours in (23, 25):
        at = now - timedelta(hours=hours)
        Upload.objects.create(user=alice, filename=f"{hours}", data=b"x", size=1, created_at=at)
    for hours in (-1, 1):
        at = now + timedelta(hours=hours)
        SpentConfirmation.objects.create(digest=str(hours), expires_at=at)
    for days in (0, 10):
        at = now - timedelta(days=days)
        call = {"principal": "x", "tool": "y", "key": str(days)}
        IdempotentAnswer.objects.create(**call, answer={}, created_at=at)

    run("--user", "alice")
    assert SpentConfirmation.objects.count() == 2  # they are nobody's
    out, _ = run()

    assert [one.filename for one in Upload.objects.all()] == ["23"]
    assert [one.digest for one in SpentConfirmation.objects.all()] == ["1"]
    assert [one.key for one in IdempotentAnswer.objects.all()] == ["0"]
    assert "Expired files for assistants deleted: 1." in out
    assert "Confirmations and repeated answers deleted: 2." in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--user", "nobody"], "There is no user"),
        (["--days", "-1"], "--days is a number of days"),
        (["--days", "99999999"], "--days is a number of days"),
    ],
)
def test_mistakes_are_told_and_delete_nothing(run, left, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        run(*arguments)

    assert len(left()) == len(CALLS)

"""Delete what is kept about calls and is not needed any more."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import router
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.exposure.questions.idempotency import prune_promises
from mcp_django.management.commands.mcp_token import find_user
from mcp_django.models import CallRecord, Upload

#: Rows in one statement: nobody who writes waits long for it.
CHUNK = 5000


class Command(BaseCommand):
    help = (
        "Delete old records of calls, spent confirmations, answers kept for repeated calls, and "
        "expired files for assistants. "
        "With --user, all records of one user's calls."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            help="Leave records of so many days. Default: AUDIT_DAYS; with --user, none.",
        )
        parser.add_argument("--user", metavar="USER", help="Only records of this user's calls.")

    def handle(self, *, days: int | None, user: str | None, **options: Any) -> None:
        if days is not None and not 0 <= days <= 36_500:
            raise CommandError("--days is a number of days, such as 30.")
        found = None if user is None else find_user(user)
        if days is None and found is None:
            days = get_config().audit_days
        now = timezone.now()
        before = None if days is None else now - timedelta(days=days)
        deleted = delete_calls(before=before, user=found)
        self.stdout.write(f"Records of calls deleted: {deleted}.")
        if found is None:
            promises = prune_promises(now)
            self.stdout.write(f"Confirmations and repeated answers deleted: {promises}.")
            files, _ = Upload.expired(now).delete()
            self.stdout.write(f"Expired files for assistants deleted: {files}.")


def delete_calls(*, before: datetime | None, user: Any) -> int:
    """Delete records from before a time, of one user or of all, and return how many."""
    records = CallRecord.objects.using(router.db_for_write(CallRecord))
    if before is not None:
        records = records.filter(at__lt=before)
    if user is not None:
        records = records.filter(user=user)
    total = 0
    while keys := list(records.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        # A range: no database takes lists of so many everywhere.
        deleted, _ = records.filter(pk__gte=keys[0], pk__lte=keys[-1]).delete()
        total += deleted
    return total

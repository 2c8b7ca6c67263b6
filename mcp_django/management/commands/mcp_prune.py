"""Delete what is kept about calls and is not needed any more."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import router
from django.utils import timezone

from mcp_django.conf import get_config
from mcp_django.exposure.questions.idempotency import prune_promises
from mcp_django.management.commands.mcp_token import find_user
from mcp_django.models import CallRecord, Upload
from mcp_django.stores.transactions import delete_in_chunks


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
        records = CallRecord.objects.using(router.db_for_write(CallRecord))
        if days is not None:
            records = records.filter(at__lt=now - timedelta(days=days))
        if found is not None:
            records = records.filter(user=found)
        self.stdout.write(f"Records of calls deleted: {delete_in_chunks(records)}.")
        if found is None:
            promises = prune_promises(now)
            self.stdout.write(f"Confirmations and repeated answers deleted: {promises}.")
            files, _ = Upload.expired(now).delete()
            self.stdout.write(f"Expired files for assistants deleted: {files}.")

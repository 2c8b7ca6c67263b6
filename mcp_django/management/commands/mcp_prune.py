"""Delete what is kept about calls and is not needed any more."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from mcp_django.audit.prune import prune_calls, prune_store
from mcp_django.conf import get_config
from mcp_django.exposure.promises import prune_promises
from mcp_django.management.commands.mcp_token import find_user


class Command(BaseCommand):
    help = (
        "Delete old records of calls, spent confirmations, answers kept for repeated calls, and "
        "what is left of idle sessions. "
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
        deleted = sum(prune_calls(before=before, user=found))
        self.stdout.write(f"Records of calls deleted: {deleted}.")
        if found is None:
            promises = prune_promises(now)
            self.stdout.write(f"Confirmations and repeated answers deleted: {promises}.")
            # Last: a store that is gone keeps nothing else from being done.
            self.stdout.write(f"Sessions, streams and questions deleted: {prune_store()}.")

"""What was promised to be done once only, and when it may be forgotten."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import router
from django.db.models import QuerySet

from mcp_django.models import IdempotentAnswer, SpentConfirmation

#: For this long a call that is sent again gets the answer of the first.
KEPT = timedelta(hours=24)
#: Rows that are deleted in one statement, so that nobody waits long for it.
CHUNK = 5_000


def prune_promises(now: datetime) -> int:
    """Delete what nobody can use any more at `now`. Returns how many rows that were."""
    answers = IdempotentAnswer.objects.using(router.db_for_write(IdempotentAnswer))
    spent = SpentConfirmation.objects.using(router.db_for_write(SpentConfirmation))
    return delete_in_chunks(answers.filter(created_at__lt=now - KEPT)) + delete_in_chunks(
        spent.filter(expires_at__lt=now)
    )


def delete_in_chunks(rows: QuerySet[Any]) -> int:
    deleted = 0
    while keys := list(rows.values_list("pk", flat=True)[:CHUNK]):
        deleted += rows.filter(pk__in=keys).delete()[0]
    return deleted

"""Changes that are wanted only if nobody made another one since a time."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from mcp_django.exceptions import ToolError
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.serializers import utc


def check_unmodified(exposure: ModelExposure, obj: Any, since: str) -> None:
    """Raise ToolError unless the record, which is locked, was last changed by then."""
    if not exposure.modified_field:
        raise ToolError(
            f"Nobody knows when records of {exposure.label} were changed. Leave out "
            "if_unmodified_since, and take the version that get_record shows."
        )
    limit = read_time(since)
    changed = obj
    for name in exposure.modified_field.split("__"):
        changed = getattr(changed, name, None)
    if isinstance(changed, datetime) and as_aware(changed) > as_aware(limit):
        raise ToolError(
            "This record was changed after that time. Nothing was changed by this call. Read the "
            f"record again; it was last changed at {utc(changed)}."
        )
    if isinstance(changed, date) and not isinstance(changed, datetime) and changed > limit.date():
        raise ToolError(f"This record was changed on {changed}, after that time. Read it again.")


def read_time(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ToolError("if_unmodified_since takes a time such as 2026-01-31T14:30:00+00:00.")
    return found


def as_aware(value: datetime) -> datetime:
    return timezone.make_aware(value) if timezone.is_naive(value) else value

"""The history of a record: the log of the admin, and what two packages keep besides it.

Nothing else knows django-simple-history and django-reversion here.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

from django.apps import apps

from mcp_django.exposure.admin_bridge.history import (
    MOST_READ,
    HistoryEntry,
    RecordLog,
    words_of_change,
)
from mcp_django.exposure.limits import limited

#: What simple-history calls it.
TYPES = {"+": "added", "~": "changed", "-": "deleted"}


def rows_of_simple_history(log: RecordLog) -> list[HistoryEntry]:
    """A change of fields that the caller does not read is left out."""
    manager = getattr(log.obj._meta, "simple_history_manager_attribute", None)
    if manager is None:
        return []
    rows = getattr(log.obj, manager).order_by("-history_date", "-history_id")
    # A site may keep users in another way.
    users = [field.name for field in rows.model._meta.fields if field.name == "history_user"]
    rows = rows.select_related(*users) if users else rows
    with limited(rows.db):
        found = list(rows[: MOST_READ + 1])
    # Each but the oldest is compared with the one before it.
    pairs: list[tuple[Any, Any]] = [*pairwise(found), *((one, None) for one in found[-1:])]
    entries = []
    for row, before in pairs[:MOST_READ]:
        action = TYPES.get(row.history_type, "changed")
        is_compared = action == "changed" and before is not None
        names = changed_names(log, row, before) if is_compared else []
        if names or action != "changed":
            entries.append(
                HistoryEntry(
                    at=row.history_date,
                    user=log.name_of(row.history_user),
                    action=action,
                    change=words_of_change(names) if names else "",
                    source="django-simple-history",
                )
            )
    return entries


def changed_names(log: RecordLog, row: Any, before: Any) -> list[str]:
    """The fields that are others than before, out of those that the caller reads."""
    known = [field.name for field in before.tracked_fields if field.editable]
    known += [field.name for field in before._history_m2m_fields]
    included = [name for name in known if name in log.names.fields]
    return list(row.diff_against(before, included_fields=included).changed_fields)


def versions_of_reversion(log: RecordLog) -> list[HistoryEntry]:
    is_installed = apps.is_installed("reversion")
    if not (is_installed and import_module("reversion").is_registered(type(log.obj))):
        return []
    versions: Any = import_module("reversion.models").Version
    rows = versions.objects.get_for_object(log.obj).select_related("revision__user")
    with limited(rows.db):
        found = [one.revision for one in rows[:MOST_READ]]
    return [
        HistoryEntry(
            at=revision.date_created,
            user=log.name_of(revision.user),
            action="saved",
            # The admin's own message is a text here, and names fields.
            change=revision.get_comment() if log.shows_page else "",
            source="django-reversion",
        )
        for revision in found
    ]


def history_of(log: RecordLog, *, user: str | None, most: int) -> list[HistoryEntry]:
    """The newest entries about a record, from wherever a site keeps them."""
    others = [*rows_of_simple_history(log), *versions_of_reversion(log)]
    found = [*log.entries(user=user), *(one for one in others if user in (None, one.user))]
    return sorted(found, key=lambda one: one.at, reverse=True)[:most]

"""The admin's log says that an assistant did it, and which."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import DELETION, LogEntry
from django.http import HttpRequest

from mcp_django.context import CallContext

LONGEST_NAME = 60


def sign_log(one_call: Any, context: CallContext) -> None:
    """Replace the logging methods on a copy of a ModelAdmin that is made for one call.

    What the admin writes stays as it is, and a note with the name of the client follows.
    """
    note = f"through an assistant: {client_name(context)}"

    def signed(log: Any) -> Any:
        def logged(request: HttpRequest, obj: Any, message: Any) -> Any:
            if isinstance(message, list):
                # The admin's own words, which it translates when somebody reads them.
                message = [*message, {"added": {"name": "note", "object": note}}]
            else:
                message = f"{message} ({note})"
            return log(request, obj, message)

        return logged

    log_deletions = one_call.log_deletions

    def logged_deletions(request: HttpRequest, queryset: Any) -> Any:
        entries = log_deletions(request, queryset)
        sign_deletions(entries, note[0].upper() + note[1:])
        return entries

    one_call.log_addition = signed(one_call.log_addition)
    one_call.log_change = signed(one_call.log_change)
    one_call.log_deletions = logged_deletions


def sign_deletions(entries: Any, note: str) -> None:
    """The admin gives deletions no text at all, so theirs comes afterwards."""
    # A site may log somewhere else, or not at all.
    found = entries if isinstance(entries, Iterable) else [entries]
    silent = LogEntry.objects.filter(action_flag=DELETION, change_message="")
    keys: list[Any] = [one.pk for one in found if isinstance(one, LogEntry)]
    if keys and None not in keys:
        silent.filter(pk__in=keys).update(change_message=note)
        return
    for one in found:
        if isinstance(one, LogEntry):
            # MySQL tells no keys of rows that were inserted together.
            silent.filter(
                user_id=one.user_id,
                content_type_id=one.content_type_id,
                object_id=one.object_id,
            ).update(change_message=note)


def client_name(context: CallContext) -> str:
    """The connected program, as it calls itself, or as its credential is called."""
    return one_line(context.client.get("name") or context.principal.client or "unknown")


def one_line(given: object, *, most: int = LONGEST_NAME) -> str:
    """What somebody wrote, without what would not be seen or change how the rest is read."""
    printable = "".join(one if one.isprintable() else " " for one in str(given)[:most])
    return " ".join(printable.split())

"""Undo one change of a record: by the values that the log of the admin has kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.db import router
from django.db.models import Model, QuerySet

from mcp_django.context import CallContext
from mcp_django.exceptions import ToolError
from mcp_django.exposure.admin_bridge import writes
from mcp_django.exposure.admin_bridge.changes import relations_of
from mcp_django.exposure.admin_bridge.history import fields_as_json, kept_values, log_of
from mcp_django.exposure.admin_bridge.rights import (
    CHANGE,
    find_locked,
    model_admin_for,
    stored_row,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.arguments import UndoChange, UpdateRecord
from mcp_django.exposure.questions.conversation import approve

NOTHING_TO_UNDO = (
    "There is no such change that can be undone. Where get_history can tell you one, its entry "
    "has undo."
)


def undo(context: CallContext, rights: Rights, given: UndoChange) -> dict[str, Any]:
    """The answer of `undo_change`, once the person has agreed: that of the update which it is.

    Raises ToolError where the change cannot be undone, and where a field has another value since.
    """
    exposure = rights.exposure(given.model)
    model, using = exposure.model, router.db_for_write(exposure.model)
    model_admin_for(rights, exposure, CHANGE)

    def work() -> dict[str, Any]:
        obj = find_locked(rights, exposure, given.pk, using=using)
        writes.check_changeable(rights, exposure, obj)
        log = log_of(rights, exposure, obj)
        entries: QuerySet[Any] = LogEntry.objects.filter(
            pk=given.change,
            content_type=get_content_type_for_model(model),
            object_id=str(obj.pk),
        )
        entry = entries.first() if -(2**31) < given.change < 2**31 else None
        values = {} if entry is None else kept_values(entry.change_message)
        if log is None or not log.undoable(values):
            raise ToolError(NOTHING_TO_UNDO)
        row = stored_row(obj, model)
        now = {} if row is None else fields_as_json(row, values)
        others = [name for name, (_, after) in values.items() if now.get(name) != after]
        if others:
            raise ToolError(
                f"Nothing was undone: {', '.join(others)} changed since then. Read the record, "
                "and set with update_record what is wrong."
            )
        update = UpdateRecord(
            model=exposure.label, pk=given.pk, values=values_before(model, values)
        )
        approve(
            context,
            rights,
            tool="undo_change",
            arguments=msgspec.to_builtins(given),
            question=writes.question_about(context, rights, update),
            preview=lambda: {"records": 1},
        )
        saved, before, after = writes.save_one(context, rights, update, using=using)
        return writes.answer_of(rights, exposure, saved, before=before, after=after)

    return writes.perform(work, model=model, dry_run=False)


def values_before(model: type[Model], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an update that undoes a change. Of a set it names those that came and went:
    others may have members that the caller does not see.
    """
    sent: dict[str, Any] = {name: before for name, (before, _) in values.items()}
    for relation in relations_of(model, values):
        before, after = values[relation.name]
        sent[relation.name] = {
            "add": [key for key in before if key not in after],
            "remove": [key for key in after if key not in before],
        }
    return sent

"""What must follow when prompts get another version, and when a group is deleted."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib.auth.models import Group
from django.db import connections
from django.db.models.signals import post_delete, post_save, pre_delete

from mcp_django.exposure.generation import bump
from mcp_django.levels import Level
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PromptTemplate,
    PromptVersion,
)

logger = logging.getLogger("mcp_django")

#: How a row is closed that was for some groups only. Without groups it would be for everybody.
CLOSED: dict[Any, dict[str, Any]] = {
    ExposedModel: {"level": Level.HIDDEN},
    ExposedPrompt: {"enabled": False},
    ExposedTool: {"enabled": False},
    PromptTemplate: {"enabled": False},
}


def version_changed(*, using: str, **kwargs: Any) -> None:
    # Not by its template, which may be gone with it.
    bump(None, using=using)


def group_goes(*, instance: Any, using: str, **kwargs: Any) -> None:
    # Not yet migrated, or a group of another database.
    is_ours = PromptTemplate._meta.db_table in connections[using].introspection.table_names()
    instance._mcp_rows = {
        model: list(rows_for(instance, model, using=using)) for model in CLOSED if is_ours
    }


def rows_for(group: Any, model: Any, *, using: str) -> Any:
    return model.objects.using(using).filter(groups=group).values_list("pk", flat=True)


def group_gone(*, instance: Any, using: str, **kwargs: Any) -> None:
    """What was for one group only must not become everybody's."""
    for model, keys in instance._mcp_rows.items():
        for row in model.objects.using(using).filter(pk__in=keys, groups=None):
            for name, value in CLOSED[model].items():
                setattr(row, name, value)
            row.save(update_fields=list(CLOSED[model]))
            logger.warning("%s was for a group that is gone, and is closed now.", row)


def connect() -> None:
    """Watch versions and groups. No query; may be called again."""
    for receiver, signal, sender in (
        (version_changed, post_save, PromptVersion),
        (version_changed, post_delete, PromptVersion),
        (group_goes, pre_delete, Group),
        (group_gone, post_delete, Group),
    ):
        uid = f"mcp_django.{receiver.__name__}"
        signal.connect(receiver, sender=sender, weak=False, dispatch_uid=uid)

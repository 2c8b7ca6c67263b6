"""A change of anybody's rights raises the generation, so that nothing outlives it in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import ManyToManyField, Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from mcp_django.exposure.generation import bump
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
    ServerSettings,
    UserRestriction,
)

#: Rows of ours that change what somebody gets. Each belongs to a server.
OWN = (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PersonalToken,
    PromptTemplate,
    ServerSettings,
    UserRestriction,
)


def own_changed(*, instance: Any, using: str, **kwargs: Any) -> None:
    bump(instance.server, using=using)


def row_changed(*, using: str, update_fields: Any = None, **kwargs: Any) -> None:
    # Each login writes this one, and it gives nobody a right.
    if update_fields is not None and set(update_fields) <= {"last_login"}:
        return
    bump(None, using=using)


def members_changed(*, action: str, using: str, **kwargs: Any) -> None:
    if action in {"post_add", "post_remove", "post_clear"}:
        bump(None, using=using)


def connect() -> None:
    """Watch our rows, users, groups and the tables between. No query; may be called again."""
    for signal in (post_save, post_delete):
        uid = f"mcp_django.{signal_name(signal)}"
        for own in OWN:
            signal.connect(own_changed, sender=own, weak=False, dispatch_uid=uid)
        for model in dict.fromkeys(models_of_rights(get_user_model())):
            signal.connect(row_changed, sender=model, weak=False, dispatch_uid=uid)
    theirs = [
        row.groups.field for row in (ExposedModel, ExposedPrompt, ExposedTool, PromptTemplate)
    ]
    for field in (*theirs, *fields_of_rights(get_user_model())):
        m2m_changed.connect(
            members_changed,
            sender=field.remote_field.through,
            weak=False,
            dispatch_uid="mcp_django.m2m_changed",
        )


def signal_name(signal: Any) -> str:
    return "post_save" if signal is post_save else "post_delete"


def models_of_rights(user: type[Model]) -> Iterator[type[Model]]:
    """Users (proxies and children send signals of their own), groups, permissions, and the tables
    between them where a site has written those by hand."""
    yield from (model for model in user._meta.apps.get_models() if issubclass(model, user))
    for field in fields_of_rights(user):
        yield field.related_model
        if not field.remote_field.through._meta.auto_created:
            yield field.remote_field.through


def fields_of_rights(user: type[Model]) -> Iterator[Any]:
    """Fields that give rights: of the user to permissions, of the user to whatever has permissions
    (the site's own groups or roles count), and of those to permissions."""
    for field in user._meta.many_to_many:
        inner = [one for one in many_to_many(field.related_model) if leads_to_permissions(one)]
        if inner or leads_to_permissions(field):
            yield field
            yield from inner


def many_to_many(model: Any) -> list[ManyToManyField[Any, Any]]:
    return list(model._meta.many_to_many)


def leads_to_permissions(field: Any) -> bool:
    return bool(field.related_model._meta.label_lower == "auth.permission")

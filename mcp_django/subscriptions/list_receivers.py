"""Which lists another row, right or registration changes, and for whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from mcp_django.exposure.registry import Registry, registrations_changed
from mcp_django.exposure.rights_signals import fields_of_rights, models_of_rights
from mcp_django.exposure.uris import SITE
from mcp_django.models import (
    ExposedModel,
    ExposedPrompt,
    ExposedTool,
    PromptTemplate,
    PromptVersion,
    ServerSettings,
    UserRestriction,
)
from mcp_django.subscriptions.commits import publish_after_commit
from mcp_django.subscriptions.events import (
    LISTS,
    PROMPTS,
    RESOURCES,
    TOOLS,
    Change,
    Topic,
    list_changed,
)
from mcp_django.subscriptions.facts import ModelClass
from mcp_django.subscriptions.harmless import harmless
from mcp_django.subscriptions.outbox import publish
from mcp_django.subscriptions.topics import collection_topic, definition_topic

#: Our rows -> the lists that they decide about. A personal token changes nothing for the others
#: of its user, and whoever uses it has to say so at each call.
LISTS_OF: dict[ModelClass, frozenset[Topic]] = {
    ExposedModel: LISTS,
    ExposedTool: frozenset({TOOLS}),
    ExposedPrompt: frozenset({PROMPTS}),
    PromptTemplate: frozenset({PROMPTS}),
    ServerSettings: frozenset({TOOLS}),
}
LISTS_BY_KIND: dict[str, frozenset[Topic]] = {
    "model": LISTS,
    "tool": frozenset({TOOLS}),
    "prompt": frozenset({PROMPTS}),
    "resource": frozenset({RESOURCES}),
}


def all_lists(*users: Any) -> list[Change]:
    """For everybody on every server, or for these users only, by their keys."""
    keys = frozenset(str(one) for one in users) or None
    return [Change(topic=name, users=keys) for name in sorted(LISTS)]


@harmless
def row_changed(*, sender: ModelClass, instance: Any, using: str, **kwargs: Any) -> None:
    publish_after_commit(changes_of_row(instance, LISTS_OF[sender]), using=using)


def changes_of_row(row: Any, lists: Iterable[Topic]) -> Iterator[Change]:
    for name in lists:
        yield list_changed(name, server=row.server)
    if isinstance(row, ExposedModel):
        # The definition tells of fields, and what is shown of records is another now. Who saw the
        # model before has to hear of it, too: everybody hears of the lists anyway.
        for topic in (SITE, definition_topic(row.label)):
            yield Change(topic=topic, server=row.server)
        yield Change(topic=collection_topic(row.label), server=row.server, is_whole=True)


@harmless
def version_changed(*, instance: Any, using: str, **kwargs: Any) -> None:
    # Not of its template's server: the template may be gone with it.
    publish_after_commit([Change(topic=PROMPTS)], using=using)


@harmless
def restriction_changed(*, instance: Any, using: str, **kwargs: Any) -> None:
    publish_after_commit(all_lists(instance.user_id), using=using)


@harmless
def right_changed(
    *, instance: Model, using: str, update_fields: Any = None, created: bool = False, **kwargs: Any
) -> None:
    """A user, a group or a permission was saved or deleted."""
    if not isinstance(instance, get_user_model()):
        publish_after_commit(all_lists(), using=using)
    # Nobody is connected as a user that is new, and each login writes this one field.
    elif not created and set(update_fields or ("any",)) != {"last_login"}:
        publish_after_commit(all_lists(instance.pk), using=using)


@harmless
def rights_changed(
    *,
    instance: Any,
    action: str,
    reverse: bool,
    pk_set: Iterable[Any] | None,
    using: str,
    **kwargs: Any,
) -> None:
    """Something was given to users or groups, or taken from them."""
    if action not in ("post_add", "post_remove", "post_clear") or pk_set == set():
        return
    is_of_user = isinstance(instance, get_user_model())
    if is_of_user:
        publish_after_commit(all_lists(instance.pk), using=using)
    elif reverse and pk_set and is_user(kwargs["model"]):
        publish_after_commit(all_lists(*pk_set), using=using)
    else:
        publish_after_commit(all_lists(), using=using)


def is_user(model: ModelClass) -> bool:
    return issubclass(model, get_user_model())


@harmless
def groups_of_row_changed(*, instance: Any, action: str, using: str, **kwargs: Any) -> None:
    """A row of ours is for other groups now. Groups have no way back to our rows."""
    if action in ("post_add", "post_remove", "post_clear"):
        publish_after_commit(changes_of_row(instance, LISTS_OF[type(instance)]), using=using)


@harmless
def registered(*, sender: Registry, kind: str, **kwargs: Any) -> None:
    if apps.ready:  # before that the site is starting, and nobody has seen a list
        publish([list_changed(name, server=sender.server) for name in LISTS_BY_KIND[kind]])


def connect() -> None:
    """Watch our rows, rights and registrations. No query; may be called again."""
    registrations_changed.connect(registered, weak=False, dispatch_uid=uid_of(registered))
    saves: list[tuple[Any, ModelClass]] = [
        *((row_changed, model) for model in LISTS_OF),
        (version_changed, PromptVersion),
        (restriction_changed, UserRestriction),
        *((right_changed, model) for model in dict.fromkeys(models_of_rights(get_user_model()))),
    ]
    for receiver, sender in saves:
        for signal in (post_save, post_delete):
            signal.connect(receiver, sender=sender, weak=False, dispatch_uid=uid_of(receiver))
    rows: Any = (ExposedModel, ExposedPrompt, ExposedTool, PromptTemplate)
    relations: list[tuple[Any, Any]] = [
        *((groups_of_row_changed, row.groups.field) for row in rows),
        *((rights_changed, field) for field in fields_of_rights(get_user_model())),
    ]
    for receiver, field in relations:
        through = field.remote_field.through
        m2m_changed.connect(receiver, sender=through, weak=False, dispatch_uid=uid_of(receiver))


def uid_of(receiver: Any) -> str:
    return f"mcp_django.subscriptions.{receiver.__name__}"

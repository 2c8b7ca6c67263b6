"""Django's signals -> facts. What they mean is worked out after the commit.

Silent are `update()`, `bulk_create()`, `bulk_update()`, raw SQL, and children that a database
deletes by itself (DB_CASCADE of Django 6.1): for those there is `mcp.touch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import Error
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save

from mcp_django.exposure.decisions import NOTHING_DECIDED
from mcp_django.exposure.overrides import Exposed, exposed_by
from mcp_django.exposure.registry import registry
from mcp_django.subscriptions.commits import tell_after_commit
from mcp_django.subscriptions.effects import effects_of
from mcp_django.subscriptions.facts import Fact, ModelClass, records_of
from mcp_django.subscriptions.harmless import harmless
from mcp_django.subscriptions.many_to_many import facts_of_relation
from mcp_django.subscriptions.outbox import outbox
from mcp_django.subscriptions.watched import is_watched


def announce(fact: Fact, *, using: str | None) -> None:
    """Publish what follows from the fact, after the commit."""
    tell_after_commit(publish_facts, fact, using=using)


def publish_facts(facts: Iterable[Fact]) -> None:
    if outbox.is_wanted:
        outbox.publish(effects_of(exposed_now()).changes(facts))


def exposed_now() -> Exposed:
    try:
        return exposed_by(registry, registry.server)
    except Error:
        # Our tables may be out of reach, or a transaction on them broken: what was, or the
        # ceiling. Rights are asked anyway before anybody is told.
        kept = registry.in_force
        return Exposed(registry.candidates, NOTHING_DECIDED) if kept is None else kept[1]


@harmless
def saved(
    *,
    sender: ModelClass,
    instance: Model,
    created: bool,
    using: str,
    raw: bool = False,
    update_fields: Iterable[str] | None = None,
    **kwargs: Any,
) -> None:
    if not is_watched(sender):
        return
    fact = Fact(
        model=sender,
        # A fixture has thousands of records: any of them, said once.
        records=() if raw else records_of(instance),
        is_whole=raw,
        fields=None if update_fields is None else field_names(sender, update_fields),
        is_membership=created,
    )
    announce(fact, using=using)


def field_names(model: ModelClass, given: Iterable[str]) -> frozenset[str]:
    """The names of fields; `update_fields` may say customer_id for customer."""
    return frozenset(model._meta.get_field(name).name for name in given)


@harmless
def deleted(*, sender: ModelClass, instance: Model, using: str, **kwargs: Any) -> None:
    if is_watched(sender):
        records = records_of(instance)
        announce(Fact(model=sender, records=records, is_membership=True), using=using)


@harmless
def related(
    *,
    sender: ModelClass,
    instance: Model,
    action: str,
    reverse: bool,
    model: ModelClass,
    pk_set: Iterable[Any] | None,
    using: str,
    **kwargs: Any,
) -> None:
    # What `clear` takes away is known before it only; nobody is told before the commit anyway.
    if action != "pre_clear" and not (action in ("post_add", "post_remove") and pk_set):
        return
    if is_watched(sender) or is_watched(type(instance)) or is_watched(model):
        for fact in facts_of_relation(
            instance, model, sender, pk_set=pk_set, is_reverse=reverse, using=using
        ):
            announce(fact, using=using)


def connect() -> None:
    """Watch every model. No query; may be called again."""
    watched: Any = ((saved, post_save), (deleted, post_delete), (related, m2m_changed))
    for receiver, signal in watched:
        # Strongly, or they would be gone with the next garbage collection.
        uid = f"mcp_django.subscriptions.{receiver.__name__}"
        signal.connect(receiver, weak=False, dispatch_uid=uid)

"""Django's signals -> changes of models. What they mean is worked out after the commit.

Django sends no signal for `update()`, `bulk_create()`, `bulk_update()`, raw SQL, and children that
the database deletes (DB_CASCADE of Django 6.1): `mcp.touch` announces those.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from itertools import islice
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, Error, transaction
from django.db.models import Manager, ManyToManyField, Model, QuerySet
from django.db.models.signals import m2m_changed, post_delete, post_save

from mcp_django import models
from mcp_django.cached import Cached
from mcp_django.exposure.decisions import NOTHING_DECIDED, Exposed, exposed_by
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import declaration_of
from mcp_django.exposure.registry import Registry, registrations_changed, registry
from mcp_django.exposure.uris import OBJECTS, SITE
from mcp_django.principal import DEFAULT_SERVER
from mcp_django.stores.cache_version import WITH_GROUPS, fields_of_rights, models_of_rights, watch
from mcp_django.stores.sessions import get_store
from mcp_django.subscriptions.outbox import outbox, publish, publish_after_commit, run_after_commit
from mcp_django.subscriptions.topics import (
    CLOSE,
    LISTS,
    PROMPTS,
    SESSION,
    TOOLS,
    Change,
    ModelChange,
    ModelClass,
    Topic,
    affected_topics,
    collection_topic,
    concrete,
    control_topic,
    definition_topic,
    home_of,
    is_kin,
    passed_by,
    records_of,
    topic_of,
)

# The two sides of a many-to-many relation, as `m2m_changed` shows them.

#: Records that one change names. More count as any record of the model.
MOST_RECORDS = 1000


def changes_of_relation(
    instance: Model,
    model: ModelClass,
    through: ModelClass,
    *,
    pk_set: Iterable[Any] | None,
    is_reverse: bool,
    using: str,
) -> Iterator[ModelChange]:
    """What happened to both sides and in between. Without a set of keys: all that there are."""
    kind = type(instance)
    owner: Any = model if is_reverse else kind
    fields = owner._meta.many_to_many
    relation = next((field for field in fields if field.remote_field.through is through), None)
    if not isinstance(relation, ManyToManyField):
        # A manager of tags, for example.
        yield ModelChange(model=kind, records=records_of(instance))
        yield ModelChange(model=model, is_whole=True)
        return
    # The foreign keys in between, and what either model calls the relation.
    ends = relation.m2m_field_name(), relation.m2m_reverse_field_name()
    get: Any = through._meta.get_field
    near, far = map(get, ends[::-1] if is_reverse else ends)
    names = relation.name, relation.remote_field.name
    near_name, far_name = names[::-1] if is_reverse else names
    yield ModelChange(model=kind, records=records_of(instance), fields=frozenset({near_name}))
    if pk_set is None:
        # What the instance is linked to, before that is gone.
        rows = through._base_manager.using(using).filter(**{near.name: instance})
        pk_set = rows.values_list(far.attname, flat=True)[: MOST_RECORDS + 1]
    keys = list(islice(pk_set, MOST_RECORDS + 1))
    # The table in between may refer to something else than the primary key.
    is_whole = len(keys) > MOST_RECORDS or not far.target_field.primary_key
    yield ModelChange(
        model=model,
        records=() if is_whole else tuple((concrete(model), (key,)) for key in keys),
        fields=frozenset({far_name}),
        is_whole=is_whole,
    )
    # Rows in between are made and deleted in bulk, without signals of their own.
    yield ModelChange(model=through, is_membership=True, is_whole=True)


# Receivers of signals run inside somebody's save.

logger = logging.getLogger("mcp_django.subscriptions")


def never_raise(receiver: Callable[..., None]) -> Callable[..., None]:
    """What goes wrong in here must not become the failure of that save."""

    @wraps(receiver)
    def receive(**kwargs: Any) -> None:
        try:
            receiver(**kwargs)
        except Exception:
            logger.exception("A change of %s was not announced.", kwargs["sender"])

    return receive


# Models whose signals may matter: decided without a query, since every save of a site asks.


_watched: Cached[frozenset[ModelClass]] = Cached()


def is_watched(model: ModelClass, *, tables: Registry = registry) -> bool:
    """Whether a change of this model may matter to clients. Models of migrations do not."""
    if not apps.ready or tables.mistake:
        return False  # the admin's classes are not all there yet, or nothing is served
    candidates = tables.candidates
    return model in _watched.get(
        candidates, make=lambda before: frozenset(watched_models(candidates))
    )


def watched_models(candidates: dict[type[Model], ModelExposure]) -> Iterator[ModelClass]:
    """What code opened and what staff may open. What is open, is asked after the commit."""
    wanted = {concrete(model) for model in candidates}
    for exposure in candidates.values():
        with suppress(ImproperlyConfigured):  # a check says so
            wanted.update(map(concrete, passed_by(declaration_of(exposure))))
    for model in apps.get_models(include_auto_created=True):
        if any(is_kin(concrete(model), other) for other in wanted):
            yield model


#: Changes that one transaction keeps apart; what is more says "any of this model".
MOST_FACTS = 1000


class Announcement:
    """What a commit publishes. Changes of the same savepoints may share one."""

    def __init__(self, model_change: ModelChange) -> None:
        self._model_changes = {model_change: None}

    def __call__(self) -> None:
        # Django names what failed by its __qualname__, which an object does not have.
        try:
            if not outbox.is_wanted:
                return
            try:
                exposed = exposed_by(registry, DEFAULT_SERVER)
            except Error:
                # Our tables may be out of reach, or a transaction on them broken: the ceiling.
                # Rights are checked anyway before a client is notified.
                exposed = Exposed(registry.candidates, NOTHING_DECIDED)
            outbox.publish(affected_topics(exposed).changes(self._model_changes))
        except Exception:
            logger.exception("Changes were not announced.")

    def add(self, model_change: ModelChange) -> None:
        self._model_changes[model_change] = None
        if len(self._model_changes) > MOST_FACTS:
            whole = (replace(one, records=(), is_whole=True) for one in self._model_changes)
            self._model_changes = dict.fromkeys(whole)


def announce(model_change: ModelChange, *, using: str | None) -> None:
    """Publish what follows from a change if its transaction, and every savepoint of it, holds."""
    connection = transaction.get_connection(using)
    waiting = connection.run_on_commit
    if len(waiting) > MOST_FACTS:
        # An import of a million rows must not hang a million functions on its commit.
        savepoints, last, *_ = waiting[-1]
        if isinstance(last, Announcement) and savepoints == set(connection.savepoint_ids):
            last.add(model_change)
            return
    run_after_commit(Announcement(model_change), using=using)


@never_raise
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
    fields = None
    if update_fields is not None:
        # They may say customer_id for customer.
        fields = frozenset(sender._meta.get_field(name).name for name in update_fields)
    model_change = ModelChange(
        model=sender,
        # A fixture has thousands of records: any of them, said once.
        records=() if raw else records_of(instance),
        is_whole=raw,
        fields=fields,
        is_membership=created,
    )
    announce(model_change, using=using)


@never_raise
def deleted(*, sender: ModelClass, instance: Model, using: str, **kwargs: Any) -> None:
    if is_watched(sender):
        records = records_of(instance)
        announce(ModelChange(model=sender, records=records, is_membership=True), using=using)


@never_raise
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
    # What `clear` removes is known only before it; clients are notified after the commit anyway.
    if action != "pre_clear" and not (action in ("post_add", "post_remove") and pk_set):
        return
    if is_watched(sender) or is_watched(type(instance)) or is_watched(model):
        for model_change in changes_of_relation(
            instance, model, sender, pk_set=pk_set, is_reverse=reverse, using=using
        ):
            announce(model_change, using=using)


# What staff switch off ends at once: streams, and the sessions of the legacy era.


@never_raise
def server_saved(*, instance: models.ServerSettings, using: str, **kwargs: Any) -> None:
    if instance.closed:
        run_after_commit(lambda: close_all(instance.server), using=using)


@never_raise
def restriction_saved(*, instance: models.UserRestriction, using: str, **kwargs: Any) -> None:
    if instance.blocked:
        # As the key of a user says itself: a form or a shell may have given it as some text.
        key: Any = models.UserRestriction._meta.get_field("user").target_field
        user = str(key.to_python(instance.user_id))
        run_after_commit(lambda: close_all(instance.server, user=user), using=using)


def close_all(server: str, *, user: str | None = None) -> None:
    """End what is open on a server, in whatever process: for one user, by the key as text, or all.

    May take a while, and the store may be out of reach: calls are refused in any case.
    """
    kind = ("server", server) if user is None else ("user", server, user)
    publish({Change(topic=control_topic(CLOSE, *kind))})
    store = get_store()
    for session in store.sessions():
        if session.server == server and user in (None, session.user):
            store.end_session(session.key)
            publish({Change(topic=control_topic(SESSION, session.key))})


#: Our rows -> the lists that they decide about. A personal token changes nothing for the others
#: of its user, and is checked at each call.
LISTS_OF: dict[ModelClass, frozenset[Topic]] = {
    models.ExposedModel: LISTS,
    models.ExposedTool: frozenset({TOOLS}),
    models.ExposedPrompt: frozenset({PROMPTS}),
    models.PromptTemplate: frozenset({PROMPTS}),
    models.PromptVersion: frozenset({PROMPTS}),
    models.ServerSettings: frozenset({TOOLS}),
}


def all_lists(*users: Any) -> list[Change]:
    """For everybody on every server, or for these users only, by their keys."""
    keys = frozenset(map(str, users)) or None
    return [Change(topic=name, users=keys) for name in sorted(LISTS)]


@never_raise
def row_changed(*, instance: Any, using: str, action: str = "post_save", **kwargs: Any) -> None:
    """A row of ours was saved or deleted, or is for other groups: these know no way to the row."""
    if action.startswith("post_"):
        publish_after_commit(changes_of_row(instance, LISTS_OF[type(instance)]), using=using)


def changes_of_row(row: Any, lists: Iterable[Topic]) -> Iterator[Change]:
    # Versions not by the server of their template, which may be gone with them.
    server = None if isinstance(row, models.PromptVersion) else row.server
    for name in lists:
        yield Change(topic=name, server=server)
    if isinstance(row, models.ExposedModel):
        # The definition tells of fields, and what is shown of records is another now. Who saw the
        # model before has to be notified, too: everybody is notified of the lists anyway.
        for topic in (SITE, definition_topic(row.label)):
            yield Change(topic=topic, server=server)
        yield Change(topic=collection_topic(row.label), server=server, is_whole=True)


@never_raise
def restriction_changed(*, instance: Any, using: str, **kwargs: Any) -> None:
    publish_after_commit(all_lists(instance.user_id), using=using)


@never_raise
def right_changed(
    *, instance: Model, using: str, update_fields: Any = None, created: bool = False, **kwargs: Any
) -> None:
    """A user, a group or a permission was saved or deleted."""
    if not isinstance(instance, get_user_model()):
        publish_after_commit(all_lists(), using=using)
    # Nobody is connected as a user that is new, and each login writes this one field.
    elif not created and set(update_fields or ("any",)) != {"last_login"}:
        publish_after_commit(all_lists(instance.pk), using=using)


@never_raise
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
    users: Iterable[Any] = ()
    if isinstance(instance, get_user_model()):
        users = [instance.pk]
    elif reverse and pk_set and issubclass(kwargs["model"], get_user_model()):
        users = pk_set
    publish_after_commit(all_lists(*users), using=using)


@never_raise
def registered(*, sender: Registry, kind: str, **kwargs: Any) -> None:
    if apps.ready:  # before that the site is starting, and nobody has seen a list
        lists = LISTS if kind == "model" else LISTS & {f"{kind}s"}
        publish([Change(topic=name, server=DEFAULT_SERVER) for name in lists])


def connect() -> None:
    """Watch every model, our rows, rights and registrations. No query; may be called again."""
    watch(saved, post_save)
    watch(deleted, post_delete)
    watch(related, m2m_changed)
    watch(registered, registrations_changed)
    for row in LISTS_OF:
        watch(row_changed, post_save, post_delete, sender=row)
    watch(restriction_changed, post_save, post_delete, sender=models.UserRestriction)
    for model in dict.fromkeys(models_of_rights(get_user_model())):
        watch(right_changed, post_save, post_delete, sender=model)
    for row in WITH_GROUPS:
        watch(row_changed, m2m_changed, sender=row.groups.through)
    for field in fields_of_rights(get_user_model()):
        watch(rights_changed, m2m_changed, sender=field.remote_field.through)
    watch(server_saved, post_save, sender=models.ServerSettings)
    watch(restriction_saved, post_save, sender=models.UserRestriction)


# `mcp.touch`: say that something changed where Django sends no signal.


def touch(*things: Any, using: str | None = None) -> None:
    """Announce things as a save would: when the transaction commits, to clients who may see them.

        Order.objects.filter(status="new").update(status="void")
        mcp.touch(Order)

    A thing is an object, a queryset (its keys are read now; more than 1,000 records count as any
    of the model), a model (any record of it, and how many there are), or a URI, also one of
    `@mcp.resource`. `using` is the database whose commit is waited for: without it that of the
    object or the queryset, or the one that the router writes the model to.

    Raises TypeError for anything else, before anything is announced.
    """
    for wait in [announcement(thing, using) for thing in things]:
        wait()


def announcement(thing: Any, using: str | None) -> partial[None]:
    if isinstance(thing, str) and thing:
        return of_uri(thing, using)
    if isinstance(thing, Manager):
        thing = thing.get_queryset()
    if isinstance(thing, QuerySet):
        queryset: Any = thing
        model, alias = queryset.model, queryset._db
        keys = list(queryset.values_list("pk", flat=True)[: MOST_RECORDS + 1])
        is_whole = len(keys) > MOST_RECORDS
        table = concrete(model)
        records = tuple((table, key if isinstance(key, tuple) else (key,)) for key in keys)
        change = ModelChange(model=model, records=() if is_whole else records, is_whole=is_whole)
    elif isinstance(thing, Model):
        model, alias = type(thing), thing._state.db
        records = records_of(thing) if thing.pk is not None else ()
        change = ModelChange(model=model, records=records)
    elif isinstance(thing, type) and issubclass(thing, Model):
        model, alias = thing, None
        change = ModelChange(model=model, is_membership=True, is_whole=True)
    else:
        raise TypeError(
            f"touch() takes objects, querysets, models and URIs, not {type(thing).__name__}."
        )
    return partial(announce, change, using=using or alias or home_of(model))


def of_uri(uri: str, using: str | None) -> partial[None]:
    """Of a record the collection changes, too. Of other URIs the topic is all there is."""
    topic = topic_of(uri)
    changes = [Change(topic=topic)]
    alias = DEFAULT_DB_ALIAS
    if topic.startswith(OBJECTS):
        label, slash, _ = topic.removeprefix(OBJECTS).partition("/")
        changes += [Change(topic=OBJECTS + label)] * bool(slash)
        with suppress(LookupError, ValueError):
            alias = home_of(apps.get_model(label))
    return partial(publish_after_commit, changes, using=using or alias)

"""`mcp.touch`: say that something changed where Django sends no signal."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Manager, Model, QuerySet

from mcp_django.exposure.uris import OBJECTS
from mcp_django.subscriptions.commits import publish_after_commit
from mcp_django.subscriptions.events import Change
from mcp_django.subscriptions.facts import Fact, concrete, records_of
from mcp_django.subscriptions.receivers import announce
from mcp_django.subscriptions.topics import home_of, topic_of

#: Records of a queryset that are announced one by one.
MOST_RECORDS = 1000


def touch(*things: Any, using: str | None = None) -> None:
    """Announce things as a save would: when the transaction commits, to whoever may see them.

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
    fact, alias = fact_of(thing)
    return partial(announce, fact, using=using or alias)


def fact_of(thing: Any) -> tuple[Fact, str]:
    """What is said to have happened, and the database where."""
    if isinstance(thing, Manager):
        thing = thing.get_queryset()
    if isinstance(thing, QuerySet):
        rows: Any = thing
        return fact_of_queryset(rows), rows._db or home_of(rows.model)
    if isinstance(thing, Model):
        records = records_of(thing) if thing.pk is not None else ()
        alias = thing._state.db or home_of(type(thing))
        return Fact(model=type(thing), records=records), alias
    if isinstance(thing, type) and issubclass(thing, Model):
        return Fact(model=thing, is_membership=True, is_whole=True), home_of(thing)
    raise TypeError(
        f"touch() takes objects, querysets, models and URIs, not {type(thing).__name__}."
    )


def fact_of_queryset(rows: QuerySet[Any]) -> Fact:
    table = concrete(rows.model)
    found = list(rows.values_list("pk", flat=True)[: MOST_RECORDS + 1])
    if len(found) > MOST_RECORDS:
        return Fact(model=rows.model, is_whole=True)
    keys = (key if isinstance(key, tuple) else (key,) for key in found)
    return Fact(model=rows.model, records=tuple((table, key) for key in keys))


def of_uri(uri: str, using: str | None) -> partial[None]:
    """Of a record the collection changes, too. Of other URIs the topic is all there is."""
    topic = topic_of(uri)
    changes = [Change(topic=topic)]
    alias = DEFAULT_DB_ALIAS
    if topic.startswith(OBJECTS):
        label, slash, _ = topic.removeprefix(OBJECTS).partition("/")
        changes += [Change(topic=OBJECTS + label)] * bool(slash)
        alias = home_of_label(label)
    return partial(publish_after_commit, changes, using=using or alias)


def home_of_label(label: str) -> str:
    try:
        return home_of(apps.get_model(label))
    except (LookupError, ValueError):
        return DEFAULT_DB_ALIAS

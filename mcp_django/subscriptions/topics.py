"""What a subscribed URI is about, in the one spelling that events use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from django.apps import apps
from django.db import router
from django.db.models import Model

from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.keys import parse_key, spell_key, stored_key
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.resources import key_of
from mcp_django.exposure.uris import COLLECTION, DEFINITION, SITE, object_uri, parse_uri
from mcp_django.subscriptions.events import Topic

#: URIs as a client wrote them, by what they are about.
Uris: TypeAlias = Mapping[Topic, tuple[str, ...]]


def topic_of(uri: str) -> Topic:
    """The topic of events about this URI. Never raises: what is not ours is its own topic.

    A file is about its record, and a collection with a query about the collection.
    """
    try:
        address = parse_uri(uri)
    except NotFound:
        return uri
    match address.kind, address.segments:
        case "site", ():
            return SITE
        case "models", (label,):
            return definition_topic(label)
        case "objects", (label,):
            return collection_topic(label)
        case ("objects", (label, *key)) | ("files", (label, *key, _)) if key:
            return known_object_topic(label, key)
    return uri


def by_topic(uris: Iterable[str]) -> Uris:
    """The URIs by what they are about. Not on an event loop: databases say what a key can be."""
    found: dict[Topic, tuple[str, ...]] = {}
    for uri in dict.fromkeys(uris):
        topic = topic_of(uri)
        found[topic] = (*found.get(topic, ()), uri)
    return found


def known_object_topic(label: str, segments: list[str]) -> Topic:
    """The topic of a record as a URI names it. A key that cannot be one stays as it is."""
    label = label.lower()
    try:
        model = apps.get_model(label)
        key = key_of(ModelExposure(model), segments)
        return object_uri(label, spell_key(parse_key(model, key, using=home_of(model))))
    except (LookupError, ValueError, QueryError):
        return object_uri(label, segments)


def object_topic(model: type[Model], key: Iterable[Any]) -> Topic:
    """The topic of a record by the values of its key."""
    return object_uri(model._meta.label_lower, spell_key(stored_key(model, key)))


def collection_topic(label: str) -> Topic:
    return COLLECTION.expand({"model": label.lower()})


def definition_topic(label: str) -> Topic:
    return DEFINITION.expand({"model": label.lower()})


def home_of(model: type[Model]) -> str:
    """The database that a record is written to, where no replica lags behind."""
    return str(router.db_for_write(model))

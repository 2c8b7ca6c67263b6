"""Changes as data, by name and never by content, and the topics that they affect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import router
from django.db.models import GeneratedField, Model

from mcp_django.cached import Cached
from mcp_django.exceptions import NotFound, QueryError
from mcp_django.exposure.decisions import Exposed
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import (
    GROUP,
    RETURN,
    Declaration,
    Hop,
    declaration_of,
    label_target,
    parse_key,
    spell_key,
    stored_key,
)
from mcp_django.exposure.registry import registry
from mcp_django.exposure.resources.models import key_of
from mcp_django.exposure.uris import COLLECTION, DEFINITION, SITE, object_uri, parse_uri
from mcp_django.principal import Principal

#: Lists that clients are notified of, as the names of their list methods begin.
TOOLS = "tools"
PROMPTS = "prompts"
RESOURCES = "resources"
LISTS = frozenset({TOOLS, PROMPTS, RESOURCES})

#: A resource's URI in its canonical form, the name of a list, or a `control_topic`.
Topic: TypeAlias = str

# Topics of messages between processes. No client subscribes to these.

#: A session was ended, or its subscriptions are others now.
SESSION = "session"
#: Events were added to a log.
LOG = "log"
#: A question was answered.
ANSWER = "answer"
#: A call is to be cancelled: a session's key and the id of the request. Without one, all of them.
CANCEL = "cancel"
#: Streams are to be closed: one by its key, those of a user, or those of a server.
CLOSE = "close"


def control_topic(kind: str, *keys: str) -> Topic:
    """No URI begins so: the kind is followed by a space."""
    return f"{kind} {' '.join(keys)}"


def is_control(topic: Topic) -> bool:
    return " " in topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing changed. Equal changes say the same, so that of several one is enough."""

    topic: Topic
    #: The server that it is about. None: all servers.
    server: str | None = None
    #: For these users only, primary keys as text. None: for everybody.
    users: frozenset[str] | None = None
    #: Nothing that anybody may read changed, but who may see the thing may have: those who no
    #: longer do are notified once, and nobody else.
    is_hidden: bool = False
    #: And so may everything below it: who subscribed to a record of this collection is meant, too.
    is_whole: bool = False
    #: The label of a model. Who may not see that model must not learn that something happened to
    #: it, though they may see the topic. Empty: it is about the topic alone.
    model: str = ""
    #: The tenant of the rows. Empty: of all, or there are none.
    tenant: str = ""

    def touches(self, topic: Topic) -> bool:
        """Whether it is about what somebody subscribed to."""
        if topic == self.topic:
            return True
        return self.is_whole and (not self.topic or topic.startswith(f"{self.topic}/"))

    def is_at(self, tenant: str) -> bool:
        return self.tenant in ("", tenant)

    def concerns(self, principal: Principal, *, user: str) -> bool:
        is_here = self.server is None or self.server == principal.server
        is_theirs = self.users is None or user in self.users
        return is_here and is_theirs and self.is_at(principal.tenant)


#: So much changed that nobody can tell what: every subscription and every list is touched.
EVERYTHING = Change(topic="", is_whole=True)


# What a signal saw, kept until the commit.

Key: TypeAlias = tuple[Any, ...]
ModelClass: TypeAlias = type[Model]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """Something happened to records of a model. Keys and names, never values."""

    model: ModelClass
    #: Which, by table: a child has a record in the tables of its parents, too. Empty: unknown.
    records: tuple[tuple[ModelClass, Key], ...] = ()
    #: The names of the fields that may have another value. None: any.
    fields: frozenset[str] | None = None
    #: Whether there are other records than before, and not only other values.
    is_membership: bool = False
    #: Whether it may be any record of the model, so that subscribers of each are to be asked.
    is_whole: bool = False

    def may_change(self, names: frozenset[str]) -> bool:
        """Whether it may be seen in these fields, or in which records there are."""
        return self.is_membership or self.fields is None or not names.isdisjoint(self.fields)


def concrete(model: Any) -> ModelClass:
    """The class that has the table; a proxy has none."""
    return model._meta.concrete_model  # type: ignore[no-any-return]  # never None here


def records_of(instance: Model) -> tuple[tuple[ModelClass, Key], ...]:
    """The keys of an instance in its own table and in those of its parents."""
    kind = concrete(type(instance))
    return tuple(
        (table, tuple(getattr(instance, part.attname) for part in table._meta.pk_fields))
        for table in (kind, *kind._meta.all_parents)
    )


# The topics of URIs.

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
        case "rest", _:
            served = (each for each in registry.resources.values() if each.variables(uri))
            record = next((each.record_uri(uri) for each in served), "")
            return topic_of(record) if record else uri
        case "site", ():
            return SITE
        case "models", (label,):
            return definition_topic(label)
        case "objects", (label,):
            return collection_topic(label)
        case ("objects", (label, *key)) | ("files", (label, *key, _)) if key:
            label, spelled = label.lower(), tuple(key)
            # A key that cannot be one stays as it is.
            with suppress(LookupError, ValueError, QueryError):
                model = apps.get_model(label)
                values = parse_key(model, key_of(ModelExposure(model), key), using=home_of(model))
                spelled = spell_key(values)
            return object_uri(label, spelled)
    return uri


def by_topic(uris: Iterable[str]) -> Uris:
    """The URIs by what they are about. Not on an event loop: databases say what a key can be."""
    found: dict[Topic, tuple[str, ...]] = {}
    for uri in dict.fromkeys(uris):
        topic = topic_of(uri)
        found[topic] = (*found.get(topic, ()), uri)
    return found


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


#: What follows of a change for one exposure.
Follow: TypeAlias = Callable[[ModelChange], Iterator[Change]]


def changes_of_records(
    model_change: ModelChange,
    *,
    exposure: ModelExposure,
    key_table: ModelClass | None,
    used: frozenset[str],
    is_child: bool,
) -> Iterator[Change]:
    """For an exposure that shows records of the table, of a parent's or of a child's.

    `key_table` is the one whose key its records have, None where their keys are unknown. `used`
    are the names of the fields that any use of it declares.
    """
    model, topic = exposure.model, collection_topic(exposure.label)
    is_seen = model_change.may_change(used)
    for table, key in model_change.records:
        if table is key_table:
            yield Change(topic=object_topic(model, key), is_hidden=not is_seen)
    if is_seen or model_change.is_whole:
        yield Change(topic=topic, is_whole=model_change.is_whole, is_hidden=not is_seen)
    # A child of a record is no other record, whatever becomes of the parent.
    if model_change.is_membership and not is_child:
        yield Change(topic=SITE, model=exposure.label)


def changes_through(
    model_change: ModelChange, *, exposure: ModelExposure, passed: ModelClass, used: frozenset[str]
) -> Iterator[Change]:
    """For an exposure whose paths pass through the model: never its records one by one."""
    if model_change.may_change(used):
        # Who may not see the other model has no path through it.
        yield Change(topic=collection_topic(exposure.label), model=passed._meta.label_lower)


class AffectedTopics:
    """What follows from changes of models, worked out once for each model and set of exposures."""

    def __init__(self, exposed: Exposed) -> None:
        self._declared = dict(declared(exposed))
        self._known: dict[ModelClass, tuple[Follow, ...]] = {}

    def changes(self, model_changes: Iterable[ModelChange]) -> set[Change]:
        return {
            change
            for model_change in model_changes
            for follow in self._of(model_change.model)
            for change in follow(model_change)
        }

    def _of(self, model: ModelClass) -> tuple[Follow, ...]:
        if model not in self._known:
            self._known[model] = (*self._own(model), *self._related(model))
        return self._known[model]

    def _own(self, model: ModelClass) -> Iterator[Follow]:
        table = concrete(model)
        for exposure, declaration in self._declared.items():
            theirs = concrete(exposure.model)
            if is_kin(table, theirs):
                is_child = theirs is not table and issubclass(theirs, table)
                yield partial(
                    changes_of_records,
                    exposure=exposure,
                    key_table=parent_with_its_key(theirs, table) if is_child else theirs,
                    used=with_sources(
                        exposure.model,
                        {path.names[0] for path in (*declaration.everything, *declaration.labels)},
                    ),
                    is_child=is_child,
                )

    def _related(self, model: ModelClass) -> Iterator[Follow]:
        for exposure, declaration in self._declared.items():
            for passed in passed_by(declaration):
                if is_kin(concrete(model), concrete(passed)):
                    # With the columns by which its records are named elsewhere.
                    labels = {
                        path.field.name
                        for other, theirs in self._declared.items()
                        if other.model is passed
                        for path in theirs.labels
                    }
                    yield partial(
                        changes_through,
                        exposure=exposure,
                        passed=passed,
                        used=names_passed(declaration, passed) | labels,
                    )


def declared(exposed: Exposed) -> Iterator[tuple[ModelExposure, Declaration]]:
    """The exposures that show records, with their paths."""
    for exposure in exposed.exposures.values():
        if exposure.aggregates_only or exposure.is_definition_only:
            continue
        try:
            yield exposure, declaration_of(exposure)
        except ImproperlyConfigured:  # a check says so; nobody can read it
            continue


def is_kin(one: ModelClass, other: ModelClass) -> bool:
    """Whether two tables hold parts of the same records."""
    return issubclass(one, other) or issubclass(other, one)


def parent_with_its_key(child: ModelClass, parent: ModelClass) -> ModelClass | None:
    """The parent if a child has its key, which one with two parents has of the first only."""
    parts: Any = child._meta.pk_fields
    part = parts[0]
    while part.is_relation and part.model is not parent:
        part = part.target_field
    return parent if len(parts) == 1 and part.model is parent else None


def with_sources(model: ModelClass, names: set[str]) -> frozenset[str]:
    """The same, and what the database computes some of them from."""
    references: Any = model._get_expr_references  # type: ignore[attr-defined]  # not in the stubs
    fields = map(model._meta.get_field, names)
    generated: list[Any] = [field for field in fields if isinstance(field, GeneratedField)]
    sources = {source for field in generated for source, *_ in references(field.expression)}
    return frozenset({*names, *sources})


def passed_by(declaration: Declaration) -> tuple[ModelClass, ...]:
    """The other models that paths pass, with those in between that Django made."""
    hops = [hop for path in declaration.everything for hop in path.hops]
    between = [hop.through for hop in hops if hop.through is not None]
    return tuple(dict.fromkeys([*declaration.passed, *between]))


def names_passed(declaration: Declaration, model: ModelClass) -> frozenset[str]:
    """The fields of another model that paths look at, or are joined by."""
    found = {
        name
        for path in declaration.everything
        for at, (owner, name) in enumerate(path.steps)
        if at and owner is model
    }
    for path in declaration.everything:
        for hop in path.hops:
            found |= joined_names(hop, model)
    for path in (*declaration.paths[RETURN], *declaration.paths[GROUP]):
        if label_target(path) is model:
            found.add(path.field.target_field.name)
    return with_sources(model, found)


def joined_names(hop: Hop, model: ModelClass) -> set[str]:
    if hop.ends is not None:
        return {end.name for end in hop.ends} if hop.through is model else set()
    if hop.model is not model:
        return set()
    kind = {hop.field.content_type_field_name} if hop.is_generic else set()
    return {hop.link[1].name, *kind}


_affected_topics: Cached[AffectedTopics] = Cached()


def affected_topics(exposed: Exposed) -> AffectedTopics:
    return _affected_topics.get(exposed, make=lambda before: AffectedTopics(exposed))

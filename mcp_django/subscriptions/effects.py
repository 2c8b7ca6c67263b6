"""Which topics a fact is about, as exposures are in force."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from django.core.exceptions import ImproperlyConfigured
from django.db.models import F, GeneratedField

from mcp_django.exposure.declarations import Declaration, declaration_of, label_target
from mcp_django.exposure.guard import GROUP, RETURN
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.overrides import Exposed
from mcp_django.exposure.paths import Hop, Path, key_parts
from mcp_django.exposure.uris import SITE
from mcp_django.subscriptions.events import Change, Topic
from mcp_django.subscriptions.facts import Fact, ModelClass, concrete
from mcp_django.subscriptions.topics import collection_topic, object_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """An exposure that shows records of the table, of a parent's or of a child's."""

    exposure: ModelExposure
    #: Of its collection.
    topic: Topic
    #: The table whose key is that of the exposure's records. None: their keys are unknown.
    table: ModelClass | None
    #: The names of the fields that any use of it declares.
    used: frozenset[str]
    #: A child of a record is no other record, whatever becomes of the parent.
    is_child: bool

    def changes(self, fact: Fact) -> Iterator[Change]:
        model = self.exposure.model
        is_seen = (
            fact.is_membership or fact.fields is None or not self.used.isdisjoint(fact.fields)
        )
        for table, key in fact.records:
            if table is self.table:
                yield Change(topic=object_topic(model, key), is_hidden=not is_seen)
        if is_seen or fact.is_whole:
            is_hidden = not is_seen
            yield Change(topic=self.topic, is_whole=fact.is_whole, is_hidden=is_hidden)
        if fact.is_membership and not self.is_child:
            yield Change(topic=SITE, model=self.exposure.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """An exposure whose paths pass through the model: never its records one by one."""

    topic: Topic
    passed: ModelClass
    used: frozenset[str]

    def changes(self, fact: Fact) -> Iterator[Change]:
        if fact.may_change(self.used):
            # Who may not see the other model has no path through it.
            yield Change(topic=self.topic, model=self.passed._meta.label_lower)


class Effects:
    """What follows from facts, worked out once for each model and set of exposures."""

    def __init__(self, exposed: Exposed) -> None:
        self._declared = dict(declared(exposed))
        self._known: dict[ModelClass, tuple[Own | Related, ...]] = {}

    def changes(self, facts: Iterable[Fact]) -> set[Change]:
        return {
            change
            for fact in facts
            for one in self._of(fact.model)
            for change in one.changes(fact)
        }

    def _of(self, model: ModelClass) -> tuple[Own | Related, ...]:
        found = self._known.get(model)
        if found is None:
            found = self._known[model] = (*self._own(model), *self._related(model))
        return found

    def _own(self, model: ModelClass) -> Iterator[Own]:
        table = concrete(model)
        for exposure, declaration in self._declared.items():
            theirs = concrete(exposure.model)
            if is_kin(table, theirs):
                is_child = theirs is not table and issubclass(theirs, table)
                yield Own(
                    exposure=exposure,
                    topic=collection_topic(exposure.label),
                    table=parent_with_its_key(theirs, table) if is_child else theirs,
                    used=used_names(declaration, exposure.model),
                    is_child=is_child,
                )

    def _related(self, model: ModelClass) -> Iterator[Related]:
        for exposure, declaration in self._declared.items():
            for passed in passed_by(declaration):
                if is_kin(concrete(model), concrete(passed)):
                    used = names_passed(declaration, passed) | self._label_names(passed)
                    topic = collection_topic(exposure.label)
                    yield Related(topic=topic, passed=passed, used=used)

    def _label_names(self, model: ModelClass) -> frozenset[str]:
        """The columns by which records of a model are named elsewhere."""
        found = [one for exposure, one in self._declared.items() if exposure.model is model]
        return frozenset(path.field.name for one in found for path in one.labels)


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
    parts: Any = key_parts(child)
    part = parts[0]
    while part.is_relation and part.model is not parent:
        part = part.target_field
    return parent if len(parts) == 1 and part.model is parent else None


def used_names(declaration: Declaration, model: ModelClass) -> frozenset[str]:
    """The fields of the model itself that some path begins with, or that a label shows."""
    paths = (*declaration.everything, *declaration.labels)
    return with_sources(model, {path.names[0] for path in paths})


def with_sources(model: ModelClass, names: set[str]) -> frozenset[str]:
    """The same, and what the database computes some of them from."""
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    generated: list[Any] = [one for one in fields if isinstance(one, GeneratedField)]
    return frozenset({*names, *(name for one in generated for name in sources_of(one.expression))})


def sources_of(expression: Any) -> Iterator[str]:
    if isinstance(expression, F):
        yield str(expression.name)  # type: ignore[attr-defined]  # not in the stubs
    else:
        for one in expression.get_source_expressions():
            yield from () if one is None else sources_of(one)


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
        found |= key_names(path, model)
    return with_sources(model, found)


def joined_names(hop: Hop, model: ModelClass) -> set[str]:
    if hop.ends is not None:
        return {end.name for end in hop.ends} if hop.through is model else set()
    if hop.model is not model:
        return set()
    kind = {hop.field.content_type_field_name} if hop.is_generic else set()
    return {hop.link[1].name, *kind}


def key_names(path: Path, model: ModelClass) -> set[str]:
    return {path.field.target_field.name} if label_target(path) is model else set()


_lock = threading.Lock()
_effects: WeakKeyDictionary[Exposed, Effects] = WeakKeyDictionary()


def effects_of(exposed: Exposed) -> Effects:
    with _lock:
        found = _effects.get(exposed)
        if found is None:
            found = _effects[exposed] = Effects(exposed)
        return found

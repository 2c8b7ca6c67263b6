"""Paths through relations that nobody lists: each model on the way is open and shows its part.

A relation is shown by the model that has the foreign key, so the other side may be asked for the
way back. What is not shown, not open or narrowed away does not exist, here as anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
from django.db.models.constants import LOOKUP_SEP
from django.db.models.sql import Query

from mcp_django.cached import Recent
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import (
    COUNT_RELATED,
    FILTER,
    GROUP,
    INCLUDE,
    MAX_HOPS,
    METRIC,
    ORDER,
    RETURN,
    Hop,
    ModelClass,
    Path,
    Trail,
    has_order,
    is_measure,
    joins_of,
    makes_groups,
    trail,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.access import (
    AccessiblePaths,
    Grants,
    PathByRule,
    allowed_paths,
    home_of,
    is_open,
)
from mcp_django.exposure.query.arguments import Filters, lookups_of
from mcp_django.exposure.query.guard import OpenModel, is_plain
from mcp_django.levels import Level

#: Sets of such paths that are remembered, over all exposures.
MOST_EXTENDED = 500
#: Characters of a name that may be a path.
LONGEST = 200
#: What a path by rule may be used for, as far as its column can.
USES = {
    RETURN: lambda path: True,
    FILTER: lambda path: True,
    ORDER: has_order,
    GROUP: makes_groups,
    METRIC: is_measure,
}

#: The arguments of tools that have paths in them.
ARGUMENTS = {
    "filters": FILTER,
    "exclude": FILTER,
    "any_of": FILTER,
    "fields": RETURN,
    "order_by": ORDER,
    "group_by": GROUP,
    "metrics": METRIC,
}

_extended: Recent[tuple[Any, ...], AccessiblePaths] = Recent(size=MOST_EXTENDED)


def paths_of_call(
    rights: Rights, exposure: ModelExposure, asked: Filters | Mapping[str, Any]
) -> AccessiblePaths:
    """`allowed_paths`, with the paths by rule that the arguments of a call name."""
    access = allowed_paths(rights, exposure)
    arguments = asked if isinstance(asked, Mapping) else msgspec.structs.asdict(asked)
    # A list may name one twice, and a call that is wrong is told so by whoever parses it.
    named = {pair for pair in names_in(arguments) if not is_listed(access, *pair)}
    if not named:
        return access
    rule = Rule(rights, access)
    found = {}
    for use, name in named:
        one = rule.find(name)
        if one is None:
            continue
        is_counted = use == METRIC and COUNT_RELATED in one.uses and one.path.text == name
        if is_counted or one.adds_to(access.paths[use], use=use):
            found[one.path.names] = one
    return extended(rule, [found[names] for names in sorted(found)]) if found else access


def names_in(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What may be a path, or a lookup that begins with one, and what it is to be used for."""
    for argument, use in ARGUMENTS.items():
        given = arguments.get(argument)
        if not given:  # most are left out
            continue
        if argument == "any_of":
            parts = given if isinstance(given, list | tuple) else ()
        elif argument == "metrics":
            metrics = given.values() if isinstance(given, Mapping) else ()
            parts = [list(one.values()) for one in metrics if isinstance(one, Mapping)]
        else:
            parts = [given]
        for part in parts:
            if isinstance(part, Mapping):
                part = [name for name, _ in lookups_of(part)]
            for name in part if isinstance(part, list | tuple) else ():
                if isinstance(name, str) and len(name) <= LONGEST:
                    yield use, name.removeprefix("-")


def is_listed(access: AccessiblePaths, use: str, name: str) -> bool:
    """Whether that is certain at a glance. Otherwise the rule finds nothing that is not there."""
    if use == FILTER:
        return name in access.lookups or name in access.tables[FILTER]
    if use == ORDER:
        return name in access.orders
    if use == RETURN:
        return name == "*" or name in access.column_table
    return name in access.tables[use]


@dataclass(frozen=True, kw_only=True)
class RelationStep:
    """A relation that may be followed, and the paths of the model that it leads to."""

    hop: Hop
    access: AccessiblePaths
    uses: frozenset[str]


class Rule:
    """Which paths from one model this caller may follow."""

    def __init__(self, rights: Rights, access: AccessiblePaths) -> None:
        self.rights = rights
        self.access = access
        self._home = home_of(rights, access.model)
        self.is_open = is_followed(rights, access.exposure)
        #: The models that paths may pass, as far as anybody asked. None: it is closed.
        self._passed: dict[ModelClass, AccessiblePaths | None] = {}

    @property
    def passed(self) -> dict[ModelClass, AccessiblePaths]:
        known = sorted(self._passed.items(), key=lambda one: one[0]._meta.label)
        return {model: access for model, access in known if access is not None}

    def find(self, name: str) -> PathByRule | None:
        """The longest path that the name begins with, unless it has no relation."""
        if not self.is_open:
            return None
        uses = frozenset((*USES, COUNT_RELATED))
        return self._walk(self.access, tuple(name.split(LOOKUP_SEP)), (), uses)

    def _walk(
        self,
        current: AccessiblePaths,
        names: tuple[str, ...],
        hops: tuple[Hop, ...],
        uses: frozenset[str],
    ) -> PathByRule | None:
        first, rest = names[0], names[1:]
        step = self.step(current, first) if len(hops) < MAX_HOPS else None
        if step is not None and rest:
            further = self._walk(step.access, rest, (*hops, step.hop), uses & step.uses)
            if further is not None:
                return further
        if step is not None and (step.hop.is_many or not step.hop.field.concrete):
            return self._path((*hops, step.hop), None, uses & step.uses)
        if not hops:
            return None
        if is_key_of(hops[-1], first):
            # flight__airline__id is the column airline_id of the flight.
            return self._path(hops[:-1], hops[-1].field, uses) if hops[:-1] else None
        own = current.own.get(first)
        if own is None:
            return None
        left = frozenset(use for use in uses if current.is_left(own.names, use=use))
        return self._path(hops, own.field, left)

    def _path(self, hops: tuple[Hop, ...], field: Any, uses: frozenset[str]) -> PathByRule | None:
        names = [hop.name for hop in hops] + ([] if field is None else [field.name])
        path = Path(
            text=LOOKUP_SEP.join(names),
            model=self.access.model,
            hops=hops,
            field=field,
            is_by_rule=True,
        )
        known = {self.access.model: self.access, **self.passed}
        owners = (self.access.model, *(hop.model for hop in hops))
        # The model, or one on the way, may close the rest of the path.
        if any(known[model].is_excluded(path.names[at:]) for at, model in enumerate(owners)):
            return None
        if field is None:
            uses &= {FILTER, COUNT_RELATED} if hops[-1].is_many else {FILTER}
        else:
            uses = frozenset(use for use in uses if use in USES and USES[use](path))
        return PathByRule(path=path, uses=uses) if uses else None

    def step(self, current: AccessiblePaths, name: str) -> RelationStep | None:
        """The relation of that name, if it is shown and what it leads to is open."""
        hop = current.relation(name, self.access_to)
        if hop is None:
            return None
        accesses = [self.access_to(model) for model in hop.models]
        target = accesses[-1]
        if target is None or None in accesses:
            return None
        # A join would show, or sort by, rows that the caller cannot see.
        possible = {FILTER} if hop.is_many or self.is_narrowed(hop.model) else set(USES)
        if hop.is_many and len(target.keys) == 1 and hop.link[0].primary_key:
            possible.add(INCLUDE)
        if is_counted_through(current, hop) and joins_of(hop, current.model) is not None:
            possible.add(COUNT_RELATED)
        uses = frozenset(use for use in possible if current.is_left((hop.name,), use=use))
        return RelationStep(hop=hop, access=target, uses=uses) if uses else None

    def access_to(self, model: ModelClass) -> AccessiblePaths | None:
        """The paths of a model whose records are open to this caller, for paths to pass."""
        if model not in self._passed:
            rights, exposure = self.rights, self.rights.exposed.exposures.get(model)
            self._passed[model] = (
                allowed_paths(rights, exposure)
                if exposure is not None
                and is_followed(rights, exposure)
                and is_open(rights, self.access.exposure, model, home=self._home)
                else None
            )
        return self._passed[model]

    def is_narrowed(self, model: ModelClass) -> bool:
        return not is_plain(self.rights.rows(model).query)

    def names_behind(self, name: str) -> list[str]:
        """What a relation of the model itself leads to, for who looks for a filter."""
        step = self.relation(name)
        if step is None or FILTER not in step.uses:
            return []
        own = {path.names[0]: None for path in step.access.own.values()}
        left = [one for one in own if not self.access.is_excluded((step.hop.name, one))]
        return [f"{step.hop.name}{LOOKUP_SEP}{one}" for one in left]

    def relation(self, name: str) -> RelationStep | None:
        """Return the relation of the model itself with that name, if it may be followed."""
        return self.step(self.access, name) if self.is_open else None

    @cached_property
    def relations(self) -> dict[str, RelationStep]:
        """Every relation of the model itself that may be followed."""
        if not self.is_open:
            return {}
        found = {name: self.step(self.access, name) for name in self.access.relations}
        return {name: step for name, step in found.items() if step is not None}


def is_counted_through(current: AccessiblePaths, hop: Hop) -> bool:
    """Whether a count may follow a relation: where no list of the model leaves it out."""
    return all(current.is_left((hop.name,), use=use) for use in (FILTER, METRIC))


def is_followed(rights: Rights, exposure: ModelExposure) -> bool:
    """Whether paths that nobody lists may begin at the model, or pass it."""
    return exposure.follow_relations and rights.level(exposure.model) >= Level.READ


def is_key_of(hop: Hop, name: str) -> bool:
    """Whether a name behind a foreign key is that of the column which the key holds already."""
    if hop.is_many or not hop.field.concrete:
        return False
    key = hop.link[1]
    return name in (key.name, key.attname) or (name == "pk" and bool(key.primary_key))


def extended(rule: Rule, found: list[PathByRule]) -> AccessiblePaths:
    """The paths of a caller, and these."""
    base, passed = rule.access, rule.passed
    narrowed = frozenset(model for model in passed if rule.is_narrowed(model))
    names = tuple((one.path.names, one.uses) for one in found)
    key = (base, names, tuple(passed.items()), narrowed)
    known = _extended.get(key)
    if known is None:
        grants = together((base, *passed.values()), narrowed)
        models = open_models(base, passed, narrowed)
        known = AccessiblePaths(base.declaration, replace(grants, models=models), by_rule=found)
        # The pages of a query have one order, whatever paths each of them shows.
        known.default_order, known.digest = base.default_order, base.digest
        _extended.put(key, known)
    return known


def together(accesses: Iterable[AccessiblePaths], narrowed: frozenset[ModelClass]) -> Grants:
    """What is known of one caller's rights, from several models."""
    every = [access.grants for access in accesses]
    by_model: dict[str, Any] = {
        name: {model: found for one in every for model, found in getattr(one, name).items()}
        for name in ("shown", "labels", "withheld", "untrusted", "masked")
    }
    return Grants(
        forbidden=frozenset().union(*(one.forbidden for one in every)),
        restricted=narrowed.union(*(one.restricted for one in every)),
        not_followed=frozenset().union(*(one.not_followed for one in every)),
        **by_model,
    )


def open_models(
    base: AccessiblePaths,
    passed: Mapping[ModelClass, AccessiblePaths],
    narrowed: frozenset[ModelClass],
) -> dict[ModelClass, OpenModel]:
    """What the guard knows of them: columns and joins, and no path that anybody asked for."""
    models = {}
    for model, access in {**passed, base.model: base}.items():
        relations = [access.relation(name, passed.get) for name in access.relations]
        hops = [hop for hop in relations if hop is not None]
        models[model] = OpenModel(
            columns=access.columns_by_use,
            relations={
                trail_of(model, hop.name): hop.model
                for hop in hops
                if not hop.is_many and hop.model in passed and hop.model not in narrowed
            },
            # A model with a smallest group has numbers about many of its records only.
            counted={
                joins: hop.model
                for hop in hops
                if is_counted_through(access, hop)
                and all(
                    one in passed and not passed[one].exposure.smallest_group for one in hop.models
                )
                and (joins := joins_of(hop, model)) is not None
            },
            is_narrowed=model in narrowed,
        )
    return models


def trail_of(model: ModelClass, relation: str) -> Trail:
    """The joins of a relation."""
    query = Query(model)
    found = query.setup_joins([relation], query.get_meta(), query.get_initial_alias())
    return trail(query.alias_map, found.joins[-1])

"""What callers with equal rights can reach of one exposure."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

from django.db import router

from mcp_django.exposure.declarations import (
    PREFIXES,
    SEARCH,
    Declaration,
    declaration_of,
    label_target,
)
from mcp_django.exposure.declarations import problems as problems
from mcp_django.exposure.guard import (
    COUNTED,
    EXTREME,
    FILTER,
    GROUP,
    METRIC,
    ORDER,
    RETURN,
    Policy,
)
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.overrides import Names, begins_with
from mcp_django.exposure.paths import (
    Column,
    Hop,
    ModelClass,
    Path,
    Trail,
    key_parts,
    locate,
    spellings,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.rows import is_plain

#: Kinds of rights that are remembered, over all exposures.
MOST_REACHES = 1000


Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Grants:
    """The answers of one caller's rights, as far as an exposure's paths ask for them."""

    forbidden: frozenset[ModelClass]
    narrowed: frozenset[ModelClass]
    shown: Mapping[ModelClass, frozenset[str] | None]
    labels: Mapping[ModelClass, tuple[Path, ...]]
    #: Paths that staff took out of the records of a model.
    withheld: Mapping[ModelClass, frozenset[Names]]


class Reach:
    """The declared paths that callers with equal rights may use: built once, then looked up."""

    def __init__(self, declaration: Declaration, grants: Grants) -> None:
        self.exposure = declaration.exposure
        self.model = declaration.exposure.model
        self.keys = key_parts(self.model)
        self.narrowed = grants.narrowed
        self._grants = grants
        self.paths = {
            use: tuple(path for path in paths if self._is_usable(path, use=use))
            for use, paths in declaration.paths.items()
        }
        self.tables = {use: spelled(paths) for use, paths in self.paths.items()}
        self.search = tuple(
            (path, PREFIXES.get(declaration.search_prefixes[path.text][0], "icontains"))
            for path in self.paths[SEARCH]
        )
        self.labels = self._labels(self.paths[RETURN])
        self.group_labels = self._labels(self.paths[GROUP])
        shown = () if self.exposure.aggregates_only else self.paths[RETURN]
        #: What records show to these callers, by the names of the fields on the way.
        self.shown = frozenset(path.names for path in shown)
        #: The primary key breaks ties anyway, so that everybody may order by it.
        self.key_paths = key_paths(self.model)
        self.orders = {**spelled(self.key_paths), **self.tables[ORDER]}
        self.default_order = self._default_order()
        #: Lookups of callers that were understood: as many as there are paths and operators.
        self.lookups: dict[str, Any] = {}
        #: How records of the usual shapes are made: filled by `serializers`.
        self.shapes: dict[Any, Any] = {}
        #: SQL by the shape of a call: filled by `find`.
        self.plans: dict[Any, Any] = {}

    def _is_usable(self, path: Path, *, use: str) -> bool:
        if any(model in self._grants.forbidden for hop in path.hops for model in hop.models):
            return False
        for at, (model, name) in enumerate(path.steps):
            names = self._grants.shown.get(model)
            if names is not None and name not in names:
                return False
            # Of the model itself the exposure says what is left, use by use.
            if at and begins_with(path.names[at:], self._grants.withheld.get(model, ())):
                return False
        # A join would show, or sort by, rows that the caller cannot see.
        return use in (FILTER, SEARCH) or self.hard_hop(path) is None

    def hard_hop(self, path: Path, start: int = 0) -> int | None:
        """The first hop that needs a subquery over the rows that the caller may see."""
        for at in range(start, len(path.hops)):
            hop = path.hops[at]
            if hop.is_many or hop.model in self.narrowed:
                return at
        return None

    def _labels(self, paths: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
        return {path: found for path in paths if (found := self._label(path))}

    def _label(self, path: Path) -> tuple[Path, ...]:
        """The columns that a foreign key shows beside its value, if this caller may see them."""
        target = label_target(path)
        if target is None or target in self._grants.forbidden:
            return ()
        columns = self._grants.labels.get(target, ())
        shown = self._grants.shown.get(target)
        if shown is not None and any(column.field.name not in shown for column in columns):
            return ()
        hops = (*path.hops, Hop(field=path.field, model=target))
        return tuple(
            Path(
                text=f"{path.text}__{column.text}", model=self.model, hops=hops, field=column.field
            )
            for column in columns
        )

    def _default_order(self) -> tuple[str, ...]:
        """The site's order if this caller may use every part of it."""
        names = tuple(self.exposure.ordering)
        return names if all(name.removeprefix("-") in self.orders for name in names) else ()

    def names(self, use: str) -> list[str]:
        """What a caller is told: each path once, as the site spells it."""
        return [path.text for path in self.paths[use]]

    @cached_property
    def policy(self) -> Policy:
        keys = {locate(self.model, part.attname) for part in self.keys}
        order = self._columns(self.paths[ORDER]) | keys
        labels = {
            locate(self.model, one.lookup) for found in self.labels.values() for one in found
        }
        columns = {
            RETURN: self._columns(self.paths[RETURN]) | labels | order,
            ORDER: order,
            FILTER: self._columns((*self.paths[FILTER], *self.paths[SEARCH])) | order,
        }
        return self._policy(columns)

    @cached_property
    def group_policy(self) -> Policy:
        """For queries that show groups and metrics in place of records."""
        groups, metrics = self._columns(self.paths[GROUP]), self._columns(self.paths[METRIC])
        shown = [path for path in self.paths[METRIC] if path.names in self.shown]
        return self._policy(
            {
                GROUP: groups,
                METRIC: metrics,
                EXTREME: self._columns(shown),
                COUNTED: groups | metrics,
                FILTER: set(self.policy.columns[FILTER]),
            }
        )

    def _policy(self, columns: Mapping[str, set[Column]]) -> Policy:
        trails = [trail for found in columns.values() for trail, _ in found]
        return Policy(
            table=table_of(self.model),
            columns={use: frozenset(found) for use, found in columns.items()},
            joins=prefixes(trails),
        )

    def _columns(self, paths: Iterable[Path]) -> set[Column]:
        return {locate(self.model, self.lookup(path)) for path in paths}

    def lookup(self, path: Path, start: int = 0) -> str:
        """The column that a condition on the path compares here, before any subquery."""
        hard = self.hard_hop(path, start)
        return path.lookup_from(start) if hard is None else path.lookup_of_link(start, hard)

    @cached_property
    def digest(self) -> str:
        """Changes whenever these callers can reach something else: old cursors end with it."""
        # Cursors are of records, whatever groups there are.
        tables = {
            use: sorted(table) for use, table in self.tables.items() if use not in (GROUP, METRIC)
        }
        narrowed = sorted(model._meta.label for model in self.narrowed)
        return hashlib.sha256(repr((tables, narrowed)).encode()).hexdigest()[:16]


def spelled(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Every spelling of every path; what the site wrote itself comes first."""
    table = {path.text: path for path in paths}
    for path in paths:
        for name in spellings(path):
            table.setdefault(name, path)
    return table


def key_paths(model: ModelClass) -> tuple[Path, ...]:
    return tuple(
        Path(text=part.name, model=model, hops=(), field=part) for part in key_parts(model)
    )


def table_of(model: ModelClass) -> str:
    """Proxies share the table of what they stand for."""
    return str(model._meta.concrete_model._meta.db_table)  # type: ignore[union-attr]


def prefixes(trails: Iterable[Trail]) -> frozenset[Trail]:
    return frozenset(trail[: size + 1] for trail in trails for size in range(len(trail)))


_lock = threading.Lock()
_reaches: OrderedDict[Key, Reach] = OrderedDict()


def reach_of(rights: Rights, exposure: ModelExposure) -> Reach:
    """What this caller can reach. Raises NotFound where the caller has no such model."""
    found = rights.principal.kept.get(exposure)
    if found is None:
        found = find_reach(rights, exposure)
        models = (exposure.model, *declaration_of(exposure).passed)
        if all(rights.is_constant(model) for model in models):
            rights.principal.kept[exposure] = found
    rights.rows(exposure.model)  # so that a model that is gone is gone here, too
    return cast("Reach", found)


def find_reach(rights: Rights, exposure: ModelExposure) -> Reach:
    declaration = declaration_of(exposure)
    home = home_of(rights, exposure.model)
    forbidden = frozenset(
        model
        for model in declaration.passed
        if not is_open(rights, model, home=home)
        or (model is not exposure.model and hides_records(rights, model))
    )
    narrowed = frozenset(
        model
        for model in declaration.passed
        if model not in forbidden and not is_plain(rights.rows(model).query)
    )
    models = (exposure.model, *(one for one in declaration.passed if one not in forbidden))
    shown = tuple(rights.shown(model) for model in models)
    withheld = {one: names for one in models if (names := rights.exposed.withheld.get(one))}
    key = (exposure, forbidden, narrowed, shown, tuple(withheld.items()))
    with _lock:
        found = _reaches.get(key)
        if found is not None:
            _reaches.move_to_end(key)
            return found
    exposures = rights.exposed.exposures
    labels = {
        model: declaration_of(exposures[model]).labels for model in models if model in exposures
    }
    grants = Grants(
        forbidden=forbidden,
        narrowed=narrowed,
        shown=dict(zip(models, shown, strict=True)),
        labels=labels,
        withheld=withheld,
    )
    found = Reach(declaration, grants)
    with _lock:
        _reaches[key] = found
        while len(_reaches) > MOST_REACHES:
            _reaches.popitem(last=False)
    return found


def is_open(rights: Rights, model: ModelClass, *, home: str) -> bool:
    """Whether a path may pass a model. Rows that are judged in Python cannot be joined."""
    return (
        rights.may_view(model)
        and not rights.judges_objects(model)
        and home_of(rights, model) == home
    )


def hides_records(rights: Rights, model: ModelClass) -> bool:
    """Whether a model has numbers about groups only. A path through it would show its records."""
    exposure = rights.exposed.exposures.get(model)
    return exposure is not None and exposure.aggregates_only


def home_of(rights: Rights, model: ModelClass) -> str:
    """The database that a model lives in. A router may name another replica for each read."""
    rows: Any = rights.rows(model)
    return str(rows._db or router.db_for_write(model))

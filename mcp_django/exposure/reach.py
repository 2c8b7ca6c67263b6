"""What an exposure declares, and what of it callers with equal rights can reach."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from django.core.exceptions import ImproperlyConfigured

from mcp_django.exposure.guard import FILTER, ORDER, RETURN, Policy
from mcp_django.exposure.operators import kind_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import (
    Column,
    Hop,
    ModelClass,
    Path,
    Trail,
    key_parts,
    locate,
    resolve,
    spellings,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.rows import is_plain

SEARCH = "search"
#: Prefixes of ModelAdmin.search_fields. "@" was MySQL's full text and means the default since.
PREFIXES = {"^": "istartswith", "=": "iexact", "@": "icontains"}
#: Kinds of rights that are remembered, over all exposures.
MOST_REACHES = 1000


class Declaration:
    """The paths of an exposure by use, resolved. `problems` says what could not be."""

    def __init__(self, exposure: ModelExposure) -> None:
        self.exposure = exposure
        self.problems: list[str] = []
        self._hidden = [path.names for path in self._resolve("exclude", exposure.exclude)]
        shown = self._open("fields", exposure.fields)
        for path in shown:
            if path.is_many:
                self._wrong("fields", path.text, "has many values for one record; filter by it")
        search = [text.lstrip("".join(PREFIXES)) for text in exposure.search_fields]
        self.search_prefixes = dict(zip(search, exposure.search_fields, strict=True))
        self.paths: dict[str, tuple[Path, ...]] = {
            RETURN: tuple(path for path in shown if not path.is_many),
            FILTER: shown,
            SEARCH: self._open("search_fields", search),
        }
        if exposure.filter_fields is not None:
            self.paths[FILTER] = self._open("filter_fields", exposure.filter_fields)
        self.paths[ORDER] = self._orders()
        self.labels = self._open("label_fields", exposure.label_fields)
        for path in self.labels:
            if path.hops:
                self._wrong("label_fields", path.text, "is not a column of the model itself")
        for path in self.paths[SEARCH]:
            if path.field is None:
                self._wrong("search_fields", path.text, "ends at a relation; name a column of it")

    def _resolve(self, what: str, names: Iterable[str]) -> Iterator[Path]:
        for name in names:
            try:
                yield resolve(self.exposure.model, name)
            except ImproperlyConfigured as error:
                self.problems.append(f"{self.exposure.label}: {what}: {error}")

    def _open(self, what: str, names: Iterable[str]) -> tuple[Path, ...]:
        """Those that `exclude` leaves: what it names is gone, and all that is behind it."""
        found = self._resolve(what, names)
        return tuple(
            path
            for path in found
            if not any(path.names[: len(hidden)] == hidden for hidden in self._hidden)
        )

    def _orders(self) -> tuple[Path, ...]:
        given = self.exposure.order_fields
        if given is None:
            return tuple(path for path in self.paths[RETURN] if kind_of(path.field) != "other")
        known = {path.names for use in (RETURN, FILTER) for path in self.paths[use]}
        paths = self._open("order_fields", given)
        for path in paths:
            if path.is_many or kind_of(path.field) == "other":
                self._wrong("order_fields", path.text, "has no order")
            elif path.names not in known:
                self._wrong(
                    "order_fields",
                    path.text,
                    "is neither in fields nor in filter_fields, and pages in its order show it",
                )
        return paths

    def _wrong(self, what: str, text: str, sentence: str) -> None:
        self.problems.append(f"{self.exposure.label}: {what}: {text} {sentence}.")

    @cached_property
    def everything(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(path for paths in self.paths.values() for path in paths))

    @cached_property
    def passed(self) -> tuple[ModelClass, ...]:
        """The other models that a path passes, and those that a record may name by a label."""
        hops = [model for path in self.everything for hop in path.hops for model in hop.models]
        labelled = [target for path in self.paths[RETURN] if (target := label_target(path))]
        return tuple(dict.fromkeys([*hops, *labelled]))


def label_target(path: Path) -> ModelClass | None:
    return path.field.related_model if path.field is not None and path.field.is_relation else None


def problems(exposure: ModelExposure) -> list[str]:
    """Every declared path that cannot be used, in words."""
    return Declaration(exposure).problems


Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Grants:
    """The answers of one caller's rights, as far as an exposure's paths ask for them."""

    forbidden: frozenset[ModelClass]
    narrowed: frozenset[ModelClass]
    shown: Mapping[ModelClass, frozenset[str] | None]
    labels: Mapping[ModelClass, tuple[Path, ...]]


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
        self.labels = {path: found for path in self.paths[RETURN] if (found := self._label(path))}
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
        for model, name in path.steps:
            names = self._grants.shown.get(model)
            if names is not None and name not in names:
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
        tables = {use: sorted(table) for use, table in self.tables.items()}
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
_declarations: WeakKeyDictionary[ModelExposure, Declaration] = WeakKeyDictionary()
_reaches: OrderedDict[Key, Reach] = OrderedDict()


def declaration_of(exposure: ModelExposure) -> Declaration:
    """Raises ImproperlyConfigured with every path that cannot be used."""
    with _lock:
        found = _declarations.get(exposure)
    if found is None:
        found = Declaration(exposure)
        if found.problems:
            raise ImproperlyConfigured(" ".join(found.problems))
        with _lock:
            _declarations[exposure] = found
    return found


def reach_of(rights: Rights, exposure: ModelExposure) -> Reach:
    """What this caller can reach. Raises NotFound where the caller has no such model."""
    declaration = declaration_of(exposure)
    using = rights.rows(exposure.model).db
    forbidden = frozenset(
        model for model in declaration.passed if not is_open(rights, model, using=using)
    )
    narrowed = frozenset(
        model
        for model in declaration.passed
        if model not in forbidden and not is_plain(rights.rows(model).query)
    )
    models = (exposure.model, *(one for one in declaration.passed if one not in forbidden))
    shown = tuple(rights.shown(model) for model in models)
    key = (exposure, forbidden, narrowed, shown)
    with _lock:
        found = _reaches.get(key)
        if found is not None:
            _reaches.move_to_end(key)
            return found
    exposures = rights.registry.exposures
    labels = {
        model: declaration_of(exposures[model]).labels for model in models if model in exposures
    }
    grants = Grants(
        forbidden=forbidden,
        narrowed=narrowed,
        shown=dict(zip(models, shown, strict=True)),
        labels=labels,
    )
    found = Reach(declaration, grants)
    with _lock:
        _reaches[key] = found
        while len(_reaches) > MOST_REACHES:
            _reaches.popitem(last=False)
    return found


def is_open(rights: Rights, model: ModelClass, *, using: str) -> bool:
    """Whether a path may pass a model. Rows that are judged in Python cannot be joined."""
    return (
        rights.may_view(model)
        and not rights.judges_objects(model)
        and rights.rows(model).db == using
    )

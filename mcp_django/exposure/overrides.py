"""Code is the ceiling, and a row narrows it: the exposures as they are in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model

from mcp_django.exposure.decisions import Decisions, ModelDecision, decisions
from mcp_django.exposure.declarations import Declaration
from mcp_django.exposure.guard import FILTER, GROUP, ORDER
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import resolve
from mcp_django.levels import Level
from mcp_django.protocol.results import ToolDefinition

if TYPE_CHECKING:
    from mcp_django.exposure.registry import Registry

#: Names of fields, from the model on.
Names: TypeAlias = tuple[str, ...]
Kept: TypeAlias = "tuple[Mapping[type[Model], ModelExposure], Exposed]"
#: Uses of paths that a row can narrow by a list of its own.
LISTS = {"filter_fields": FILTER, "order_fields": ORDER, "group_fields": GROUP}


class Exposed:
    """What one server exposes, for whoever asks: code, and what staff took away."""

    def __init__(
        self,
        candidates: Mapping[type[Model], ModelExposure],
        decisions: Decisions,
        *,
        before: Exposed | None = None,
    ) -> None:
        self.decisions = decisions
        #: Every exposure in force, by its model, ordered by label.
        self.exposures: dict[type[Model], ModelExposure] = {}
        #: Models that staff closed: they exist for nobody, and no path of another passes them.
        self.closed: set[type[Model]] = set()
        #: Models that exist for members of some groups only.
        self.groups: dict[type[Model], frozenset[object]] = {}
        #: Paths that staff took out of records, by model: no path through it passes them either.
        self.withheld: dict[type[Model], frozenset[Names]] = {}
        #: Definitions of tools in the words of staff, by name, after those they were made from.
        self.redefined: dict[str, tuple[ToolDefinition, ToolDefinition]] = {}
        self._made: dict[tuple[ModelExposure, ModelDecision], ModelExposure] = {}
        for model, exposure in candidates.items():
            self._add(model, exposure, before)
        self.by_label = {one.label: one for one in self.exposures.values()}

    def _add(self, model: type[Model], code: ModelExposure, before: Exposed | None) -> None:
        row = self.decisions.models.get(code.label)
        if row is None:
            if code.standard_level > Level.HIDDEN:
                self.exposures[model] = code
            return
        # The same object as before while the row is the same: what is known of it goes on.
        known = None if before is None else before._made.get((code, row))
        exposure = self._made[code, row] = known or narrowed(code, row)
        if exposure.level == Level.HIDDEN:
            self.closed.add(model)
        else:
            self.exposures[model] = exposure
            self.withheld[model] = withheld(code, exposure)
        if row.groups:
            self.groups[model] = row.groups


def narrowed(code: ModelExposure, row: ModelDecision) -> ModelExposure:
    """The exposure of code as a row leaves it. Never wider in anything."""
    found = type(code)(code.model)
    found.is_narrowed = True
    found.level = level_of(code, row)
    found.aggregates_only = found.level < Level.READ
    if row.fields is not None:
        found.fields = listed_of(code.fields, row.fields)
    gone = withheld(code, found)
    for name in LISTS:
        setattr(found, name, narrowed_list(code, row, name, gone=gone))
    left = partial(is_left, code.model, gone=gone)
    found.search_fields = [path for path in code.search_fields if left(path.lstrip("^=@"))]
    found.label_fields = [path for path in code.label_fields if left(path)]
    found.ordering = [path for path in code.ordering if left(path.removeprefix("-"))]
    if code.metric_fields is not None:
        found.metric_fields = [path for path in code.metric_fields if left(path)]
    if code.modified_field and not left(code.modified_field):
        found.modified_field = ""
    if row.notes:
        found.description = f"{code.description} {row.notes}".strip()
    return found


def level_of(code: ModelExposure, row: ModelDecision) -> Level:
    if row.level is None:
        return code.standard_level
    return min(row.level, code.highest_level)


def narrowed_list(
    code: ModelExposure, row: ModelDecision, name: str, *, gone: frozenset[Names]
) -> list[str] | None:
    """What code allows of one use, as far as the row does.

    A name taken out of records leaves the other uses as well, unless the row lists it there:
    filters would be an oracle.
    """
    allowed: Iterable[str] | None = getattr(code, name)
    listed: tuple[str, ...] | None = getattr(row, name)
    if listed is not None:
        return listed_of([path.text for path in Declaration(code).paths[LISTS[name]]], listed)
    if allowed is None:
        return None  # those of `fields`, which are narrowed
    return [path for path in allowed if is_left(code.model, path, gone=gone)]


def listed_of(allowed: Iterable[str], listed: Iterable[str]) -> list[str]:
    wanted = set(listed)
    return [path for path in allowed if path in wanted]


def withheld(code: ModelExposure, found: ModelExposure) -> frozenset[Names]:
    """The paths that records no longer show."""
    left = {names_of(code.model, path) for path in found.fields}
    return frozenset(names_of(code.model, path) for path in code.fields) - left


def is_left(model: type[Model], path: str, *, gone: frozenset[Names]) -> bool:
    """Whether neither the path nor anything on the way to it was taken away."""
    return not begins_with(names_of(model, path), gone)


def begins_with(names: Names, gone: Iterable[Names]) -> bool:
    return any(names[: len(one)] == one for one in gone)


def names_of(model: type[Model], path: str) -> Names:
    """The names of the fields on the way, however the path is spelled."""
    try:
        return resolve(model, path).names
    except ImproperlyConfigured:  # a check says so; it cannot be used anyway
        return tuple(path.split("__"))


def exposed_by(registry: Registry, server: str) -> Exposed:
    """The exposures in force, kept with the registry until code or a row changes."""
    candidates, decided = registry.candidates, decisions(server)
    kept: Kept | None = registry.in_force
    if kept is None or kept[0] is not candidates or kept[1].decisions is not decided:
        before = kept[1] if kept is not None and kept[0] is candidates else None
        # Two threads may do this at once: then one of them has worked for nothing.
        kept = registry.in_force = candidates, Exposed(candidates, decided, before=before)
    return kept[1]

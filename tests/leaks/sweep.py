"""Ask everything as one caller, over two databases that differ only in what it may not learn."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import count, product
from random import Random
from typing import Any
from unittest.mock import patch

from django.db import connection
from django.db.models import FileField

from mcp_django.exposure.fields import operators_of
from mcp_django.stores.cache_version import generations
from tests.leaks.canaries import Canaries
from tests.leaks.hearing import Hearing, Report, listening
from tests.leaks.knowledge import ARGUMENT, Knowledge, made_up, twin_of
from tests.leaks.paths import THOROUGH, Route, lookups_of, routes
from tests.leaks.places import CONDITIONS, NAMES, OVERVIEWS, TOOLS, Answer, Asker
from tests.leaks.rows import MODELS, World
from tests.leaks.site import (
    ALL,
    NOTHING,
    UNEXPOSED,
    VIEWERS,
    Viewer,
    make_registry,
    narrow_by_rows,
    rights_of,
)
from tests.leaks.values import values_for, word

ROOTS = (*MODELS, *UNEXPOSED)
#: Of the paths of a model that a caller cannot see, this part is asked for.
FAINT = 40
#: Of the words that a search is tried with, keys are completed from this part.
RARE = 6
#: Of what is refused, this part is compared with what was made up.
TWINS = 5
#: Of the questions about paths through relations, a run draws this part by its seed.
DRAWN = 0.2


class Sweep:
    """All of it for one caller. With fewer `roots` it is over sooner: for a test that plants a
    leak and looks for it. A ruled one is of a site that lists hardly any path. Of what passes
    relations it asks the part that its seed draws, and each kind of question at least once."""

    def __init__(
        self,
        viewer: Viewer,
        seed: int,
        *,
        roots: Sequence[Any] = ROOTS,
        is_ruled: bool = False,
        drawn: float = 1,
    ) -> None:
        self.viewer = viewer
        self.index = list(VIEWERS).index(viewer.name)
        self.roots = roots
        self.is_ruled = is_ruled
        self.drawn = drawn
        self.random = Random(seed)
        #: Classes of fields with lookups, and lookups with places, that were tried.
        self.kinds: set[tuple[Any, str]] = set()
        self.registry = make_registry(is_wide=viewer.is_by_rows, is_ruled=is_ruled)
        self.hearing = Hearing(Canaries(seed))
        self.report: Report = self.hearing.report

    def run(self, *, is_exhaustive: bool = True) -> Report:
        hearing = self.hearing
        with (
            listening() as logged,
            connection.execute_wrapper(hearing.count),
            patch("mcp_django.exceptions.get_close_matches", self._nearest),
        ):
            self.world = World(hearing.canaries)
            if self.viewer.is_by_rows:
                narrow_by_rows(is_ruled=self.is_ruled)
            self.world.hide(self.viewer, 1)
            self._meet()
            for root in self.roots:
                self._tour(root)
                if is_exhaustive:
                    self._bulk(root)
            self.report.used = hearing.who.used
            self.world.hide(self.viewer, 2)
            self._meet()
            hearing.ask_again()
        hearing.look_for_canaries(logged)
        # The rows go without a signal.
        generations.forget()
        return self.report

    def _nearest(self, *args: Any, **options: Any) -> list[str]:
        return difflib.get_close_matches(*args, **options) if self.hearing.is_near else []

    def _meet(self) -> None:
        """A caller that nothing is remembered about, and what it is told about every model."""
        rights = rights_of(self.viewer, self.world, self.registry)
        who = self.hearing.who = Asker(rights, self.hearing.cursors)
        # Of every model, whatever this asks about: paths pass the others.
        known = {root: Knowledge(root, who) for root in ROOTS}
        for one in known.values():
            one.others = {root._meta.label_lower: other for root, other in known.items()}
        self.knowledge = {root: known[root] for root in self.roots}
        who.groups_of = {
            root._meta.label_lower: list(one.told["group_by"])
            for root, one in self.knowledge.items()
        }
        for root, knowledge in self.knowledge.items():
            for name in knowledge.hidden():
                self.report.leak("undescribed", f"{root.__name__}: {name} is told")
            self.report.told.update((root, name) for name in knowledge.kinds)

    # What the caller was told of.

    def _tour(self, root: Any) -> None:
        """Everything that works, everywhere; all records, shown or not; and every word."""
        label, knowledge, ask = root._meta.label_lower, self.knowledge[root], self.hearing.ask
        self.hearing.is_near = True
        for place in OVERVIEWS:
            ask(place, label)
        is_seen = root not in UNEXPOSED and self.viewer.sees(root) != NOTHING
        if knowledge.is_there != is_seen:
            self.report.leak("undescribed", f"{label} is there: {knowledge.is_there}")
        self._records(root)
        if not knowledge.is_there:
            return
        for at, text in enumerate(dict.fromkeys(map(word, self.world.aims.values()))):
            if self._is_mine(at):
                ask("words", label, text)
            if at % RARE == len(label) % RARE:
                ask("keys", label, text)
                ask("aggregate words", label, text)
        computed = knowledge.computed
        names = dict.fromkeys([*knowledge.returned, *knowledge.told["order_by"], *computed])
        for at, (name, place) in enumerate(product(names, NAMES)):
            if not self._is_mine(at + at // len(NAMES)):
                continue
            found = ask(place, label, name, self._key(root))
            is_shown = name in knowledge.returned or name in computed
            if place == "fields" and is_shown and found.is_refusal:
                self.report.leak("undescribed", f"{label}.{name} is told: {found.said!r}")
        self._conditions(root)
        self._counts(root)

    def _conditions(self, root: Any) -> None:
        label, knowledge = root._meta.label_lower, self.knowledge[root]
        table = {route.text: route for route in routes(root)}
        turns, places = count(), list(CONDITIONS)
        for name, kind in knowledge.kinds.items():
            for lookup in operators_of(kind):
                for value in self._values(table[name], lookup):
                    if not self._is_mine(turn := next(turns)):
                        continue
                    place = places[turn // 2 % 4]
                    found = self.hearing.ask(place, label, f"{name}__{lookup}", value)
                    # A value that does not fit is refused in the name of the lookup.
                    said = ARGUMENT.sub("", found.said.decode(), count=1)
                    if found.is_refusal and not said.startswith(f"{name}__{lookup}"):
                        self.report.leak("undescribed", f"{label}.{name} is told: {found.said!r}")
            for place in (*TOOLS, *places[4:]):
                values = self._values(table[name], "exact")
                self.hearing.ask(place, label, name, values[next(turns) % len(values)])
        for name in (*knowledge.told["group_by"], *knowledge.told["metrics"]):
            for place in ("group_by", "metrics", "counts", "extremes"):
                self.hearing.ask(place, label, name, 1)

    def _counts(self, root: Any) -> None:
        label = root._meta.label_lower
        for name in self.knowledge[root].counted:
            found = self.hearing.ask("counts", label, name, 1)
            if found.is_refusal:
                self.report.leak("undescribed", f"{label}.{name} is told: {found.said!r}")

    def _is_mine(self, turn: int) -> bool:
        """Those who see a part of the rows ask everything; the others leave half to each other."""
        return self.viewer.is_narrow or turn % 2 == self.index % 2

    def _records(self, root: Any) -> None:
        """Each by its key. What the caller does not see answers as what was never there."""
        label, is_there = root._meta.label_lower, self.knowledge[root].is_there
        missing = bare(self.hearing.answer("record", label, "gone"), "gone")
        is_open = self.viewer.sees(root) == ALL
        for key in self.world.open[root] + self.world.closed[root]:
            is_seen = is_there and (is_open or key in self.world.open[root])
            for place in ("record", "object", "get_record"):
                found = self.hearing.ask(place, label, key)
                if found.is_refusal is is_seen:
                    self.report.leak("undescribed", f"{label} {key!r}: {found.said!r}")
                if found.is_refusal and bare(found, key) != missing:
                    self.report.leak("twin", f"{label} {key!r}: {found.said!r}, {missing}")
            # Of what is seen there is a history only where an admin shows it.
            found = self.hearing.ask("history", label, key)
            if not is_seen and bare(found, key) != missing:
                self.report.leak("twin", f"{label} {key!r}: {found.said!r}, {missing}")
            for field in root._meta.concrete_fields:
                if isinstance(field, FileField):
                    self.hearing.ask("file", label, field.name, key)

    # What it was not.

    def _bulk(self, root: Any) -> None:
        """Every path, known or not, with every lookup that Django has for it. Those who see the
        model take turns; the others ask now and then."""
        # What rows hide is asked for besides: the others have the same turns without it.
        able = [
            one
            for one in VIEWERS.values()
            if one.sees(root) != NOTHING and (not one.is_by_rows or one is self.viewer)
        ]
        is_able = root not in UNEXPOSED and self.viewer in able
        share, of = (able.index(self.viewer), len(able)) if is_able else (0, FAINT)
        turns, conditions = count(), list(CONDITIONS)
        for at, route in enumerate(routes(root)):
            self.hearing.is_near = not route.relations
            for lookup in chosen(route, at):
                turn = next(turns)
                place = conditions[turn // of % len(conditions)]
                if turn % of == share and self._is_drawn(route, lookup, place):
                    self._condition(route, lookup, place, turn=turn)
            for turn, place in enumerate(places_for(route, at), start=at):
                if turn % of == share and self._is_drawn(route, "", place):
                    self._name(route, place)

    def _is_drawn(self, route: Route, lookup: str, place: str) -> bool:
        kinds = {(type(route.field), lookup), (lookup, place)}
        is_new = not kinds <= self.kinds
        self.kinds |= kinds
        return is_new or not route.relations or self.random.random() < self.drawn

    def _condition(self, route: Route, lookup: str, place: str, *, turn: int) -> None:
        values = self._values(route, lookup)
        value = values[turn % len(values)]
        self.report.lookups.add((type(route.field), lookup, place))
        is_compared = turn // len(VIEWERS) % TWINS == 0
        self._try(route, lookup, place, value, is_compared=is_compared)

    def _name(self, route: Route, place: str) -> None:
        self._try(route, "", place, self._key(route.root), is_compared=True)

    def _try(
        self, route: Route, lookup: str, place: str, given: Any, *, is_compared: bool
    ) -> None:
        label, knowledge = route.root._meta.label_lower, self.knowledge[route.root]
        self.report.models.update(route.models)
        self.report.paths.add(f"{label}.{route.text}")
        end = f"__{lookup}" if lookup else ""
        typed = route.text + end
        found = self.hearing.ask(place, label, typed, given)
        if place == "search" or (found.is_refusal and not is_compared):
            return
        is_told = knowledge.is_there and knowledge.explains(place, typed)
        if not found.is_refusal and not is_told:
            self.report.leak("undescribed", f"{place}: {typed} {given!r}: {found.said!r}")
        if not found.is_refusal or is_told:
            return
        # What many values cannot be used for is said of paths that the caller may filter by.
        if knowledge.is_there and any(
            knowledge.explains(one, route.text) for one in (place, "filters")
        ):
            if knowledge.is_offered(place, route.text, lookup):
                return
            twin = f"{route.text}__{made_up(lookup)}"
        else:
            twin = twin_of(route, knowledge) + end
        other = self.hearing.answer(place, label, twin, given)
        if knowledge.bare(found, typed) != knowledge.bare(other, twin):
            self.report.leak("twin", f"{place} {typed}: {found.said!r}; {twin}: {other.said!r}")

    def _key(self, root: Any) -> Any:
        return next(iter(self.world.open[root]), 1)

    def _values(self, route: Route, lookup: str) -> list[Any]:
        field, aim, keys = route.field, None, []
        if field is not None and field.is_relation:
            model = field.related_model
            keys = [*self.world.closed.get(model, [])[:1], *self.world.open.get(model, [])[:1]]
        elif field is not None:
            aim = self.world.aims.get((field.model, field.attname))
        keys = [key for key in keys if isinstance(key, int | str)]
        return values_for(field, lookup, aim=aim, keys=keys)


def chosen(route: Route, turn: int) -> list[str]:
    """All that Django has for the path; behind the last relations fewer, in turns."""
    found = lookups_of(route.field)
    if route.relations > THOROUGH:
        return [found[turn % len(found)]]
    simple = [one for one in found if "__" not in one]
    double = [one for one in found if "__" in one]
    if route.relations == THOROUGH and double:
        double = [double[turn % len(double)]]
    return [*simple, *double]


def places_for(route: Route, turn: int) -> list[str]:
    """Where the path is asked for by itself: everywhere, and behind many relations in turns."""
    # A search takes words, and there are enough of them.
    found = [one for one in NAMES if one != "search" or not route.relations]
    every = (1, 1, 2)[route.relations] if route.relations <= THOROUGH else len(found)
    return found[turn % every :: every]


def bare(found: Answer, key: Any) -> str:
    """A refusal without the key that it repeats."""
    said = found.said.decode()
    parts = [str(one) for one in key] if isinstance(key, tuple) else str(key)
    for shown in (parts, list(key) if isinstance(key, tuple) else key, key):
        said = said.replace(ascii(shown)[:60], "KEY")
    return said

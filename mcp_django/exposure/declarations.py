"""What an exposure declares: its paths by use, and what is wrong with them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from functools import cached_property
from weakref import WeakKeyDictionary

from django.core.exceptions import ImproperlyConfigured
from django.db.models import TextField

from mcp_django.exposure.guard import FILTER, GROUP, METRIC, ORDER, RETURN
from mcp_django.exposure.operators import kind_of, measures_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import ModelClass, Path, resolve

SEARCH = "search"
#: Prefixes of ModelAdmin.search_fields. "@" is PostgreSQL's full text, where it is installed.
PREFIXES = {"^": "istartswith", "=": "iexact", "@": "search"}
#: Characters of a text that is still a name of something.
LONGEST_NAME = 255


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
        self.paths[GROUP] = self._groups()
        self.paths[METRIC] = self._metrics()
        if type(exposure.smallest_group) is not int or exposure.smallest_group < 0:
            given = ascii(exposure.smallest_group)[:60]
            self._wrong("smallest_group", given, "is not a number of records")
        self._check_modified()
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
        return tuple(
            path for path in self._open("order_fields", given) if self._check_order(path, known)
        )

    def _check_order(self, path: Path, known: set[tuple[str, ...]]) -> bool:
        if path.is_many or kind_of(path.field) == "other":
            sentence = "has no order"
        elif path.names not in known:
            sentence = "is neither in fields nor in filter_fields, and pages in its order show it"
        else:
            return True
        self._wrong("order_fields", path.text, sentence)
        return False

    def _check_modified(self) -> None:
        name = self.exposure.modified_field
        kinds = {path.text: kind_of(path.field) for path in self.paths[RETURN]}
        if name and kinds.get(name) not in ("datetime", "date"):
            self._wrong("modified_field", name, "is no date or time that fields lists")

    def _groups(self) -> tuple[Path, ...]:
        given = self.exposure.group_fields
        if given is None:
            return tuple(path for path in self.paths[RETURN] if makes_groups(path))
        paths = self._open("group_fields", given)
        return tuple(path for path in paths if self._check_single("group_fields", path))

    def _metrics(self) -> tuple[Path, ...]:
        given = self.exposure.metric_fields
        if given is None:
            return tuple(path for path in self.paths[RETURN] if is_measure(path))
        paths = self._open("metric_fields", given)
        shown = {path.names for path in self.paths[RETURN] if not self.exposure.aggregates_only}
        return tuple(path for path in paths if self._check_metric(path, shown))

    def _check_metric(self, path: Path, shown: set[tuple[str, ...]]) -> bool:
        if not self._check_single("metric_fields", path):
            return False
        if path.names in shown or "sum" in measures_of(path.field):
            return True
        self._wrong("metric_fields", path.text, "is not shown by records and has no sum")
        return False

    def _check_single(self, what: str, path: Path) -> bool:
        """Whether a record has one value there, and one that databases compare."""
        if path.is_many:
            model = next(hop.model for hop in path.hops if hop.is_many)._meta.label
            self._wrong(what, path.text, f"has many values for one record; expose {model} for it")
        elif kind_of(path.field) == "other":
            self._wrong(what, path.text, "cannot be compared")
        else:
            return True
        return False

    def _wrong(self, what: str, text: str, sentence: str) -> None:
        self.problems.append(f"{self.exposure.label}: {what}: {text} {sentence}.")

    @cached_property
    def everything(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(path for paths in self.paths.values() for path in paths))

    @cached_property
    def passed(self) -> tuple[ModelClass, ...]:
        """The other models that a path passes, and those that a record may name by a label."""
        hops = [model for path in self.everything for hop in path.hops for model in hop.models]
        shown = (*self.paths[RETURN], *self.paths[GROUP])
        labelled = [target for path in shown if (target := label_target(path))]
        return tuple(dict.fromkeys([*hops, *labelled]))


def makes_groups(path: Path) -> bool:
    """Whether records may share the value: no key, no long text, nothing beyond comparison."""
    field, kind = path.field, kind_of(path.field)
    longest = getattr(field, "max_length", None) or LONGEST_NAME + 1
    is_long = kind == "text" and (isinstance(field, TextField) or longest > LONGEST_NAME)
    # What is unique among customers is shared by all orders of one.
    is_unique = field.unique and not any(hop.field.many_to_one for hop in path.hops)
    return kind != "other" and not is_long and not is_unique


def is_measure(path: Path) -> bool:
    """Whether it is an amount or a time. A text has an order, but who asks for its largest?"""
    field = path.field
    return bool(measures_of(field)) and kind_of(field) != "text" and not field.primary_key


def label_target(path: Path) -> ModelClass | None:
    return path.field.related_model if path.field is not None and path.field.is_relation else None


def problems(exposure: ModelExposure) -> list[str]:
    """Every declared path that cannot be used, in words."""
    return Declaration(exposure).problems


_lock = threading.Lock()
_declarations: WeakKeyDictionary[ModelExposure, Declaration] = WeakKeyDictionary()


def declaration_of(exposure: ModelExposure) -> Declaration:
    """Raises ImproperlyConfigured with every path that cannot be used.

    Of an exposure that a row narrowed, what lost its ground is left out without a word.
    """
    with _lock:
        found = _declarations.get(exposure)
    if found is None:
        found = Declaration(exposure)
        if found.problems and not exposure.is_narrowed:
            raise ImproperlyConfigured(" ".join(found.problems))
        with _lock:
            _declarations[exposure] = found
    return found

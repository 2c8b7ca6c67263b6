"""Declared paths: what a site lists, resolved once against `_meta`, never a caller's text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeAlias

from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured, ValidationError
from django.db import models
from django.db.models import FileField, ForeignObject, ManyToManyField, TextField
from django.db.models.constants import LOOKUP_SEP
from django.db.models.sql import Query

from mcp_django.exceptions import QueryError
from mcp_django.exposure import fields
from mcp_django.exposure.fields import choices_of, has_equals, kind_of, measures_of, target_of
from mcp_django.exposure.masks import MASKS
from mcp_django.exposure.options import ModelExposure

#: What a path may be used for.
RETURN, FILTER, ORDER = "return", "filter", "order"
GROUP, METRIC = "group", "metric"
#: Related records beside a record, if a call names their relation.
INCLUDE = "include"
#: Related records that a metric counts. No list of an exposure says which, either.
COUNT_RELATED = "count related"

#: One SQL join: the table that is joined and the column pairs that join it.
Edge: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
Trail: TypeAlias = tuple[Edge, ...]
#: A column by the joins that lead to it: `owner.name` and `editor.name` are two.
Column: TypeAlias = tuple[Trail, str]
ModelClass: TypeAlias = type[models.Model]
#: Names of fields, from the model on.
Names: TypeAlias = tuple[str, ...]

#: Relations in one declared path.
MAX_HOPS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Hop:
    """One relation on the way. `field` is what `_meta` has: forward, reverse or generic."""

    field: Any
    model: ModelClass

    @property
    def name(self) -> str:
        return str(self.field.name)

    @property
    def is_many(self) -> bool:
        return bool(self.field.many_to_many or self.field.one_to_many)

    @property
    def is_generic(self) -> bool:
        return isinstance(getattr(self.field, "content_type_field_name", None), str)

    @cached_property
    def ends(self) -> tuple[Any, Any] | None:
        """The two foreign keys of the table in between, ours first."""
        if not self.field.many_to_many:
            return None
        # Since Django 6.0 a ManyToManyField is not "concrete" any more: ask `auto_created`.
        is_forward = not self.field.auto_created
        forward = self.field if is_forward else self.field.field
        opts = forward.remote_field.through._meta
        names = (forward.m2m_field_name(), forward.m2m_reverse_field_name())
        near, far = (opts.get_field(name) for name in (names if is_forward else names[::-1]))
        return near, far

    @cached_property
    def through(self) -> ModelClass | None:
        return None if self.ends is None else self.ends[0].model

    @cached_property
    def models(self) -> tuple[ModelClass, ...]:
        """Those that somebody must be allowed to view for this hop to exist."""
        if self.through is None or self.through._meta.auto_created:
            return (self.model,)
        return (self.through, self.model)

    @cached_property
    def link(self) -> tuple[Any, Any]:
        """The field on our side and the one on the other side (or in between) that it equals."""
        if self.ends is not None:
            return self.ends[0].target_field, self.ends[0]
        if self.is_generic:
            number = self.model._meta.get_field(self.field.object_id_field_name)
            return self.field.model._meta.pk, number
        if self.field.concrete:
            near, far = self.field.related_fields[0]
        else:
            far, near = self.field.field.related_fields[0]
        return near, far


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """A declared path. `field` is None where it ends at a relation that has many rows."""

    text: str
    model: ModelClass
    hops: tuple[Hop, ...]
    field: Any
    #: Whether nobody lists it: every model on the way is open, and shows its part of it.
    is_by_rule: bool = False

    def __repr__(self) -> str:
        return f"<Path {self.text} of {self.model._meta.label}>"

    @property
    def is_many(self) -> bool:
        return any(hop.is_many for hop in self.hops)

    @property
    def is_nullable(self) -> bool:
        return bool(self.field.null) or any(hop.field.null for hop in self.hops)

    @cached_property
    def lookup(self) -> str:
        return self.lookup_from(0)

    def lookup_from(self, start: int) -> str:
        """What Django is given: built from the resolved path, never from what anybody wrote."""
        last = "pk" if self.field is None else self.field.attname
        return LOOKUP_SEP.join([*(hop.name for hop in self.hops[start:]), last])

    def lookup_of_link(self, start: int, hop: int) -> str:
        """Our side of a hop, where a subquery takes the place of the join."""
        names = [one.name for one in self.hops[start:hop]]
        return LOOKUP_SEP.join([*names, self.hops[hop].link[0].attname])

    @cached_property
    def steps(self) -> tuple[tuple[ModelClass, str], ...]:
        """Each field on the way, with the model that it is looked up on."""
        owners = [self.model, *(hop.model for hop in self.hops)]
        return tuple(zip(owners, self.names, strict=False))

    @cached_property
    def names(self) -> Names:
        """The path with one spelling for each field, whatever the site wrote."""
        last = () if self.field is None else (self.field.name,)
        return (*(hop.name for hop in self.hops), *last)


def resolve(model: ModelClass, text: str) -> Path:
    """Resolve a path that a site declares. Raises ImproperlyConfigured and says what is wrong."""
    hops: list[Hop] = []
    current = model
    names = text.split(LOOKUP_SEP)
    for position, name in enumerate(names):
        field = find(current, name, text=text)
        is_many = bool(field.many_to_many or field.one_to_many)
        if position == len(names) - 1 and field.concrete and not is_many:
            if hops and hops[-1].field.concrete and hops[-1].link[1] is field:
                # customer__id is the column customer_id, and Django drops the join.
                field = hops.pop().field
            return Path(text=text, model=model, hops=tuple(hops), field=field)
        if not field.is_relation:
            raise ImproperlyConfigured(f"{text}: {name} is not a relation.")
        forward = field.field if field.auto_created else field
        is_djangos = not field.many_to_many or isinstance(forward, ManyToManyField)
        if not (is_djangos and getattr(field, "path_infos", None)):
            raise ImproperlyConfigured(
                f"{text}: {name} is generic, or of another package, and cannot be followed."
            )
        if len(hops) == MAX_HOPS:
            raise ImproperlyConfigured(f"{text}: at most {MAX_HOPS} relations in one path.")
        current = field.path_infos[-1].to_opts.model
        hops.append(Hop(field=field, model=current))
    return Path(text=text, model=model, hops=tuple(hops), field=None)


def begins_with(names: Names, gone: Iterable[Names]) -> bool:
    return any(names[: len(one)] == one for one in gone)


def find(model: ModelClass, name: str, *, text: str) -> Any:
    opts = model._meta
    try:
        field: Any = opts.get_field(opts.pk.name if name == "pk" else name)
    except FieldDoesNotExist:
        hint = meant(name, (one.name for one in opts.get_fields()))
        sentence = f"{text}: {model.__name__} has no field {name}{hint}."
        raise ImproperlyConfigured(sentence) from None
    if isinstance(field, models.CompositePrimaryKey):
        raise ImproperlyConfigured(f"{text}: list the parts of the composite key instead.")
    return field


def spellings(path: Path) -> Iterator[str]:
    """Every way that Django users write it: customer, customer_id, customer__pk, customer__id."""
    yield path.text
    if path.field is None:
        return
    lead = "".join(hop.name + LOOKUP_SEP for hop in path.hops)
    yield lead + path.field.name
    if path.field.primary_key:
        yield f"{lead}pk"
    if path.field.is_relation:
        yield lead + path.field.attname
        yield f"{lead}{path.field.name}__pk"
        yield f"{lead}{path.field.name}__{path.field.target_field.name}"


def locate(model: ModelClass, lookup: str) -> Column:
    """The column that Django makes of a resolved path, after it has dropped needless joins."""
    query = Query(model)
    alias = query.get_initial_alias()
    found = query.setup_joins(lookup.split(LOOKUP_SEP), query.get_meta(), alias)
    targets, alias, _ = query.trim_joins(found.targets, found.joins, found.path)
    return trail(query.alias_map, alias), str(targets[0].column)


def trail(alias_map: Any, alias: str) -> Trail:
    """The joins from the first table to `alias`."""
    join = alias_map[alias]
    if join.parent_alias is None:
        return ()
    return (*trail(alias_map, join.parent_alias), (join.table_name, join.join_cols))


def joins_of(hop: Hop, model: ModelClass) -> Trail | None:
    """The joins of a hop from its model, each between two tables and by one column.

    None where a column that the hop compares is inherited by what it leads to.
    """
    tables = [(model, hop.link[0])]
    if hop.ends is not None:
        near, far = hop.ends
        tables += [(near.model, near), (far.model, far), (hop.model, far.target_field)]
    else:
        tables += [(hop.model, hop.link[1])]
    places = [locate(owner, field.attname) for owner, field in tables]
    if any(trail for trail, _ in places[1:]):
        return None
    edges = tuple(
        (str(tables[at + 1][0]._meta.db_table), ((places[at][1], places[at + 1][1]),))
        for at in range(0, len(tables), 2)
    )
    return (*places[0][0], *edges)


# What an exposure declares: its paths by use, and what is wrong with them.

SEARCH = "search"
#: Prefixes of ModelAdmin.search_fields. "@" is PostgreSQL's full text, where it is installed.
PREFIXES = {"^": "istartswith", "=": "iexact", "@": "search"}
#: Characters of a text that is still a name of something.
LONGEST_NAME = 255


#: The lists of an exposure that say which paths there are for a use. None: those of `fields`.
OPTIONS = {
    FILTER: "filter_fields",
    ORDER: "order_fields",
    GROUP: "group_fields",
    METRIC: "metric_fields",
}


class Declaration:
    """The paths of an exposure by use, resolved. `problems` says what could not be."""

    def __init__(self, exposure: ModelExposure) -> None:
        self.exposure = exposure
        self.problems: list[str] = []
        #: Names of what `exclude` takes away.
        self.hidden = [path.names for path in self._resolve("exclude", exposure.exclude)]
        shown = self._open("fields", exposure.fields)
        related = tuple(path for path in shown if path.field is None and len(path.hops) == 1)
        for path in shown:
            if path.is_many and path not in related:
                self._wrong("fields", path.text, "has many values for one record; filter by it")
        search = [text.lstrip("".join(PREFIXES)) for text in exposure.search_fields]
        self.search_prefixes = dict(zip(search, exposure.search_fields, strict=True))
        self.paths: dict[str, tuple[Path, ...]] = {
            RETURN: tuple(path for path in shown if not path.is_many),
            INCLUDE: related,
            FILTER: shown,
            SEARCH: self._open("search_fields", search),
        }
        if exposure.filter_fields is not None:
            self.paths[FILTER] = self._open("filter_fields", exposure.filter_fields)
        self.paths[FILTER] += self._open("more_filter_fields", exposure.more_filter_fields)
        self.paths[ORDER] = self._fitting("order_fields", self._order_problem, default=has_order)
        self.paths[GROUP] = self._fitting("group_fields", value_problem, default=makes_groups)
        self.paths[METRIC] = self._fitting(
            "metric_fields", self._metric_problem, default=is_measure
        )
        if type(exposure.smallest_group) is not int or exposure.smallest_group < 0:
            given = ascii(exposure.smallest_group)[:60]
            self._wrong("smallest_group", given, "is not a number of records")
        kinds = {path.text: kind_of(path.field) for path in self.paths[RETURN]}
        name = exposure.modified_field
        if name and kinds.get(name) not in ("datetime", "date"):
            self._wrong("modified_field", name, "is no date or time that fields lists")
        self.labels = self._open("label_fields", exposure.label_fields)
        orders = [str(name).removeprefix("-") for name in exposure.ordering]
        # Parts of dates and the like are for Django to judge.
        self._open("ordering", [one for one in orders if LOOKUP_SEP not in one and one != "?"])
        self._check_columns()

    def _check_columns(self) -> None:
        for path in self.labels:
            if path.hops:
                self._wrong("label_fields", path.text, "is not a column of the model itself")
        for path in self.paths[SEARCH]:
            if path.field is None:
                self._wrong("search_fields", path.text, "ends at a relation; name a column of it")
        for name, sentence in mask_problems(self.exposure, self.paths[RETURN]):
            self._wrong("mask", name, sentence)
        own = {one.name: one for one in self.exposure.model._meta.concrete_fields}
        for name in self.exposure.untrusted_fields:
            if name not in own:
                self._wrong("untrusted_fields", name, f"is no column of it{meant(name, own)}")
            elif not holds_text(own[name]):
                self._wrong("untrusted_fields", name, "is no column of texts that people write")

    def _resolve(self, what: str, names: Iterable[str]) -> Iterator[Path]:
        for name in names:
            try:
                yield resolve(self.exposure.model, name)
            except ImproperlyConfigured as error:
                self.problems.append(f"{self.exposure.label}: {what}: {error}")

    def _open(self, what: str, names: Iterable[str]) -> tuple[Path, ...]:
        """Those that `exclude` leaves: what it names is gone, and all that is behind it."""
        found = self._resolve(what, names)
        return tuple(path for path in found if not begins_with(path.names, self.hidden))

    def _fitting(
        self, what: str, problem: Callable[[Path], str], *, default: Callable[[Path], bool]
    ) -> tuple[Path, ...]:
        """Those of an option that have no problem. Without a list, some of `fields`."""
        given = getattr(self.exposure, what)
        if given is None:
            return tuple(path for path in self.paths[RETURN] if default(path))
        problems = {path: problem(path) for path in self._open(what, given)}
        for path, sentence in problems.items():
            if sentence:
                self._wrong(what, path.text, sentence)
        return tuple(path for path, sentence in problems.items() if not sentence)

    def _order_problem(self, path: Path) -> str:
        if path.is_many or not has_order(path):
            return "has no order"
        if path.names in {one.names for use in (RETURN, FILTER) for one in self.paths[use]}:
            return ""
        return "is neither in fields nor in filter_fields, and pages in its order show it"

    def _metric_problem(self, path: Path) -> str:
        names = () if self.exposure.aggregates_only else [one.names for one in self.paths[RETURN]]
        has_sum = path.names in names or "sum" in measures_of(path.field)
        return value_problem(path) or ("" if has_sum else "is not shown by records and has no sum")

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


def mask_problems(exposure: ModelExposure, shown: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """What cannot be masked, or not so, and why."""
    kinds: Any = exposure.mask
    if not isinstance(kinds, Mapping):
        yield ascii(kinds)[:60], 'is no mapping; write {"email": "email"}'
        return
    own = {path.field.name: path.field for path in shown if not path.hops}
    for name, kind in kinds.items():
        if name not in own:
            yield name, f"is not a column of the model that fields lists{meant(name, own)}"
        elif not (isinstance(kind, str) and kind in MASKS):
            yield name, f"has no mask {ascii(kind)[:60]}{meant(str(kind), MASKS)}"
        elif is_key(own[name]):
            yield name, "is a key, which other answers have as well; leave it out of fields"
        elif isinstance(own[name], FileField) or name == exposure.modified_field:
            yield name, "is a file or modified_field, which is read; leave it out of fields"


def holds_text(column: Any) -> bool:
    """Whether people write its values: texts, but no key, no file and no choice."""
    if column.is_relation or column in column.model._meta.pk_fields or choices_of(column):
        return False
    return kind_of(column) in ("text", "json", "array") and not isinstance(column, FileField)


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that nobody knows."""
    names = list(known)
    close = get_close_matches(name[:60], names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}"
    return f"; write one of {', '.join(names[:20])}"


def is_key(column: Any) -> bool:
    """Whether records are found by its values, here or in another model, also from elsewhere."""
    if column.is_relation or column in column.model._meta.pk_fields:
        return True
    backward = (
        getattr(one, "field", None)
        for one in column.model._meta.get_fields(include_hidden=True)
        if one.auto_created and not one.concrete
    )
    return any(
        column in field.foreign_related_fields
        for field in backward
        if isinstance(field, ForeignObject)
    )


def value_problem(path: Path) -> str:
    """Why a record has no single value there, or none that databases compare. Else empty."""
    if path.is_many:
        model = next(hop.model for hop in path.hops if hop.is_many)._meta.label
        return f"has many values for one record; expose {model} for it"
    return "" if has_order(path) else "cannot be compared"


def has_order(path: Path) -> bool:
    return has_equals(path.field)


def makes_groups(path: Path) -> bool:
    """Whether records may share the value: no key, no long text, nothing beyond comparison."""
    field, kind = path.field, kind_of(path.field)
    longest = getattr(field, "max_length", None) or LONGEST_NAME + 1
    is_long = kind == "text" and (isinstance(field, TextField) or longest > LONGEST_NAME)
    # What is unique among customers is shared by all orders of one.
    is_unique = field.unique and not any(hop.field.many_to_one for hop in path.hops)
    return has_equals(field) and not is_long and not is_unique


def is_measure(path: Path) -> bool:
    """Whether it is an amount or a time. A text has an order, but who asks for its largest?"""
    field = path.field
    return bool(measures_of(field)) and kind_of(field) != "text" and not field.primary_key


def label_target(path: Path) -> ModelClass | None:
    return path.field.related_model if path.field is not None and path.field.is_relation else None


def declaration_of(exposure: ModelExposure) -> Declaration:
    """Raises ImproperlyConfigured with every path that cannot be used. Where staff restricted the
    exposure, such paths are left out.
    """
    found: Declaration | None = exposure.declaration
    if found is None:
        found = Declaration(exposure)
        if found.problems and not exposure.is_restricted:
            raise ImproperlyConfigured(" ".join(found.problems))
        exposure.declaration = found
    return found


# Primary keys: from what a caller wrote to values, and from values to one spelling.

#: Characters of a key that is a text.
LONGEST_KEY = 1000


def parse_key(model: ModelClass, pk: Any, *, using: str) -> tuple[Any, ...]:
    """The value of each part of a key. Raises QueryError for what cannot be one."""
    given = pk if isinstance(pk, list | tuple) else [pk]
    parts = model._meta.pk_fields
    if len(given) != len(parts):
        raise QueryError("This is not a key.")
    return tuple(
        key_value(part, value, using=using) for part, value in zip(parts, given, strict=True)
    )


def key_value(part: Any, value: Any, *, using: str) -> Any:
    if has_equals(target_of(part)):
        return fields.scalar(part, value, using=using, longest=LONGEST_KEY)
    # A class of the site's own knows its values; the text is one that every database takes.
    written = fields.bounded_text(value, longest=LONGEST_KEY)
    try:
        return target_of(part).to_python(written)
    except Exception:
        raise QueryError("This is not a key.") from None


def stored_key(model: ModelClass, given: Iterable[Any]) -> tuple[Any, ...]:
    """The values of a key as a database gives them back: code may have assigned "5" for 5."""
    key = []
    for part, value in zip(model._meta.pk_fields, given, strict=True):
        with suppress(ValidationError, ValueError, TypeError):
            value = target_of(part).to_python(value)
        key.append(value)
    return tuple(key)


def spell(value: Any) -> str:
    """One text for equal values: `5.00` and `5`, an instant in any time zone."""
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value.normalize():f}"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return str(value.astimezone(UTC))
    return str(value)


def spell_key(key: Iterable[Any]) -> tuple[str, ...]:
    return tuple(spell(value) for value in key)

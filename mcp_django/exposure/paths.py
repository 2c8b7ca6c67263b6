"""Declared paths: what a site lists, resolved once against `_meta`, never a caller's text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured
from django.db import models
from django.db.models.constants import LOOKUP_SEP
from django.db.models.sql import Query

#: One SQL join: the table that is joined and the column pairs that join it.
Edge: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
Trail: TypeAlias = tuple[Edge, ...]
#: A column by the joins that lead to it: `owner.name` and `editor.name` are two.
Column: TypeAlias = tuple[Trail, str]
ModelClass: TypeAlias = type[models.Model]

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
    def names(self) -> tuple[str, ...]:
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
        if not getattr(field, "path_infos", None):
            raise ImproperlyConfigured(f"{text}: {name} is generic and cannot be followed.")
        if len(hops) == MAX_HOPS:
            raise ImproperlyConfigured(f"{text}: at most {MAX_HOPS} relations in one path.")
        current = field.path_infos[-1].to_opts.model
        hops.append(Hop(field=field, model=current))
    return Path(text=text, model=model, hops=tuple(hops), field=None)


def find(model: ModelClass, name: str, *, text: str) -> Any:
    opts = model._meta
    try:
        field: Any = opts.get_field(opts.pk.name if name == "pk" else name)
    except FieldDoesNotExist:
        raise ImproperlyConfigured(f"{text}: {model.__name__} has no field {name}.") from None
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


def key_parts(model: ModelClass) -> tuple[Any, ...]:
    """The columns of the primary key, one by one."""
    return tuple(model._meta.pk_fields)

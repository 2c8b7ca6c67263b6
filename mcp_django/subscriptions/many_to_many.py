"""The two sides of a many-to-many relation, as `m2m_changed` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db.models import Model

from mcp_django.subscriptions.facts import Fact, ModelClass, concrete, records_of

#: Records of the other side that are told apart.
MOST_RECORDS = 1000


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The foreign keys of the table in between, and what either model calls the relation."""

    near: Any
    far: Any
    near_name: str
    far_name: str


def sides_of(owner: ModelClass, through: ModelClass, *, is_reverse: bool) -> Sides | None:
    """Seen from the instance that the signal names. None for a relation that is not Django's."""
    for field in owner._meta.many_to_many:
        if field.remote_field.through is through:
            get: Any = through._meta.get_field
            ends = get(field.m2m_field_name()), get(field.m2m_reverse_field_name())
            names = field.name, field.remote_field.name
            (near, far), (ours, theirs) = (
                (ends[::-1], names[::-1]) if is_reverse else (ends, names)
            )
            return Sides(near=near, far=far, near_name=ours, far_name=theirs)
    return None


def facts_of_relation(
    instance: Model,
    model: ModelClass,
    through: ModelClass,
    *,
    pk_set: Iterable[Any] | None,
    is_reverse: bool,
    using: str,
) -> Iterator[Fact]:
    """What happened to both sides and in between. Without a set of keys: all that there are."""
    kind = type(instance)
    sides = sides_of(model if is_reverse else kind, through, is_reverse=is_reverse)
    if sides is None:
        yield Fact(model=kind, records=records_of(instance))
        yield Fact(model=model, is_whole=True)
        return
    yield Fact(model=kind, records=records_of(instance), fields=frozenset({sides.near_name}))
    if pk_set is None:
        pk_set = linked(sides, instance, through, using=using)
    yield of_many(model, pk_set, sides)
    # Rows in between are made and deleted in bulk, without signals of their own.
    yield Fact(model=through, is_membership=True, is_whole=True)


def linked(sides: Sides, instance: Model, through: ModelClass, *, using: str) -> Iterable[Any]:
    """What the instance is linked to, before that is gone."""
    rows = through._base_manager.using(using).filter(**{sides.near.name: instance})
    return list(rows.values_list(sides.far.attname, flat=True)[: MOST_RECORDS + 1])


def of_many(model: ModelClass, keys: Iterable[Any], sides: Sides) -> Fact:
    fields = frozenset({sides.far_name})
    some = list(islice(keys, MOST_RECORDS + 1))
    # The table in between may refer to something else than the primary key.
    if len(some) > MOST_RECORDS or not sides.far.target_field.primary_key:
        return Fact(model=model, fields=fields, is_whole=True)
    table = concrete(model)
    return Fact(model=model, records=tuple((table, (key,)) for key in some), fields=fields)

"""What a signal saw, kept until the transaction is through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db.models import Model

from mcp_django.exposure.paths import key_parts

Key: TypeAlias = tuple[Any, ...]
ModelClass: TypeAlias = type[Model]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something happened to records of a model. Keys and names, never values."""

    model: ModelClass
    #: Which, by table: a child has a record in the tables of its parents, too. Empty: unknown.
    records: tuple[tuple[ModelClass, Key], ...] = ()
    #: The names of the fields that may have another value. None: any.
    fields: frozenset[str] | None = None
    #: Whether there are other records than before, and not only other values.
    is_membership: bool = False
    #: Whether it may be any record of the model, so that subscribers of each are to be asked.
    is_whole: bool = False

    def may_change(self, names: frozenset[str]) -> bool:
        """Whether it may be seen in these fields, or in which records there are."""
        return self.is_membership or self.fields is None or not names.isdisjoint(self.fields)


def concrete(model: ModelClass) -> ModelClass:
    """The class that has the table; a proxy has none."""
    found: Any = model._meta.concrete_model
    return found  # type: ignore[no-any-return]


def records_of(instance: Model) -> tuple[tuple[ModelClass, Key], ...]:
    """The keys of an instance in its own table and in those of its parents."""
    kind = concrete(type(instance))
    return tuple((one, key_in(one, instance)) for one in (kind, *kind._meta.all_parents))


def key_in(model: ModelClass, instance: Model) -> Key:
    return tuple(getattr(instance, part.attname) for part in key_parts(model))

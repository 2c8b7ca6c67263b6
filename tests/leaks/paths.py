"""Every path of the schema, and every lookup and transform that Django has for what it ends at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, Field, IntegerField, JSONField, Lookup, Transform
from django.db.models.lookups import IExact

#: Relations in one path: as many as a site may declare.
RELATIONS = 3
#: Up to here every lookup is tried on every path, and beyond it another one on each.
THOROUGH = 2
JSON_KEYS = ("secret_key", "deep__password", "0")


class Backwards(Transform):
    """A transform that a site registers."""

    lookup_name = "backwards"
    function = "REVERSE"


class Sounds(IExact):
    """A lookup that a site registers."""

    lookup_name = "sounds"


@dataclass(frozen=True, kw_only=True, eq=False)
class Route:
    """A path as a caller could write it. `field` is None where there is no such thing."""

    root: Any
    names: tuple[str, ...]
    #: The models that it starts at and passes.
    models: tuple[Any, ...]
    field: Any

    @property
    def text(self) -> str:
        return "__".join(self.names)

    @property
    def relations(self) -> int:
        return len(self.names) - 1


@cache
def steps(model: Any) -> tuple[tuple[str, Any, Any], ...]:
    """What can stand behind a model: name, field, and the model that it leads to if it is one."""
    found: list[tuple[str, Any, Any]] = [("pk", model._meta.pk, None), ("nothing", None, None)]
    for field in model._meta.get_fields(include_hidden=True):
        # A generic foreign key leads anywhere, and Django follows it nowhere.
        target = field.related_model if getattr(field, "path_infos", None) else None
        found.append((field.name, field, target))
        if getattr(field, "attname", field.name) not in (field.name, None):
            found.append((field.attname, field, None))
        if isinstance(field, JSONField):
            found += [(f"{field.name}__{key}", field, None) for key in JSON_KEYS]
    return tuple(found)


def routes(root: Any, *, relations: int = RELATIONS) -> Iterator[Route]:
    yield from behind(root, (), (root,), left=relations)


def behind(root: Any, names: Any, models: Any, *, left: int) -> Iterator[Route]:
    for name, field, target in steps(models[-1]):
        yield Route(root=root, names=(*names, name), models=models, field=field)
        # The tables of Django's own users lead everywhere, and there is nothing more behind them.
        if target is not None and left and not (left < RELATIONS and models[-1] is User):
            yield from behind(root, (*names, name), (*models, target), left=left - 1)


@cache
def lookups_of(field: Any) -> tuple[str, ...]:
    """What Django takes behind a field: nothing, a lookup, a transform, one behind that."""
    if not hasattr(field, "get_lookups"):
        return ("", "exact", "isnull")
    found = [""]
    for name, kind in registered(field).items():
        found.append(name)
        if not issubclass(kind, Lookup):
            found += [f"{name}__{inner}" for inner in registered(output_of(kind), kind)]
    return tuple(dict.fromkeys(found))


def registered(field: Any, kind: Any = None) -> dict[str, Any]:
    found = dict(field.get_lookups())
    return found if kind is None else {**found, **kind.get_class_lookups()}


def output_of(kind: Any) -> Any:
    """The field that a transform makes. Those that decide it later keep the kind they were given,
    and that is text for those that we meet."""
    found = getattr(kind, "output_field", None)
    if isinstance(found, Field):
        return found
    return CharField() if kind is Backwards else IntegerField()

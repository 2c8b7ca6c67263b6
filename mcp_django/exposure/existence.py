"""Which of some records are there for a caller. Nothing is read but their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db.models import Q

from mcp_django.exposure.budget import limited
from mcp_django.exposure.find import objects_of
from mcp_django.exposure.keys import spell_key
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.paths import key_parts
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.relations import policy_of
from mcp_django.exposure.rows import guarded

#: Keys in one query. SQLite nests no more than 1,000 alternatives.
CHUNK = 200


def visible_keys(
    rights: Rights, exposure: ModelExposure, keys: Iterable[tuple[Any, ...]], *, using: str
) -> set[tuple[str, ...]]:
    """The keys, spelled, of those records that `get_record` would find for this caller."""
    found: set[tuple[str, ...]] = set()
    for chunk in chunks(keys):
        there = known_keys(rights, exposure, chunk, using=using)
        if there and rights.judges_objects(exposure.model):
            there = judged_keys(rights, exposure, there, using=using)
        found.update(spell_key(key) for key in there)
    return found


def chunks(keys: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    left = iter(keys)
    while chunk := list(islice(left, CHUNK)):
        yield chunk


def known_keys(
    rights: Rights, exposure: ModelExposure, keys: Sequence[tuple[Any, ...]], *, using: str
) -> list[tuple[Any, ...]]:
    """Those that the site's rows have. Guarded, since these rows may be cut or combined."""
    model = exposure.model
    names = [part.attname for part in key_parts(model)]
    rows = guarded(rights.rows(model).using(using), policy_of(model, names))
    wanted = Q()
    if len(names) == 1:
        wanted = Q((f"{names[0]}__in", [value for (value,) in keys]))
    else:
        for key in keys:
            wanted |= Q(*zip(names, key, strict=True))
    with limited(using):
        return list(rows.filter(wanted).values_list(*names))


def judged_keys(
    rights: Rights, exposure: ModelExposure, keys: Sequence[tuple[Any, ...]], *, using: str
) -> list[tuple[Any, ...]]:
    model = exposure.model
    names = [part.attname for part in key_parts(model)]
    with limited(using):
        objects = objects_of(rights.rows(model).using(using), keys)
    return [
        tuple(getattr(one, name) for name in names)
        for one in objects
        if rights.may_view_object(model, one)
    ]

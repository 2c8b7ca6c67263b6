"""Models whose signals may matter: decided without a query, since every save of a site asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model

from mcp_django.exposure.declarations import declaration_of
from mcp_django.exposure.options import ModelExposure
from mcp_django.exposure.registry import Registry, registry
from mcp_django.subscriptions.effects import is_kin, passed_by
from mcp_django.subscriptions.facts import ModelClass, concrete


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What code opened and what staff may open. What is open, is asked after the commit."""

    candidates: dict[type[Model], ModelExposure]
    models: frozenset[ModelClass]


_kept: list[Watched] = []


def is_watched(model: ModelClass, *, tables: Registry = registry) -> bool:
    """Whether something may have to be told. Models of migrations are none of these."""
    if not apps.ready:
        return False  # the admin's classes are not all there yet
    candidates = tables.candidates
    if not _kept or _kept[0].candidates is not candidates:
        # Two threads may do this at once: then one of them has worked for nothing.
        _kept[:] = [Watched(candidates=candidates, models=frozenset(watched(candidates)))]
    return model in _kept[0].models


def watched(candidates: dict[type[Model], ModelExposure]) -> Iterator[ModelClass]:
    wanted = {concrete(model) for model in candidates}
    for exposure in candidates.values():
        try:
            wanted.update(concrete(model) for model in passed_by(declaration_of(exposure)))
        except ImproperlyConfigured:  # a check says so
            continue
    for model in apps.get_models(include_auto_created=True):
        if any(is_kin(concrete(model), one) for one in wanted):
            yield model

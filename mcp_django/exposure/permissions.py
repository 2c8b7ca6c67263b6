"""What a caller may see, asked of those who know: the exposure, the admin, or `has_perm`.

The rules of the site are asked and never written again. For each model the answer comes from

1. its `ModelExposure`, where that defines `get_queryset` or `has_view_permission`;
2. else its ModelAdmin on the first site of `ADMIN_SITES` that has the model and lets the user in.
   A model that some site has and no site shows to this user does not exist for the user;
3. else `user.has_perm` and the default manager.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any, Protocol

from django.apps import apps
from django.db.models import Manager, Model, QuerySet
from django.http import HttpRequest

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound
from mcp_django.exposure.decisions import PromptDecision, ToolDecision
from mcp_django.exposure.options import ModelExposure, may_view
from mcp_django.exposure.overrides import Exposed, exposed_by
from mcp_django.exposure.plain_users import is_plain
from mcp_django.exposure.registry import Registry, registry
from mcp_django.levels import Level
from mcp_django.principal import READ, Principal

logger = logging.getLogger("mcp_django")

#: Models that an error names.
MOST_LABELS = 30


#: Under which a principal keeps the groups of its user.
GROUPS = "groups"


class Source(Protocol):
    """Who answers for one model."""

    def may_view(self, request: HttpRequest) -> bool: ...
    def rows(self, request: HttpRequest) -> QuerySet[Any]: ...
    def shown(self, request: HttpRequest) -> frozenset[str] | None: ...
    def judges_objects(self) -> bool: ...
    def may_view_object(self, request: HttpRequest, obj: Model) -> bool: ...
    def is_constant(self) -> bool:
        """Whether nothing but the permissions of the user decides, and no code of the site."""
        ...


class ExposureSource:
    """The exposure decides, and where it does not, Django's plain rule does."""

    def __init__(self, exposure: ModelExposure) -> None:
        self.exposure = exposure

    def may_view(self, request: HttpRequest) -> bool:
        return self.exposure.has_view_permission(request)

    def rows(self, request: HttpRequest) -> QuerySet[Any]:
        return self.exposure.get_queryset(request)

    def shown(self, request: HttpRequest) -> frozenset[str] | None:
        return None

    def judges_objects(self) -> bool:
        return self.exposure.overrides("has_view_permission")

    def may_view_object(self, request: HttpRequest, obj: Model) -> bool:
        return self.exposure.has_view_permission(request, obj)

    def is_constant(self) -> bool:
        return False


class PermissionSource:
    """A model that no admin has and no exposure speaks for."""

    def __init__(self, model: type[Model]) -> None:
        self.model = model

    def may_view(self, request: HttpRequest) -> bool:
        return may_view(request.user, self.model)

    def rows(self, request: HttpRequest) -> QuerySet[Any]:
        return self.model._default_manager.get_queryset()

    def shown(self, request: HttpRequest) -> frozenset[str] | None:
        return None

    def judges_objects(self) -> bool:
        return False

    def may_view_object(self, request: HttpRequest, obj: Model) -> bool:
        return True

    def is_constant(self) -> bool:
        return has_plain_manager(self.model)


def has_plain_manager(model: type[Model]) -> bool:
    """Whether the default manager is Django's own, which gives every request the same rows."""
    # A subclass of Manager could answer differently, and so could a manager made from_queryset().
    return type(model._default_manager) is Manager


class Rights:
    """What one caller may see: each question is asked once and the answer kept for the call."""

    def __init__(
        self, request: HttpRequest, principal: Principal, *, registry: Registry = registry
    ) -> None:
        self.request = request
        self.principal = principal
        self.registry = registry
        #: Records or groups that the last read answered with.
        self.returned: int | None = None
        self._sources: dict[type[Model], Source | None] = {}
        self._rows: dict[type[Model], QuerySet[Any]] = {}
        self._shown: dict[type[Model], frozenset[str] | None] = {}

    @cached_property
    def exposed(self) -> Exposed:
        """The exposures in force, the same throughout the call."""
        return exposed_by(self.registry, self.principal.server)

    @cached_property
    def _gates(self) -> Any:
        # The admin is optional.
        from mcp_django.exposure.admin_sites import Gates

        return Gates(self.request)

    @property
    def identity(self) -> str:
        """Binds cursors to who asked."""
        return self.principal.key

    @property
    def is_read_only(self) -> bool:
        decided = self.exposed.decisions
        return (
            self.principal.restriction.read_only
            or get_config().read_only
            or decided.read_only
            or self.principal.user.pk in decided.read_only_users
        )

    def has_scopes(self, needed: frozenset[str]) -> bool:
        return self.principal.has_scopes(needed)

    def exposures(self) -> list[ModelExposure]:
        """The exposed models that exist for this caller, in the order of labels."""
        if not self.has_scopes(frozenset({READ})):
            return []
        return [one for one in self.exposed.exposures.values() if self.may_view(one.model)]

    def exposure(self, label: object) -> ModelExposure:
        """The exposure of a model by its label. Raises NotFound: unknown and forbidden alike."""
        if isinstance(label, str) and self.has_scopes(frozenset({READ})):
            found = self.exposed.by_label.get(label.lower())
            if found is not None and self.may_view(found.model):
                return found
        shown = ascii(label)[:80] if isinstance(label, str) else "of that name"
        labels = ", ".join(one.label for one in self.exposures()[:MOST_LABELS])
        hint = f"There are: {labels}." if labels else "There is none that you may see."
        raise NotFound(f"There is no model {shown}. {hint}")

    def may_view(self, model: type[Model]) -> bool:
        return self._source(model) is not None

    def is_member(self, groups: frozenset[Any] | None) -> bool:
        """Whether something that is only for these groups is for this caller. Empty: for all."""
        return not groups or not groups.isdisjoint(self._groups)

    def is_left(self, decision: ToolDecision | PromptDecision | None) -> bool:
        """Whether staff have left a tool or a prompt to this caller."""
        return decision is None or (
            decision.enabled is not False and self.is_member(decision.groups)
        )

    @cached_property
    def _groups(self) -> frozenset[Any]:
        kept = self.principal.kept.get(GROUPS)
        if kept is not None:
            return frozenset(kept)
        theirs = getattr(self.principal.user, "groups", None)
        # A site's own user may have groups of another kind, whose keys mean nothing here.
        if theirs is None or theirs.model._meta.label != "auth.Group":
            return frozenset()
        found = frozenset(theirs.values_list("pk", flat=True))
        if is_plain(self.principal.user):
            self.principal.kept[GROUPS] = found
        return found

    def level(self, model: type[Model]) -> Level:
        """How much of a model there is for this caller, before the rights to change it."""
        exposure = self.exposed.exposures.get(model)
        if exposure is None or not self.may_view(model):
            return Level.HIDDEN
        return exposure.standard_level

    def rows(self, model: type[Model]) -> QuerySet[Any]:
        """The rows that exist for this caller. Raises NotFound where `may_view` says no."""
        if not self.may_view(model):
            raise NotFound("There is no such model.")
        return self._rows[model]

    def shown(self, model: type[Model]) -> frozenset[str] | None:
        """The names of fields that exist for this caller. None: no rule but the declared paths."""
        if model not in self._shown:
            source = self._source(model)
            names = None if source is None else source.shown(self.request)
            exposure = self.exposed.exposures.get(model)
            own = None if exposure is None else exposure.get_fields(self.request)
            if own is not None:
                names = frozenset(own) if names is None else names & frozenset(own)
            self._shown[model] = names
        return self._shown[model]

    def judges_objects(self, model: type[Model]) -> bool:
        """Whether rows are judged in Python, so that SQL alone can neither count nor page."""
        exposure = self.exposed.exposures.get(model)
        if exposure is not None and exposure.rows_are_enough:
            return False
        source = self._source(model)
        return source is not None and source.judges_objects()

    def may_view_object(self, model: type[Model], obj: Model) -> bool:
        # The class of the object may be another: a proxy, or a child with rules of its own.
        source = self._source(model)
        return source is not None and source.may_view_object(self.request, obj)

    def model_admin(self, model: type[Model]) -> Any:
        """The ModelAdmin through which this caller changes a model, or None.

        That of the first site that has the model and lets the user in: what it permits beyond
        that, ask it.
        """
        if not apps.is_installed("django.contrib.admin") or not self.may_view(model):
            return None
        return self._gates.admin_of(model)

    def is_constant(self, model: type[Model]) -> bool:
        """Whether the answers about a model hold for every call of this principal."""
        exposure = self.exposed.exposures.get(model)
        return model in self.principal.kept and not (
            exposure is not None and exposure.overrides("get_fields")
        )

    def _source(self, model: type[Model]) -> Source | None:
        if model not in self._sources:
            kept = self.principal.kept.get(model)
            if kept is None:
                self._sources[model] = self._find_source(model)
            else:
                self._sources[model], self._rows[model] = kept
        return self._sources[model]

    def _find_source(self, model: type[Model]) -> Source | None:
        if not self.principal.restriction.allows_model(model._meta.label_lower):
            return None
        exposed = self.exposed
        if model in exposed.closed or not self.is_member(exposed.groups.get(model)):
            return None
        exposure = self.exposed.exposures.get(model)
        source: Source | None
        if exposure is not None and exposure.decides_itself:
            source = ExposureSource(exposure)
        elif apps.is_installed("django.contrib.admin"):
            source = self._gates.source_of(model, otherwise=PermissionSource(model))
        else:
            source = PermissionSource(model)
        try:
            if source is None or not source.may_view(self.request):
                return None
            rows = self._rows[model] = source.rows(self.request)
            if source.is_constant() and is_plain(self.request.user):
                self.principal.kept[model] = source, rows
        except Exception:
            # Code of the site: this model is not there, and all the others are.
            logger.exception("What may be seen of %s cannot be told.", model._meta.label)
            return None
        return source

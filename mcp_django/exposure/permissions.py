"""What a caller may see: the exposure, the admin or `has_perm` answers.

The rules of the site are asked and never written again. For each model the answer comes from

1. its `ModelExposure`, where that defines `get_queryset` or `has_view_permission`;
2. else its ModelAdmin on the first site of `ADMIN_SITES` that has the model and lets the user in.
   A model that some site has and no site shows to this user does not exist for the user;
3. else `user.has_perm` and the default manager.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar, cast

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_backends
from django.contrib.auth.backends import BaseBackend, ModelBackend
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.db.models import Model, QuerySet
from django.db.models.query_utils import DeferredAttribute
from django.http import HttpRequest
from django.utils.module_loading import import_string

from mcp_django.conf import get_config
from mcp_django.exceptions import NotFound
from mcp_django.exposure.decisions import Exposed, PromptDecision, ToolDecision, exposed_by
from mcp_django.exposure.limits import raise_lost_database
from mcp_django.exposure.options import (
    ModelExposure,
    has_plain_manager,
    looks_at_object,
    may_view,
    view_permissions,
)
from mcp_django.exposure.registry import Registry, registry
from mcp_django.exposure.request_attributes import real_user
from mcp_django.levels import Level
from mcp_django.principal import READ, CachePerPrincipal, Principal
from mcp_django.templating.fences import fenced_value, new_mark

logger = logging.getLogger("mcp_django")

Declared = TypeVar("Declared")

#: Models that an error names.
MOST_LABELS = 30

# Whether a user's rights are Django's own business, without any code of the site.
#
# Django reads the permissions of a user once and keeps them on the object, so what they decide
# may be kept for as long as the object is. Code of the site may look at the clock, the request
# or the tenant, and has to be asked at every call.

#: What backends have that are Django's or inherit from those.
DJANGOS = (BaseBackend.has_perm, ModelBackend.has_perm)
OWN_HAS_PERM = (PermissionsMixin.has_perm, AnonymousUser.has_perm)
FLAGS = ("is_active", "is_staff", "is_superuser")
#: What the answer of a backend is made of.
PARTS = tuple(name for name in vars(ModelBackend) if "perm" in name)


def is_plain(user: Any) -> bool:
    """Whether `has_perm`, the flags and every backend are Django's own."""
    # Any class is hashable, whatever its instances are.
    kind = cast(Hashable, type(user))
    return is_plain_class(kind, tuple(settings.AUTHENTICATION_BACKENDS))


@lru_cache(maxsize=64)
def is_plain_class(user: Hashable, backends: tuple[str, ...]) -> bool:
    flags = (getattr(user, name, False) for name in FLAGS)
    return (
        getattr(user, "has_perm", None) in OWN_HAS_PERM
        and all(isinstance(flag, DeferredAttribute | bool) for flag in flags)
        and all(is_plain_backend(import_string(path)) for path in backends)
    )


def object_backends() -> tuple[str, ...]:
    """The backends with a `has_perm` of their own, which may hold for some objects only.

    They answer True to the bare name of a permission all the same.
    """
    backends = settings.AUTHENTICATION_BACKENDS
    rules = {path: getattr(import_string(path), "has_perm", None) for path in backends}
    return tuple(path for path, rule in rules.items() if rule not in (*DJANGOS, None))


def holds_for_all(user: Any, permissions: Iterable[str]) -> bool:
    """Whether somebody has one of the permissions on every object, as far as Django can tell:
    a superuser does, and whoever gets it from a backend whose `has_perm` is Django's.
    """
    if not object_backends():
        return True
    user = real_user(user)
    # Not `type(user)`: pages have a lazy object in its place.
    if getattr(user.__class__, "has_perm", None) in OWN_HAS_PERM and user.is_superuser:
        return bool(user.is_active)
    backends = [one for one in get_backends() if getattr(type(one), "has_perm", None) in DJANGOS]
    return any(one.has_perm(user, name) for one in backends for name in permissions)


def is_plain_backend(backend: Any) -> bool:
    # One that only authenticates has no say in permissions.
    return not hasattr(backend, "has_perm") or all(
        getattr(backend, name, None) is getattr(ModelBackend, name) for name in PARTS
    )


class PermissionSource:
    """Answers for a model that no admin has: the permissions of the user, the default manager.

    `ExposureSource` and `admin_sites.AdminSource` answer the same questions.
    """

    def __init__(self, model: type[Model], exposure: ModelExposure | None) -> None:
        self.model = model
        self.exposure = exposure

    def may_view(self, request: HttpRequest) -> bool:
        if not may_view(request.user, self.model):
            return False
        exposure = self.exposure
        is_enforced = exposure is not None and exposure.queryset_enforces_view_permission
        # A permission with conditions answers to its bare name, too.
        return is_enforced or holds_for_all(request.user, view_permissions(self.model))

    def rows(self, request: HttpRequest) -> QuerySet[Any]:
        return self.model._default_manager.get_queryset()

    def shown(self, request: HttpRequest, rows: QuerySet[Any]) -> frozenset[str] | None:
        """The names of fields that exist for this caller, or None if no code of the site decides.

        `rows` are those of the caller.
        """
        return None

    def checks_rows_one_by_one(self, request: HttpRequest) -> bool:
        return False

    def may_view_object(self, request: HttpRequest, obj: Model) -> bool:
        return True

    def is_constant(self) -> bool:
        """Whether only the permissions of the user decide, and no code of the site."""
        return has_plain_manager(self.model)


class ExposureSource(PermissionSource):
    """The methods of an exposure decide, and where it has none, Django's plain rule does."""

    exposure: ModelExposure

    def may_view(self, request: HttpRequest) -> bool:
        return self.exposure.has_view_permission(request)

    def rows(self, request: HttpRequest) -> QuerySet[Any]:
        return self.exposure.get_queryset(request)

    def checks_rows_one_by_one(self, request: HttpRequest) -> bool:
        rule = partial(self.exposure.has_view_permission, request)
        is_own = self.exposure.overrides("has_view_permission")
        return is_own and looks_at_object(rule, self.model)

    def may_view_object(self, request: HttpRequest, obj: Model) -> bool:
        return self.exposure.has_view_permission(request, obj)

    def is_constant(self) -> bool:
        return False


def inherited(model: type[Model], declared: Mapping[type[Model], Declared]) -> list[Declared]:
    """What is declared of a model and of those that it inherits from, open or not: their columns
    are columns of the model.
    """
    return [declared[base] for base in model.__mro__ if base in declared]


#: The groups of the user.
principal_groups: CachePerPrincipal[None, frozenset[Any]] = CachePerPrincipal()
#: The rows that a principal may view, where no code of the site decides that for each request.
principal_rows: CachePerPrincipal[type[Model], tuple[PermissionSource, QuerySet[Any]]] = (
    CachePerPrincipal()
)


class Rights:
    """What one caller may see: each question is asked once and the answer kept for the call."""

    def __init__(
        self, request: HttpRequest, principal: Principal, *, registry: Registry = registry
    ) -> None:
        self.request = request
        self.principal = principal
        self.registry = registry
        self._sources: dict[type[Model], PermissionSource | None] = {}
        self._rows: dict[type[Model], QuerySet[Any]] = {}
        self._shown: dict[type[Model], frozenset[str] | None] = {}
        self._checks_rows: dict[type[Model], bool] = {}
        self._masks: dict[type[Model], Mapping[str, str]] = {}
        #: The accessible paths of an exposure. `query.access` finds them.
        self.paths: dict[ModelExposure, Any] = {}

    def with_grantable(self) -> Rights:
        """Return the rights of this caller if its person allowed all that it may ask for."""
        principal = self.principal.with_scopes(self.principal.grantable)
        if principal is self.principal:
            return self
        return Rights(self.request, principal, registry=self.registry)

    @cached_property
    def exposed(self) -> Exposed:
        """The exposures in force, the same throughout the call."""
        return exposed_by(self.registry, self.principal.server)

    @cached_property
    def _gates(self) -> Any:
        """The sites of the admin, which is optional."""
        if not apps.is_installed("django.contrib.admin"):
            return None
        from mcp_django.exposure.admin_sites import Gates

        return Gates(self.request)

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
        """Whether a decision of staff allows this caller the tool or prompt."""
        return decision is None or (
            decision.enabled is not False and self.is_member(decision.groups)
        )

    @cached_property
    def _groups(self) -> frozenset[Any]:
        known = principal_groups.of(self.principal)
        if None in known:
            return known[None]
        theirs = getattr(self.principal.user, "groups", None)
        # A site's own user may have groups of another kind, whose keys mean nothing here.
        if theirs is None or theirs.model._meta.label != "auth.Group":
            return frozenset()
        found = frozenset(theirs.values_list("pk", flat=True))
        if is_plain(self.principal.user):
            known[None] = found
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
        self._source(model)
        return self._shown[model]

    def masks(self, model: type[Model]) -> Mapping[str, str]:
        """The columns whose values this caller gets masked, with the kind of each mask."""
        if model not in self._masks:
            found: dict[str, str] = {}
            for exposure in inherited(model, self.exposed.masking):
                try:
                    is_masked = exposure.is_masked(self.request)
                except Exception as error:
                    raise_lost_database(error)
                    # Code of the site. A rule that fails has not opened anything.
                    logger.exception("Whether %s is masked cannot be told.", exposure.label)
                    is_masked = True
                if is_masked:
                    found = {**exposure.mask, **found}
            self._masks[model] = found
        return self._masks[model]

    def untrusted(self, model: type[Model]) -> frozenset[str]:
        """The columns of a model whose texts strangers wrote."""
        return frozenset().union(*inherited(model, self.exposed.untrusted))

    @cached_property
    def mark(self) -> str:
        """Of the fences of this call."""
        return new_mark()

    def fence(self, value: Any) -> Any:
        """Fence a value of JSON that code made of records: nobody can tell whose words are in it.
        Where the site marks no column as untrusted, it stays as it is.
        """
        return fenced_value(value, self.mark) if self.exposed.untrusted else value

    def checks_rows_one_by_one(self, model: type[Model]) -> bool:
        """Whether rows are judged in Python, so that SQL alone can neither count nor page."""
        exposure = self.exposed.exposures.get(model)
        if exposure is not None and exposure.queryset_enforces_view_permission:
            return False
        if model not in self._checks_rows:
            source = self._source(model)
            self._checks_rows[model] = source is not None and source.checks_rows_one_by_one(
                self.request
            )
        return self._checks_rows[model]

    def may_view_object(self, model: type[Model], obj: Model) -> bool:
        # The class of the object may be another: a proxy, or a child with rules of its own.
        source = self._source(model)
        return source is not None and source.may_view_object(self.request, obj)

    def model_admin(self, model: type[Model]) -> Any:
        """The ModelAdmin through which this caller may change a model, or None: that of the first
        site that has the model and lets the user in. Ask it what it permits.
        """
        if not self.may_view(model):
            return None
        # A source that is kept for the principal need not be looked for again.
        if (admin := getattr(self._source(model), "admin", None)) is not None:
            return admin
        return self.admin_of(model)

    def admin_of(self, model: type[Model]) -> Any:
        """The ModelAdmin of the first site that has the model and lets the user in, or None.
        Whether it permits anything is not asked.
        """
        return self._gates and self._gates.admin_of(model)

    def is_constant(self, model: type[Model]) -> bool:
        """Whether the answers about a model hold for every call of this principal."""
        exposure = self.exposed.exposures.get(model)
        return (
            model in principal_rows.of(self.principal)
            and not (
                exposure is not None
                and (exposure.overrides("get_fields") or exposure.overrides("get_ordering"))
            )
            and not any(
                one.overrides("is_masked") for one in inherited(model, self.exposed.masking)
            )
        )

    def _source(self, model: type[Model]) -> PermissionSource | None:
        if model in self._sources:
            return self._sources[model]
        # Until code of the site has answered, no field exists: not of a child, either.
        self._shown[model] = frozenset()
        try:
            source, names = self._ask(model), None
            if source is not None and model not in principal_rows.of(self.principal):
                names = source.shown(self.request, self._rows[model])
            exposure = self.exposed.exposures.get(model)
            own = None if exposure is None else exposure.get_fields(self.request)
        except Exception as error:
            raise_lost_database(error)
            # This model is not there, and all the others are.
            logger.exception("What may be seen of %s cannot be told.", model._meta.label)
            self._sources[model] = None
            return None
        if own is not None:
            names = frozenset(own) if names is None else names & frozenset(own)
        self._shown[model], self._sources[model] = names, source
        return source

    def _ask(self, model: type[Model]) -> PermissionSource | None:
        """Return who decides about a model, or None if this caller may not see it."""
        known = principal_rows.of(self.principal)
        if model in known:
            source, self._rows[model] = known[model]
            return source
        if not self.principal.restriction.allows_model(model._meta.label_lower):
            return None
        exposed = self.exposed
        if model in exposed.closed or not self.is_member(exposed.groups.get(model)):
            return None
        exposure = exposed.exposures.get(model)
        asked: PermissionSource | None = PermissionSource(model, exposure)
        if exposure is not None and exposure.decides_itself:
            asked = ExposureSource(model, exposure)
        elif self._gates is not None:
            asked = self._gates.source_of(model, otherwise=asked)
        if asked is None or not asked.may_view(self.request):
            return None
        rows = self._rows[model] = asked.rows(self.request)
        if asked.is_constant() and is_plain(self.request.user):
            known[model] = asked, rows
        return asked

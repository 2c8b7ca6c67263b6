"""What staff decided, as this process knows it, and the exposures that are in force by it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from django.apps import apps
from django.contrib.auth.models import Group
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, Error, connections, router, transaction
from django.db.models import Model, Q
from django.db.models.signals import post_delete, pre_delete

from mcp_django import models
from mcp_django.cached import Cached
from mcp_django.connections import apart
from mcp_django.exposure.fields import log_once
from mcp_django.exposure.limits import is_missing_table
from mcp_django.exposure.options import ModelExposure, is_secret, looks_secret
from mcp_django.exposure.paths import (
    OPTIONS,
    RETURN,
    Declaration,
    Names,
    begins_with,
    holds_text,
    resolve,
)
from mcp_django.exposure.registry import registry
from mcp_django.levels import Level
from mcp_django.principal import DEFAULT_SERVER, CachePerPrincipal, Principal
from mcp_django.signing import digest_of
from mcp_django.stores.cache_version import (
    WITH_GROUPS,
    Places,
    cache_version,
    known_cache_version,
    watch,
)

if TYPE_CHECKING:
    from mcp_django.exposure.registry import Registry


# What must follow when a group is deleted.

logger = logging.getLogger("mcp_django")


def group_goes(*, instance: Any, using: str, **kwargs: Any) -> None:
    # Not yet migrated, or a group of another database.
    table = models.PromptTemplate._meta.db_table
    is_ours = table in connections[using].introspection.table_names()
    instance._mcp_rows = {}
    for model in WITH_GROUPS if is_ours else ():
        rows = model.objects.using(using).filter(groups=instance)
        instance._mcp_rows[model] = list(rows.values_list("pk", flat=True))


def group_gone(*, instance: Any, using: str, **kwargs: Any) -> None:
    """What was for one group only must not become everybody's."""
    for model, keys in instance._mcp_rows.items():
        is_model = model is models.ExposedModel
        name, value = ("level", Level.HIDDEN) if is_model else ("enabled", False)
        for row in model.objects.using(using).filter(pk__in=keys, groups=None):
            setattr(row, name, value)
            row.save(update_fields=[name])
            logger.warning("%s was for a group that is gone, and is closed now.", row)


def connect() -> None:
    """Watch groups. No query; may be called again."""
    watch(group_goes, pre_delete, sender=Group)
    watch(group_gone, post_delete, sender=Group)


@dataclass(frozen=True, kw_only=True)
class ModelDecision:
    """One row about a model. None: as in code."""

    level: int | None = None
    fields: tuple[str, ...] | None = None
    write_fields: tuple[str, ...] | None = None
    filter_fields: tuple[str, ...] | None = None
    order_fields: tuple[str, ...] | None = None
    group_fields: tuple[str, ...] | None = None
    label_fields: tuple[str, ...] | None = None
    #: Besides those of code.
    untrusted_fields: tuple[str, ...] | None = None
    #: Whether paths may begin at the model or pass it, also those that code lists.
    follow_relations: bool | None = None
    #: Only for members of these. Empty: for everybody.
    groups: frozenset[Any] = frozenset()
    notes: str = ""


@dataclass(frozen=True, kw_only=True)
class PromptDecision:
    """One row about a prompt of code or of a file. What is empty or None is as it is there."""

    enabled: bool | None = None
    title: str = ""
    description: str = ""
    groups: frozenset[Any] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ToolDecision(PromptDecision):
    """One row about a tool. What is empty or None is as in code."""

    annotations: tuple[tuple[str, bool], ...] = ()
    needs_confirmation: bool = False
    calls_per_minute: int | None = None


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """All rows about one server. By label, by name."""

    models: Mapping[str, ModelDecision] = field(default_factory=dict)
    tools: Mapping[str, ToolDecision] = field(default_factory=dict)
    prompts: Mapping[str, PromptDecision] = field(default_factory=dict)
    instructions: str = ""
    read_only: bool = False
    #: Keys of users whose assistants may change nothing.
    read_only_users: frozenset[Any] = frozenset()
    #: Nobody is answered.
    closed: bool = False
    #: Keys of users whose credentials are not good.
    blocked_users: frozenset[Any] = frozenset()


Decision = TypeVar("Decision", ModelDecision, ToolDecision, PromptDecision)
NOTHING_DECIDED = Decisions()
_decisions: Cached[Decisions] = Cached()


def decisions(server: str = DEFAULT_SERVER) -> Decisions:
    """What staff decided about a server, at most a second ago."""
    return placed_decisions(server)[1]


def placed_decisions(server: str) -> tuple[Places, Decisions]:
    """The same, with where they are from."""

    def make(before: Decisions | None) -> Decisions:
        found = read_decisions(server)
        # The same object while nothing differs: much is kept that was made from it.
        return before if before == found else found

    now = known_cache_version(server) or cache_version(server)
    return now.places, _decisions.get(now, make=make, key=(server, now.places))


#: What an event loop knew when it let a principal in, since it cannot ask for more.
decisions_of_loop: CachePerPrincipal[None, Decisions] = CachePerPrincipal()


def known_decisions(server: str) -> Decisions | None:
    """The same if that needs no query, for event loops."""
    now = known_cache_version(server)
    return None if now is None else _decisions.known(now, key=(server, now.places))


def read_decisions(server: str) -> Decisions:
    """The rows as they are now. Nothing where the tables were not made yet."""
    # A replica that lags would open again what was closed.
    alias = router.db_for_write(models.ExposedModel)
    try:
        with apart(alias):
            return read_rows(server, alias)
    except Error:
        if models.ExposedModel._meta.db_table in connections[alias].introspection.table_names():
            raise
        return NOTHING_DECIDED


def read_rows(server: str, alias: str) -> Decisions:
    def rows(model: Any) -> Any:
        return model.objects.using(alias).filter(server=server)

    settings = rows(models.ServerSettings).first()
    users = list(rows(models.UserRestriction).values_list("user_id", "read_only", "blocked"))
    return Decisions(
        models=decisions_of(ModelDecision, rows(models.ExposedModel)),
        tools=decisions_of(ToolDecision, rows(models.ExposedTool)),
        prompts=decisions_of(PromptDecision, rows(models.ExposedPrompt)),
        instructions="" if settings is None else settings.instructions,
        read_only=settings is not None and settings.read_only,
        read_only_users=frozenset(user for user, read_only, _ in users if read_only),
        closed=settings is not None and settings.closed,
        blocked_users=frozenset(user for user, _, blocked in users if blocked),
    )


def decisions_of(kind: type[Decision], rows: Any) -> dict[str, Decision]:
    """Return what rows decide, by label or name. Most are empty, and those are not read."""
    columns = [column for column in rows.model._meta.fields if hasattr(kind, column.name)]
    lookups = [f"{column.name}__{'isnull' if column.null else 'exact'}" for column in columns]
    defaults = [column.null or column.get_default() for column in columns]
    empty = Q(*zip(lookups, defaults, strict=True))
    decided = {}
    for row in rows.filter(Q(groups__isnull=False) | ~empty).prefetch_related("groups"):
        values = {one.name: frozen(getattr(row, one.name)) for one in fields(kind)}
        values["groups"] = frozenset(group.pk for group in row.groups.all())
        decided[str(row).lower()] = kind(**values)
    return decided


def frozen(value: Any) -> Any:
    items = sorted(value.items()) if isinstance(value, dict) else value
    return tuple(items) if isinstance(items, list) else items


# Code is the ceiling, and a row narrows it: the exposures as they are in force.


class Exposed:
    """What one server exposes, for whoever asks: code, and what staff took away."""

    def __init__(
        self, candidates: Mapping[type[Model], ModelExposure], decisions: Decisions
    ) -> None:
        self.decisions = decisions
        #: Every exposure in force, by its model, ordered by label.
        self.exposures: dict[type[Model], ModelExposure] = {}
        #: Models that staff closed: they exist for nobody, and no path of another passes them.
        self.closed: set[type[Model]] = set()
        #: Models that exist for members of some groups only.
        self.groups: dict[type[Model], frozenset[object]] = {}
        #: Paths that staff took out of records, by model: no path through it passes them either.
        self.withheld: dict[type[Model], frozenset[Names]] = {}
        #: Models that staff let no path begin at or pass.
        self.not_followed: set[type[Model]] = set()
        #: What code masks, by model. It holds where the model is closed as well: other models may
        #: inherit its columns.
        self.masking = {model: code for model, code in candidates.items() if code.mask}
        #: Columns whose texts strangers wrote, by model, closed ones as well.
        self.untrusted: dict[type[Model], frozenset[str]] = {}
        for model, code in candidates.items():
            exposure = self._add(code) if has_table(model) else code
            if exposure.untrusted_fields:
                self.untrusted[model] = frozenset(exposure.untrusted_fields)
        self.by_label = {one.label: one for one in self.exposures.values()}

    def _add(self, code: ModelExposure) -> ModelExposure:
        model, row = code.model, self.decisions.models.get(code.label)
        if row is None:
            if code.standard_level > Level.HIDDEN:
                self.exposures[model] = code
            return code
        exposure = restricted(code, row)
        if exposure.level == Level.HIDDEN:
            self.closed.add(model)
        else:
            self.exposures[model] = exposure
            self.withheld[model] = withheld(code, exposure)
        if row.groups:
            self.groups[model] = row.groups
        if row.follow_relations is False:
            self.not_followed.add(model)
        return exposure


@lru_cache(maxsize=1000)
def restricted(code: ModelExposure, row: ModelDecision) -> ModelExposure:
    """The exposure of code as a row leaves it. Never wider in anything.

    The same object for an equal row: what is known of it goes on.
    """
    found = type(code)(code.model)
    found.is_restricted = True
    found.level = (
        code.standard_level if row.level is None else min(Level(row.level), code.highest_level)
    )
    found.aggregates_only = found.level < Level.READ
    if row.fields is not None:
        known = [*code.fields, *code.doubtful_fields]
        found.fields = [path for path in known if path in row.fields]
    if row.write_fields is not None:
        found.write_fields = [name for name in write_choices(code) if name in row.write_fields]
    found.follow_relations = code.follow_relations and row.follow_relations is not False
    # A name taken out of records leaves the other uses as well, unless the row lists it there:
    # filters would be an oracle.
    gone = withheld(code, found)

    def left(path: str) -> bool:
        return not begins_with(names_of(code.model, path), gone)

    for name in (*OPTIONS.values(), "more_filter_fields", "search_fields", "ordering"):
        paths = getattr(code, name)
        # None: those of `fields`, which are narrowed.
        setattr(found, name, paths and [path for path in paths if left(path.lstrip("-^=@"))])
    for use, name in OPTIONS.items():
        if (listed := getattr(row, name, None)) is not None:
            allowed = [path.text for path in Declaration(code).paths[use]]
            setattr(found, name, [path for path in allowed if path in listed])
    if row.filter_fields is not None:
        found.more_filter_fields = ()
    labels = code.label_fields if row.label_fields is None else row.label_fields
    found.label_fields = [path for path in label_choices(code) if path in labels and left(path)]
    if code.modified_field and not left(code.modified_field):
        found.modified_field = ""
    found.untrusted_fields = (*code.untrusted_fields, *(row.untrusted_fields or ()))
    if row.notes:
        found.description = f"{code.description} {row.notes}".strip()
    return found


def has_fences(decided: Decisions) -> bool:
    """Whether code or staff say of any column that strangers wrote its texts."""
    rows: list[Any] = [*decided.models.values(), *registry.candidates.values()]
    return any(row.untrusted_fields for row in rows)


def write_choices(code: ModelExposure) -> list[str]:
    """The fields of the admin's form that may be set, as far as a class says which there are."""
    if code.write_fields is not None:
        return list(code.write_fields)
    if not apps.is_installed("django.contrib.admin"):
        return []
    # The admin is optional; here it is there.
    from mcp_django.exposure.admin_sites import form_fields, model_admins

    names = [name for one in model_admins(code.model) for name in form_fields(one)]
    keys = {field.name for field in code.model._meta.pk_fields}
    return [
        name
        for name in dict.fromkeys(names)
        if isinstance(name, str)
        and name not in keys
        and name not in code.exclude
        and (name in code.fields or not is_secret(code.model, name))
    ]


def untrusted_choices(code: ModelExposure) -> list[str]:
    """The columns that records show and that strangers may have written."""
    own = [path for path in Declaration(code).paths[RETURN] if not path.hops]
    return [one.text for one in own if holds_text(one.field)]


def label_choices(code: ModelExposure) -> list[str]:
    """The columns that may stand for a record: those of code, and others that records show."""
    model = code.model
    own = [path for path in Declaration(code).paths[RETURN] if not path.hops]
    names = [one.text for one in own if not looks_secret(model, one.field.name)]
    return list(dict.fromkeys([*code.label_fields, *names]))


def withheld(code: ModelExposure, found: ModelExposure) -> frozenset[Names]:
    """The paths that records no longer show."""
    left = {names_of(code.model, path) for path in found.fields}
    return frozenset(names_of(code.model, path) for path in code.fields) - left


def names_of(model: type[Model], path: str) -> Names:
    """The names of the fields on the way, however the path is spelled."""
    try:
        return resolve(model, path).names
    except ImproperlyConfigured:  # a check says so; it cannot be used anyway
        return tuple(path.split("__"))


def has_table(model: type[Model]) -> bool:
    """Whether there is a table to read. Models with migrations have one, and so has a model whose
    database does not answer: the error comes when it is read.
    """
    if model._meta.managed:
        return True
    using = router.db_for_read(model)
    try:
        with transaction.atomic(using=using):
            # Planned and not run: what stands behind a view may take long.
            model._base_manager.using(using).values("pk").explain()
    except Exception as error:  # also of code of the site, which may want a tenant
        if isinstance(error, DatabaseError) and is_missing_table(error):
            log_once(model._meta.label, "is not exposed: it has no table.", error)
            return False
    return True


def exposed_by(registry: Registry, server: str) -> Exposed:
    """The exposures in force, kept with the registry until code or a row changes."""
    candidates = registry.candidates
    places, decided = placed_decisions(server)
    in_force: Cached[Exposed] = registry.in_force
    key = (server, places)
    return in_force.get(
        candidates, decided, make=lambda before: Exposed(candidates, decided), key=key
    )


# A digest of what decides the rights of a caller: permissions, scopes, staff, declarations.
#
# A stored answer is sent again only while this is the same as when it was made. What code of the
# site decides for each request, such as the rows of a tenant, is not in it: keep such answers for
# a short time only.

#: The part of it that depends on the principal.
principal_digests: CachePerPrincipal[None, str] = CachePerPrincipal()


def named(value: Any) -> str:
    """The same in every process: the `repr` of a function tells where it is in memory."""
    return getattr(value, "__qualname__", None) or repr(value)


#: Sets in one order, in whatever process.
_encoder = msgspec.json.Encoder(order="deterministic", enc_hook=named)


def rights_digest(principal: Principal) -> str:
    """The same text in every process until the rights change. May ask the database."""
    known = principal_digests.of(principal)
    found = known.get(None)
    if found is None:
        user = principal.user
        # A user class of the site may lack any of these.
        flags = [getattr(user, name, None) for name in ("is_active", "is_staff", "is_superuser")]
        permissions: Any = () if flags[-1] else getattr(user, "get_all_permissions", tuple)()
        groups = getattr(user, "groups", None)
        keys = () if groups is None else set(groups.values_list("pk", flat=True))
        rights = (flags, permissions, keys, principal.scopes, principal.restriction)
        found = known[None] = in_one_order(rights, decisions(principal.server))
    return digest_of(found + declared(registry.candidates))


_declared: Cached[str] = Cached()


def declared(candidates: Mapping[Any, ModelExposure]) -> str:
    """What code opened, as a digest that is made once for what is registered."""

    def make(before: str | None) -> str:
        names = ("label", "is_offered", *ModelExposure.__annotations__)
        parts = [[getattr(one, name) for name in names] for one in candidates.values()]
        return digest_of(in_one_order(parts))

    return _declared.get(candidates, make=make)


def in_one_order(*parts: Any) -> str:
    return _encoder.encode(parts).decode()

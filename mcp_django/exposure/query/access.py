"""The paths of an exposure that callers with equal rights may use, and conditions on them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import router
from django.db.models import FileField, Q, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.utils import timezone

from mcp_django.cached import Recent
from mcp_django.exposure.fields import kind_of
from mcp_django.exposure.options import ModelExposure, looks_secret
from mcp_django.exposure.paths import (
    COUNT_RELATED,
    FILTER,
    GROUP,
    INCLUDE,
    METRIC,
    OPTIONS,
    ORDER,
    PREFIXES,
    RETURN,
    SEARCH,
    Column,
    Declaration,
    Hop,
    ModelClass,
    Names,
    Path,
    begins_with,
    declaration_of,
    holds_text,
    label_target,
    locate,
    spellings,
)
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query.guard import (
    COUNTED,
    EXTREME,
    GuardedQuerySet,
    OpenModel,
    PathRule,
    Policy,
    guarded,
    is_plain,
)
from mcp_django.principal import CachePerPrincipal

#: Kinds of rights that are remembered, over all exposures.
MOST_KEPT = 1000


@dataclass(frozen=True, kw_only=True)
class Grants:
    """The answers of one caller's rights, as far as an exposure's paths ask for them."""

    forbidden: frozenset[ModelClass]
    restricted: frozenset[ModelClass]
    shown: Mapping[ModelClass, frozenset[str] | None]
    labels: Mapping[ModelClass, tuple[Path, ...]]
    #: Paths that staff took out of the records of a model.
    withheld: Mapping[ModelClass, frozenset[Names]]
    #: Columns that these callers get masked, with the kind of each mask.
    masked: Mapping[ModelClass, Mapping[str, str]] = field(default_factory=dict)
    #: Columns whose texts strangers wrote.
    untrusted: Mapping[ModelClass, frozenset[str]] = field(default_factory=dict)
    #: Models that staff let no path begin at or pass.
    not_followed: frozenset[ModelClass] = frozenset()
    #: The order that the site has for these callers, whether they may use it or not.
    ordering: tuple[str, ...] = ()
    #: Open models, by which the guard judges paths that nobody lists.
    models: Mapping[ModelClass, OpenModel] = field(default_factory=dict)


class AccessiblePaths:
    """The declared paths that callers with equal rights may use: built once, then looked up.

    With `by_rule` those paths can be used as well, for what each is good for; no list names them.
    """

    def __init__(
        self,
        declaration: Declaration,
        grants: Grants,
        *,
        by_rule: Sequence[PathByRule] = (),
    ) -> None:
        self.declaration = declaration
        self.exposure = declaration.exposure
        self.model = declaration.exposure.model
        self.keys = self.model._meta.pk_fields
        self.restricted = grants.restricted
        self.grants = grants
        self.paths = {
            use: tuple(path for path in paths if self._is_usable(path, use=use))
            for use, paths in declaration.paths.items()
        }
        #: The same, with those by rule.
        self.usable = {
            use: (*paths, *(one.path for one in by_rule if one.adds_to(paths, use=use)))
            for use, paths in self.paths.items()
        }
        self.tables = {use: spelled(paths) for use, paths in self.usable.items()}
        #: Relations whose records a metric counts, among the paths by rule.
        self.counted = {one.path.text: one.path for one in by_rule if COUNT_RELATED in one.uses}
        #: Columns of the model itself that records show masked. No other use has them.
        self.masks = self._masks()
        #: What records show, masked or not, in the order of the declaration.
        self.columns = tuple(
            path
            for path in declaration.paths[RETURN]
            if path in self.masks or path in self.paths[RETURN]
        )
        #: The same and paths by rule, by every spelling.
        self.column_table = {**spelled(tuple(self.masks)), **self.tables[RETURN]}
        self.search = tuple(
            (path, PREFIXES.get(declaration.search_prefixes[path.text][0], "icontains"))
            for path in self.paths[SEARCH]
        )
        self.labels, self.group_labels = (
            {path: found for path in self.usable[use] if (found := self._label(path))}
            for use in (RETURN, GROUP)
        )
        shown = () if self.exposure.aggregates_only else self.usable[RETURN]
        #: What records show to these callers, by the names of the fields on the way.
        self.shown = frozenset(path.names for path in shown)
        #: The primary key breaks ties anyway, so that everybody may order by it.
        self.key_paths = tuple(
            Path(text=part.name, model=self.model, hops=(), field=part) for part in self.keys
        )
        self.orders = {**spelled(self.key_paths), **self.tables[ORDER]}
        names = grants.ordering
        #: The site's order if this caller may use every part of it.
        self.default_order = (
            names if all(name.removeprefix("-") in self.orders for name in names) else ()
        )
        #: Lookups of callers that were understood: as many as there are paths and operators.
        self.lookups: dict[str, Any] = {}
        #: How records of the usual shapes are made: filled by `selection`.
        self.selections: dict[Any, Any] = {}
        #: Arguments that work, by tool: filled when a call is refused.
        self.examples: dict[str, dict[str, Any]] = {}
        #: SQL by the shape of a call: filled by `search`.
        self.plans: dict[Any, Any] = {}

    def _is_usable(self, path: Path, *, use: str) -> bool:
        passed = {model for hop in path.hops for model in hop.models}
        if passed & self.grants.forbidden:
            return False
        if path.hops and {self.model, *passed} & self.grants.not_followed:
            return False
        for at, (model, name) in enumerate(path.steps):
            if not self._is_shown(model, name) or name in self.grants.masked.get(model, ()):
                return False
            # Of the model itself the exposure says what is left, use by use.
            if at and begins_with(path.names[at:], self.grants.withheld.get(model, ())):
                return False
        # A join would show, or sort by, rows that the caller cannot see.
        return use in (INCLUDE, FILTER, SEARCH) or self.needs_subquery(path) is None

    def _is_shown(self, model: ModelClass, name: str) -> bool:
        names = self.grants.shown.get(model)
        return names is None or name in names

    def _masks(self) -> dict[Path, str]:
        kinds = {} if self.exposure.aggregates_only else self.grants.masked.get(self.model, {})
        own = [path for path in self.declaration.paths[RETURN] if not path.hops]
        return {
            path: kinds[path.field.name]
            for path in own
            if path.field.name in kinds and self._is_shown(self.model, path.field.name)
        }

    def is_untrusted(self, path: Path) -> bool:
        """Whether strangers wrote the values."""
        model, name = path.steps[-1]
        return name in self.grants.untrusted.get(model, ()) and holds_text(path.field)

    def needs_subquery(self, path: Path, start: int = 0) -> int | None:
        """The first hop that needs a subquery over the rows that the caller may see."""
        for at in range(start, len(path.hops)):
            hop = path.hops[at]
            if hop.is_many or hop.model in self.restricted:
                return at
        return None

    def _label(self, path: Path) -> tuple[Path, ...]:
        """The columns that a foreign key shows beside its value, if this caller may see them."""
        target = label_target(path)
        if target is None or target in self.grants.forbidden:
            return ()
        # Of what nobody lists the guard knows columns, and not which rows are there.
        if path.is_by_rule and target in self.restricted:
            return ()
        hops = (*path.hops, Hop(field=path.field, model=target))
        return tuple(
            Path(
                text=f"{path.text}__{column.text}", model=self.model, hops=hops, field=column.field
            )
            for column in self.label_of(target)
        )

    def label_of(self, model: ModelClass) -> tuple[Path, ...]:
        """The columns that stand for a record of a model, if this caller may see all of them."""
        columns, masked = self.grants.labels.get(model, ()), self.grants.masked.get(model, ())
        names = [column.field.name for column in columns]
        is_seen = all(name not in masked and self._is_shown(model, name) for name in names)
        return columns if is_seen else ()

    def names(self, use: str) -> list[str]:
        """What a caller is told: each listed path once, as the site spells it."""
        return [path.text for path in (self.columns if use == RETURN else self.paths[use])]

    # What paths of other models may use of this one without a listing.

    @cached_property
    def own(self) -> Mapping[str, Path]:
        """The columns of the model itself that records show, by every spelling."""
        # Relations show the key anyway.
        own = tuple(
            path
            for path in self.paths[RETURN]
            if not path.hops
            and path.names in self.shown
            and (path.field.primary_key or not looks_secret(self.model, path.field.name))
        )
        return {name: path for name, path in spelled(own).items() if LOOKUP_SEP not in name}

    @cached_property
    def files(self) -> Sequence[FileField]:
        """The fields of the model itself that name a file and that records show."""
        shown = (path.field for path in self.paths[RETURN] if not path.hops)
        return [field for field in shown if isinstance(field, FileField)]

    @cached_property
    def many(self) -> Mapping[str, Any]:
        """The relations of the model itself that lead to many records, by name."""
        relations = (*self.paths[INCLUDE], *self.paths[FILTER])
        return {
            path.hops[0].name: path.hops[0].field
            for path in relations
            if path.field is None and len(path.hops) == 1
        }

    @cached_property
    def backward(self) -> Mapping[str, Any]:
        """The relations of other models that `exclude` leaves, by the name that lookups have."""
        # Django keeps those of many to many that have no name, under one that nobody can know.
        return {
            field.name: field
            for field in self.model._meta.related_objects
            if field.path_infos and not field.hidden and not self.is_excluded((field.name,))
        }

    def relation(
        self, name: str, access_to: Callable[[ModelClass], AccessiblePaths | None]
    ) -> Hop | None:
        """The relation of that name, if the model shows it, or the other side, which has its key.
        `access_to` gives the paths of another model, if it is open.
        """
        path, field = self.own.get(name), self.many.get(name)
        if path is not None:
            # Not by the name of its column: customer_id leads nowhere in Django, either.
            is_relation = path.field.is_relation and getattr(path.field, "path_infos", None)
            field = path.field if is_relation and name == path.field.name else None
        elif field is None and name in self.backward:
            field = self.backward[name]
            other, far = access_to(field.related_model), field.field.name
            shown = () if other is None else other.many if field.many_to_many else other.own
            field = field if far in shown else None
        if field is None:
            return None
        return Hop(field=field, model=field.path_infos[-1].to_opts.model)

    @property
    def relations(self) -> list[str]:
        """The names of what may be a relation."""
        own = (path.names[0] for path in self.own.values())
        return list(dict.fromkeys([*own, *self.many, *self.backward]))

    def is_left(self, names: Names, *, use: str) -> bool:
        """Whether no list of the exposure leaves the column, or the relation, out of a use."""
        option = OPTIONS.get(use)
        is_listed = option is not None and getattr(self.exposure, option) is not None
        return not is_listed or any(path.names == names for path in self.paths[use])

    def is_excluded(self, names: Names) -> bool:
        """Whether `exclude` closes a path that begins at the model, also one that nobody lists."""
        return begins_with(names, self.declaration.hidden)

    @cached_property
    def columns_by_use(self) -> Mapping[str, frozenset[Column]]:
        """The same columns as a query has them, by what they may be used for."""
        own = {path.names: path for path in self.own.values()}
        columns = {
            use: self._columns(path for names, path in own.items() if self.is_left(names, use=use))
            for use in (RETURN, FILTER, ORDER, GROUP, METRIC)
        }
        columns[RETURN] |= self._columns_of_labels(
            path for path in own.values() if label_target(path) not in self.restricted
        )
        # A cursor compares what records are ordered by.
        columns[FILTER] |= columns[ORDER]
        columns |= {EXTREME: columns[METRIC], COUNTED: columns[GROUP] | columns[METRIC]}
        return {use: frozenset(found) for use, found in columns.items()}

    @cached_property
    def policy(self) -> Policy:
        keys = {locate(self.model, part.attname) for part in self.keys}
        order = self._columns(self.paths[ORDER]) | keys
        labels = self._columns_of_labels(path for path in self.labels if not path.is_by_rule)
        columns = {
            RETURN: self._columns(self.columns) | labels | order,
            ORDER: order,
            FILTER: self._columns((*self.paths[FILTER], *self.paths[SEARCH])) | order,
        }
        return make_policy(self.model, columns, self.rule_from(self.model))

    @cached_property
    def group_policy(self) -> Policy:
        """For queries that show groups and metrics in place of records."""
        groups, metrics = self._columns(self.paths[GROUP]), self._columns(self.paths[METRIC])
        shown = [path for path in self.paths[METRIC] if path.names in self.shown]
        columns = {
            GROUP: groups,
            METRIC: metrics,
            EXTREME: self._columns(shown),
            COUNTED: groups | metrics,
            FILTER: self.policy.columns[FILTER],
        }
        return make_policy(self.model, columns, self.rule_from(self.model))

    def _columns_of_labels(self, paths: Iterable[Path]) -> set[Column]:
        return {
            locate(self.model, one.lookup) for path in paths for one in self.labels.get(path, ())
        }

    def rule_from(self, model: ModelClass) -> PathRule | None:
        """How the guard judges what was not declared, in a query on one of the open models."""
        if model not in self.grants.models:
            return None
        return PathRule(root=model, models=self.grants.models)

    def _columns(self, paths: Iterable[Path]) -> set[Column]:
        return {locate(self.model, self.lookup(path)) for path in paths}

    def lookup(self, path: Path, start: int = 0) -> str:
        """The column that a condition on the path compares here, before any subquery."""
        hard = self.needs_subquery(path, start)
        return path.lookup_from(start) if hard is None else path.lookup_of_link(start, hard)

    @cached_property
    def digest(self) -> str:
        """Changes whenever these callers can reach something else: old cursors end with it."""
        # Cursors are of records, whatever groups there are, and whatever is beside them.
        uses = (RETURN, FILTER, SEARCH, ORDER)
        tables = {use: sorted(self.tables[use]) for use in uses}
        restricted = sorted(model._meta.label for model in self.restricted)
        known = (tables, restricted, self.default_order)
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def spelled(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Every spelling of every path; what the site wrote itself comes first."""
    table = {path.text: path for path in paths}
    for path in paths:
        for name in spellings(path):
            table.setdefault(name, path)
    return table


def make_policy(
    model: ModelClass, columns: Mapping[str, Iterable[Column]], rule: PathRule | None
) -> Policy:
    """The policy of queries on a model: these columns by use, and the joins that lead to them."""
    sets = {use: frozenset(found) for use, found in columns.items()}
    trails = {trail for found in sets.values() for trail, _ in found}
    opts: Any = model._meta.concrete_model._meta  # type: ignore[union-attr]
    return Policy(
        # Proxies share the table of what they stand for.
        table=opts.db_table,
        columns=sets,
        joins=frozenset(trail[: size + 1] for trail in trails for size in range(len(trail))),
        rule=rule,
    )


@dataclass(frozen=True, kw_only=True)
class PathByRule:
    """A path that nobody lists, and what it may be used for."""

    path: Path
    uses: frozenset[str]

    def adds_to(self, paths: Iterable[Path], *, use: str) -> bool:
        return use in self.uses and all(one.names != self.path.names for one in paths)


_access: Recent[tuple[Any, ...], AccessiblePaths] = Recent(size=MOST_KEPT)
principal_access: CachePerPrincipal[ModelExposure, AccessiblePaths] = CachePerPrincipal()


def allowed_paths(rights: Rights, exposure: ModelExposure) -> AccessiblePaths:
    """What this caller can reach. Raises NotFound where the caller has no such model."""
    rights.rows(exposure.model)  # so that a model that is gone is gone here, too
    known = principal_access.of(rights.principal)
    found = known.get(exposure) or rights.paths.get(exposure)
    if found is None:
        found = rights.paths[exposure] = find_access(rights, exposure)
        models = (exposure.model, *declaration_of(exposure).passed)
        if all(rights.is_constant(model) for model in models):
            known[exposure] = found
    return found


def find_access(rights: Rights, exposure: ModelExposure) -> AccessiblePaths:
    declaration, exposed = declaration_of(exposure), rights.exposed
    home = home_of(rights, exposure.model)
    forbidden = frozenset(
        model for model in declaration.passed if not is_open(rights, exposure, model, home=home)
    )
    models = (exposure.model, *(one for one in declaration.passed if one not in forbidden))
    declared = {one: exposed.exposures[one] for one in models if one in exposed.exposures}
    ordering = tuple(exposure.get_ordering(rights.request))
    # Most sites have none of these, and some are asked for each call.
    masking, marked = exposed.masking, exposed.untrusted
    grants = Grants(
        forbidden=forbidden,
        restricted=frozenset(one for one in models[1:] if not is_plain(rights.rows(one).query)),
        shown={model: rights.shown(model) for model in models},
        labels={model: declaration_of(one).labels for model, one in declared.items()},
        withheld={one: names for one in models if (names := exposed.withheld.get(one))},
        masked={one: kinds for one in models if masking and (kinds := rights.masks(one))},
        untrusted={one: texts for one in models if marked and (texts := rights.untrusted(one))},
        not_followed=frozenset(models) & exposed.not_followed,
        # Nobody knows which columns an expression reads.
        ordering=ordering if all(isinstance(name, str) for name in ordering) else (),
    )
    maps = (grants.shown, grants.labels, grants.withheld, grants.untrusted)
    masks = tuple((one, frozenset(kinds.items())) for one, kinds in grants.masked.items())
    sets = (forbidden, grants.restricted, grants.not_followed, grants.ordering, masks)
    key = (exposure, *sets, *(tuple(one.items()) for one in maps))
    found = _access.get(key)
    if found is None:
        found = AccessiblePaths(declaration, grants)
        _access.put(key, found)
    return found


def filtered_kind(access: AccessiblePaths, path: Path) -> str:
    """The kind of a path whose operators filters have. What is in JSON and in arrays may be asked
    where records show it: a site that lists them for filters alone has opened NULL.
    """
    kind = kind_of(path.field)
    is_shown = path.is_by_rule or path.text in access.tables[RETURN]
    return kind if is_shown or kind not in ("json", "array") else "other"


def is_open(rights: Rights, exposure: ModelExposure, model: ModelClass, *, home: str) -> bool:
    """Whether paths of an exposure may pass a model. Rows judged in Python cannot be joined."""
    return (
        rights.may_view(model)
        and not rights.checks_rows_one_by_one(model)
        and home_of(rights, model) == home
        and (model is exposure.model or not hides_records(rights, model))
    )


def hides_records(rights: Rights, model: ModelClass) -> bool:
    """Whether a model has numbers about groups only. A path through it would show its records."""
    exposure = rights.exposed.exposures.get(model)
    return exposure is not None and exposure.aggregates_only


def home_of(rights: Rights, model: ModelClass) -> str:
    """The database that a model lives in. A router may name another replica for each read."""
    rows: Any = rights.rows(model)
    return str(rows._db or router.db_for_write(model))


# Conditions -> Q. A hop that multiplies or narrows rows becomes IN over the rows one may see.
#
# IN and not EXISTS: SQLite can drive from an uncorrelated subquery (10 times faster there), the
# others plan both alike, and nothing in it refers to the query outside. No join ever multiplies.


@dataclass(frozen=True, kw_only=True)
class Condition:
    path: Path
    transform: str = ""
    operator: str
    value: Any


def conjunction(
    rights: Rights, access: AccessiblePaths, conditions: Sequence[Condition], *, depth: int = 0
) -> Q:
    """All of the conditions, on the model that stands `depth` hops down their paths."""
    parts: list[Q] = []
    nested: dict[tuple[str, ...], list[Condition]] = {}
    for condition in conditions:
        path = condition.path
        hard = access.needs_subquery(path, depth)
        if hard is None:
            parts.append(leaf(condition, depth))
        elif path.field is None and hard == len(path.hops) - 1 and condition.operator == "isnull":
            found = relation_condition(rights, access, path, [], depth=depth)
            parts.append(~found if condition.value else found)
        else:
            # Conditions behind the same hop speak of the same related row, in exclude too.
            nested.setdefault(path.names[: hard + 1], []).append(condition)
    parts += [
        relation_condition(rights, access, group[0].path, group, depth=depth)
        for group in nested.values()
    ]
    return Q(*parts)


def relation_condition(
    rights: Rights, access: AccessiblePaths, path: Path, group: Sequence[Condition], *, depth: int
) -> Q:
    """Our key IN (the keys that the matching, visible rows behind one hop point to)."""
    hard = access.needs_subquery(path, depth) or 0
    theirs = path.hops[hard].link[1]
    rows = related_rows(rights, access, path, group, hard=hard)
    if theirs.null:  # x NOT IN (1, NULL) is never true
        rows = rows.filter(Q((f"{theirs.attname}__isnull", False)))
    return Q((f"{path.lookup_of_link(depth, hard)}__in", rows.values(theirs.attname)))


def related_rows(
    rights: Rights, access: AccessiblePaths, path: Path, group: Sequence[Condition], *, hard: int
) -> GuardedQuerySet:
    """The matching, visible rows behind one hop, or those in between that lead to them."""
    hop, depth = path.hops[hard], hard + 1
    links = [hop.link[1].attname if hop.ends is None else hop.ends[1].target_field.attname]
    if hop.is_generic:
        links.append(kind_field(hop).attname)
    # Only what the group needs may be used.
    used = [access.lookup(one.path, depth) for one in group if not one.path.is_by_rule]
    policy = policy_of(hop.model, [*links, *used], rule=access.rule_from(hop.model))
    rows = guarded(rights.rows(hop.model), policy)
    if inner := conjunction(rights, access, group, depth=depth):
        rows = rows.filter(inner)
    if hop.is_generic:
        return rows.filter(is_of_kind(hop, using=rows.db))
    if hop.ends is None:
        return rows
    near, far = hop.ends
    targets: Any = rows.values(*links)
    base = rows_between(rights, near.model, using=targets._db)
    between = guarded(base, policy_of(near.model, [near.attname, far.attname]))
    return between.filter(Q((f"{far.attname}__in", targets)))


def rows_between(rights: Rights, through: ModelClass, *, using: str | None) -> QuerySet[Any]:
    """A through model of the site's own has rows that may not be seen, too."""
    if through._meta.auto_created:
        return QuerySet(through, using=using)
    return rights.rows(through)


def kind_field(hop: Hop) -> Any:
    """What tells, behind a generic relation, which model a row belongs to."""
    return hop.model._meta.get_field(hop.field.content_type_field_name)


def is_of_kind(hop: Hop, *, using: str) -> Q:
    field = hop.field
    content_types: Any = apps.get_model("contenttypes", "ContentType")._default_manager
    content_type = content_types.db_manager(using).get_for_model(
        field.model, for_concrete_model=field.for_concrete_model
    )
    return Q((kind_field(hop).attname, content_type.pk))


def policy_of(
    model: ModelClass, lookups: Sequence[str], *, rule: PathRule | None = None
) -> Policy:
    """For a subquery: these columns, the key, and what joins them."""
    names = {*lookups, *(part.attname for part in model._meta.pk_fields)}
    columns = [locate(model, name) for name in names]
    return make_policy(model, {FILTER: columns, RETURN: columns, ORDER: ()}, rule)


def leaf(condition: Condition, depth: int) -> Q:
    name = condition.path.lookup_from(depth)
    operator, value = condition.operator, condition.value
    if condition.transform == "date":
        return day(name, operator, value)
    if condition.transform:
        name += LOOKUP_SEP + condition.transform
        if operator == "range":
            return Q((f"{name}__gte", value[0]), (f"{name}__lte", value[1]))
    return Q((f"{name}{LOOKUP_SEP}{operator}", value))


def day(name: str, operator: str, value: Any) -> Q:
    """`placed_at__date` as a range: it can use an index, and MariaDB needs no time zone tables."""
    low, high = value if operator == "range" else (value, value)
    starts, ends = midnight(low), midnight(high + timedelta(days=1))
    if operator in ("exact", "range"):
        return Q((f"{name}__gte", starts), (f"{name}__lt", ends))
    edge = ends if operator in ("gt", "lte") else starts
    return Q((f"{name}__{'gte' if operator in ('gt', 'gte') else 'lt'}", edge))


def midnight(given: date) -> datetime:
    naive = datetime.combine(given, time.min)
    return timezone.make_aware(naive) if settings.USE_TZ else naive

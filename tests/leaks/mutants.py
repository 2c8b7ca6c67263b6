"""Leaks that the tests plant, to see that they find them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from mcp_django.exposure import admin_sites
from mcp_django.exposure.paths import FILTER, SEARCH, declaration_of, resolve
from mcp_django.exposure.permissions import Rights
from mcp_django.exposure.query import (
    access,
    aggregates,
    describe,
    find,
    included,
    pagination,
    paths_by_rule,
    related_counts,
    selection,
)
from mcp_django.exposure.query.access import AccessiblePaths, allowed_paths
from mcp_django.exposure.query.guard import Inspection, PathRule
from mcp_django.exposure.query.search import Search
from tests.nasty import models

SUPERUSER, SOME = "superuser with a read token", "staff with some rights"
NARROWED, BY_ROWS = "staff who see the open rows", "staff where rows hide what code shows"


@dataclass(frozen=True)
class Mutant:
    """A leak, which the function that it decorates plants."""

    viewer: str
    #: The model that is asked about.
    root: Any
    #: The promise that it breaks.
    promise: str
    #: Whether only paths that nobody was told of show it.
    is_exhaustive: bool = False
    #: Whether it is about paths that nobody lists.
    is_ruled: bool = False

    def __call__(self, plant: Plant) -> Plant:
        MUTANTS[plant.__name__] = self, plant
        return plant


Plant = Callable[[Any], None]
MUTANTS: dict[str, tuple[Mutant, Plant]] = {}


def let_through(patch: Any, *, is_told: bool) -> None:
    """A hidden path in the tables of one exposure; told of, or to be guessed."""
    make = AccessiblePaths.__init__

    def make_with_more(self: AccessiblePaths, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        if self.model is models.Watch:
            # Several: whoever sees the model asks for a share of the names only.
            for name in ("secret_reason", "order__margin", "order__remark", "order__gift"):
                path = resolve(models.Watch, name)
                self.tables[FILTER][name] = path
                # The policy is made of the paths, so the guard does not mind.
                self.paths[FILTER] = (*self.paths[FILTER], path)
                if not is_told:
                    object.__setattr__(path, "text", "order__number")

    patch.setattr(AccessiblePaths, "__init__", make_with_more)


@Mutant(SUPERUSER, models.Watch, "difference")
def let_a_hidden_path_through(patch: Any) -> None:
    let_through(patch, is_told=True)


@Mutant(SUPERUSER, models.Watch, "undescribed", is_exhaustive=True)
def let_an_untold_path_through(patch: Any) -> None:
    let_through(patch, is_told=False)


def drop_the_column_rule(patch: Any) -> None:
    patch.setattr(Inspection, "column", lambda self, col, *, use: None)


@Mutant(NARROWED, models.Tag, "canary")
def show_all_labels(patch: Any) -> None:
    labels_of_keys = selection.labels_of_keys
    patch.setattr(
        selection,
        "labels_of_keys",
        lambda path, convert, names, check: labels_of_keys(path, convert, names, None),
    )


@Mutant(NARROWED, models.Tricky, "difference")
def join_narrowed_hops(patch: Any) -> None:
    def first_of_many(self: AccessiblePaths, path: Any, start: int = 0) -> int | None:
        hops = enumerate(path.hops)
        return next((at for at, hop in hops if at >= start and hop.is_many), None)

    patch.setattr(AccessiblePaths, "needs_subquery", first_of_many)


@Mutant(SUPERUSER, User, "difference")
def search_what_looks_secret(patch: Any) -> None:
    patch.setattr(admin_sites, "is_open", lambda model, path, listed: True)


@Mutant(SOME, models.Line, "difference")
def search_what_is_forbidden(patch: Any) -> None:
    is_usable = AccessiblePaths._is_usable
    patch.setattr(
        AccessiblePaths,
        "_is_usable",
        lambda self, path, *, use: use == SEARCH or is_usable(self, path, use=use),
    )


@Mutant(SUPERUSER, models.Tricky, "canary")
def keep_hidden_columns_in_cursors(patch: Any) -> None:
    patch.setattr(pagination, "is_shown", lambda access, order: True)


@Mutant(SOME, models.Line, "undescribed")
def describe_what_is_declared(patch: Any) -> None:
    def declared(rights: Any, exposure: Any) -> AccessiblePaths:
        found = copy.copy(allowed_paths(rights, exposure))
        found.paths = declaration_of(exposure).paths
        return found

    patch.setattr(describe, "allowed_paths", declared)


@Mutant(BY_ROWS, models.Line, "undescribed")
def pass_what_staff_took_away(patch: Any) -> None:
    patch.setattr(access, "begins_with", lambda names, gone: False)


@Mutant(SUPERUSER, models.Line, "difference", is_exhaustive=True, is_ruled=True)
def end_by_rule_at_what_nobody_shows(patch: Any) -> None:
    patch.setattr(
        AccessiblePaths,
        "own",
        property(
            lambda self: {
                field.name: resolve(self.model, field.name)
                for field in self.model._meta.concrete_fields
            }
        ),
    )
    patch.setattr(AccessiblePaths, "is_left", lambda self, names, *, use: True)


@Mutant(SUPERUSER, User, "difference", is_exhaustive=True, is_ruled=True)
def pass_rows_that_are_judged(patch: Any) -> None:
    patch.setattr(paths_by_rule, "is_open", lambda *args, **options: True)


@Mutant(NARROWED, models.Line, "difference", is_exhaustive=True, is_ruled=True)
def join_narrowed_hops_by_rule(patch: Any) -> None:
    patch.setattr(paths_by_rule.Rule, "is_narrowed", lambda self, model: False)
    join_narrowed_hops(patch)


@Mutant(NARROWED, models.Order, "difference", is_ruled=True)
def count_rows_that_nobody_sees(patch: Any) -> None:
    tables_of = related_counts.tables_of
    patch.setattr(
        related_counts,
        "tables_of",
        lambda *args, **options: (
            replace(table, rows=QuerySet(table.rows.model))
            for table in tables_of(*args, **options)
        ),
    )
    # The guard would refuse it.
    patch.setattr(PathRule, "is_narrowed", lambda self, model: False)


class AllRows:
    """Rights that narrow no rows."""

    def __init__(self, rights: Any) -> None:
        self.rights = rights

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rights, name)

    def rows(self, model: Any) -> QuerySet[Any]:
        return QuerySet(model)


def widen(module: Any, patch: Any) -> None:
    """What a module asks about related rows is about all of them."""
    make = module.related_rows
    patch.setattr(
        module,
        "related_rows",
        lambda rights, *args, **options: make(AllRows(rights), *args, **options),
    )


@Mutant(NARROWED, models.Order, "difference", is_exhaustive=True)
def count_members_that_nobody_sees(patch: Any) -> None:
    widen(included, patch)


@Mutant(SUPERUSER, models.Note, "difference")
def use_masked_columns(patch: Any) -> None:
    is_usable = AccessiblePaths._is_usable

    def usable(self: AccessiblePaths, path: Any, *, use: str) -> bool:
        grants = self.grants
        self.grants = replace(grants, masked={})
        try:
            return is_usable(self, path, use=use)
        finally:
            self.grants = grants

    patch.setattr(AccessiblePaths, "_is_usable", usable)


@Mutant(SUPERUSER, models.Note, "canary")
def show_masked_columns(patch: Any) -> None:
    patch.setattr(selection, "mask_column", lambda values, kind, *, reader: list(values))


@Mutant(NARROWED, models.Watch, "canary")
def label_groups_by_any_row(patch: Any) -> None:
    labels_by_key = aggregates.labels_by_key
    patch.setattr(
        aggregates,
        "labels_by_key",
        lambda rows, *rest: labels_by_key(QuerySet(rows.model), *rest),
    )


@Mutant(NARROWED, models.Seat, "difference")
def measure_rows_that_nobody_sees(patch: Any) -> None:
    guarded = aggregates.guarded
    patch.setattr(
        aggregates, "guarded", lambda rows, policy: guarded(QuerySet(rows.model), policy)
    )


@Mutant(NARROWED, models.Customer, "difference")
def note_records_that_nobody_sees(patch: Any) -> None:
    count = Search.count
    patch.setattr(
        Search,
        "count",
        lambda self, *args, **options: count(
            replace(self, rights=AllRows(self.rights)), *args, **options
        ),
    )


@Mutant(SUPERUSER, models.Application, "canary")
def show_rows_that_are_judged_away(patch: Any) -> None:
    patch.setattr(find, "judge", lambda search, rows: [True] * rows.count)


@Mutant(SUPERUSER, models.Application, "canary")
def find_records_that_are_judged_away(patch: Any) -> None:
    patch.setattr(Rights, "may_view_object", lambda self, model, obj: True)


@Mutant(NARROWED, models.Line, "difference")
def filter_by_rows_that_nobody_sees(patch: Any) -> None:
    widen(access, patch)

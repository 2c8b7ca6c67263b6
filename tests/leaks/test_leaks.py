"""Whatever anybody asks, nothing hidden comes out, and nothing tells that it is there."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from django.apps import apps
from django.contrib.auth.models import User

from mcp_django.exposure.primitives import WRITES
from mcp_django.exposure.query.arguments import AggregateRecords, FindRecords
from mcp_django.exposure.tools.records import RECORD_TOOLS
from mcp_django.stores.cache_version import generations
from tests.leaks.canaries import Canaries
from tests.leaks.guard_alone import ask_past_the_first_stage
from tests.leaks.mutants import MUTANTS, drop_the_column_rule
from tests.leaks.paths import Backwards, Sounds
from tests.leaks.places import CONDITIONS, NAMES, PLACES
from tests.leaks.rows import MODELS, World
from tests.leaks.site import HIDDEN, VIEWERS, make_registry, narrow_by_rows, rights_of
from tests.leaks.sweep import DRAWN, Sweep
from tests.nasty import models as nasty

pytestmark = pytest.mark.django_db

#: Asked for by `make leaks`. Each other run draws questions of its own.
EVERYTHING = bool(os.environ.get("MCP_TEST_LEAKS"))
#: The same callers, on a site that lists hardly any path.
BY_RULE = ", by rule"
SWEEPS = [*VIEWERS, *(f"{name}{BY_RULE}" for name in VIEWERS)]
PROMISES = {
    "canary": "a hidden value was said",
    "difference": "an answer depends on what is hidden",
    "twin": "a path that is hidden is told from one that is made up",
    "undescribed": "what is told and what works are not the same",
}


@pytest.fixture(scope="module")
def reports(database, seed):
    """What was asked as everybody. An error that is no ToolError ends this."""
    found, drawn = {}, 1 if EVERYTHING else DRAWN
    for name, viewer in VIEWERS.items():
        with database():
            found[name] = Sweep(viewer, seed, drawn=drawn).run()
        with database():
            found[f"{name}{BY_RULE}"] = Sweep(viewer, seed, is_ruled=True, drawn=drawn).run()
    return found


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("viewer", SWEEPS)
def test_a_caller_learns_nothing_of_what_is_hidden(reports, viewer, promise, seed):
    broken = reports[viewer].leaks[promise]

    assert broken[:3] == [], f"seed {seed}: {PROMISES[promise]}, {len(broken)} times"


# Whether that was everything.


def test_every_model_of_the_schema_was_asked_for_and_passed(reports):
    asked = set().union(*(one.models for one in reports.values()))

    # Other tests make models of their own in this application.
    schema = {
        model
        for model in apps.get_app_config("nasty").get_models()
        if model.__module__ == nasty.__name__
    }
    assert asked >= {*schema, User}
    assert len(schema) > 15


def test_every_lookup_of_every_field_was_tried_in_every_kind_of_place(reports, leaky_site):
    tried = set().union(*(one.lookups for one in reports.values()))
    fields = {
        field
        for model in MODELS
        for field in model._meta.get_fields()
        if hasattr(field, "get_lookups")
    }
    registered = {(type(field), name) for field in fields for name in field.get_lookups()}

    assert {Backwards.lookup_name, Sounds.lookup_name} <= {name for _, name in registered}
    assert registered - {(kind, name) for kind, name, _ in tried} == set()
    names = {name for _, name in registered}
    combined = {(name, place) for _, name, place in tried}
    assert {(name, place) for name in names for place in CONDITIONS} - combined == set()


@pytest.mark.parametrize("viewer", SWEEPS)
def test_every_caller_asked_in_every_place_that_takes_a_path(reports, viewer):
    places = reports[viewer].places

    assert {*CONDITIONS, *NAMES} - places.keys() == set()


def names_of(struct):
    return [name for name in struct.__struct_fields__ if name != "model"]


def test_every_place_argument_and_tool_was_used(reports):
    places: Counter[str] = sum((one.places for one in reports.values()), Counter())
    used = set().union(*(one.used for one in reports.values()))

    assert PLACES.keys() - places.keys() == set()
    assert set(RECORD_TOOLS) - WRITES - used == set()
    assert {*names_of(FindRecords)} - used == set()
    assert {f"aggregate {name}" for name in names_of(AggregateRecords)} - used == set()


def test_every_hidden_column_was_asked_for_where_it_is_and_through_relations(reports):
    paths = set().union(*(one.paths for one in reports.values()))
    for model, names in HIDDEN.items():
        for name in names:
            assert f"{model._meta.label_lower}.{name}" in paths
            is_alone = model._meta.label_lower == "nasty.seat"
            assert is_alone or any(one.endswith(f"__{name}") for one in paths)


def test_it_says_how_much_it_asked(reports, seed):
    calls = {name: one.calls for name, one in reports.items()}
    paths = set().union(*(one.paths for one in reports.values()))
    read = sum(one.read for one in reports.values())
    pairs = {(kind, name) for one in reports.values() for kind, name, _ in one.lookups}
    told = {name: len(one.told) for name, one in reports.items()}
    print(f"seed {seed}: {len(paths)} paths, {len(pairs)} pairs of field class and lookup")
    print(f"{len(PLACES)} places, {sum(calls.values())} calls of which {read} read rows: {calls}")

    assert len(pairs) > 500
    assert len(paths) > (30_000 if EVERYTHING else 15_000)
    assert sum(calls.values()) > (500_000 if EVERYTHING else 100_000)
    assert read > 5_000
    # Those who see less are told less, and were asked for no less than what they see.
    assert told["anonymous"] < told["a credential for one model"] < told["staff with some rights"]


# Whether it would find a leak.


@pytest.mark.parametrize(("mutant", "plant"), MUTANTS.values(), ids=MUTANTS)
def test_a_planted_leak_is_found(mutant, plant, database, seed, monkeypatch):
    plant(monkeypatch)

    with database():
        sweep = Sweep(VIEWERS[mutant.viewer], seed, roots=[mutant.root], is_ruled=mutant.is_ruled)
        report = sweep.run(is_exhaustive=mutant.is_exhaustive)

    assert report.leaks[mutant.promise]


# Whether the second stage would hold alone.


def past_the_first_stage(viewer, seed):
    world, is_by_rows = World(Canaries(seed)), VIEWERS[viewer].is_by_rows
    if is_by_rows:
        narrow_by_rows()
    rights = rights_of(VIEWERS[viewer], world, make_registry(is_wide=is_by_rows))
    return ask_past_the_first_stage(rights, MODELS)


@pytest.mark.parametrize("viewer", VIEWERS)
def test_the_guard_compiles_no_hidden_path(viewer, database, seed):
    with database():
        tried, passed = past_the_first_stage(viewer, seed)
    generations.forget()

    assert tried > 0
    assert passed == []


def test_a_guard_without_its_column_rule_is_found(database, seed, monkeypatch):
    drop_the_column_rule(monkeypatch)

    with database():
        _, passed = past_the_first_stage("staff with all rights", seed)

    assert passed

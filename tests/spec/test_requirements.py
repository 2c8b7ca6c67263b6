"""The manifest against the tests, both ways, and against the protocol layer."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest
from mcp_types.methods import CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, SERVER_NOTIFICATIONS

from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.revisions import Era, Features, Revision
from tests.children import finished
from tests.spec.requirements import BY_ID, REQUIREMENTS, Missing, Requirement

TESTS = Path(__file__).parent.parent
#: Nothing is run, so no assertion needs to be rewritten.
COLLECT = ("-m", "pytest", "--collect-only", "-q", "--assert=plain")
COLLECT += ("-p", "tests.spec.plugin")
#: The last number of the list that the manifest was made from.
LAST = 232
PAGE = re.compile(r"[a-z_-]+(/[a-z_-]+){0,2}")
#: Things to look at that are no message with a name of its own.
OTHER = {
    "a batch", "a client response", "a log record", "a question to the client", "an HTTP body",
    "an HTTP request", "an HTTP response", "an authorization", "an event stream", "any error",
    "any list", "any message", "any notification", "any request", "any response", "any result",
    "capabilities", "HTTP DELETE", "HTTP GET", "stdio",
}  # fmt: skip
V2511 = "2025-11-25"
#: The models know no tasks: the older ones were an experiment, the newer ones are an extension.
TASKS = {
    *((name, V2511) for name in ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")),
    *((name, "2026-07-28") for name in ("tasks/get", "tasks/update", "tasks/cancel")),
}
MESSAGES = {*CLIENT_REQUESTS, *CLIENT_NOTIFICATIONS, *SERVER_NOTIFICATIONS, *TASKS}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The requirements of each test that is collected, of all files that have any."""
    story = tmp_path_factory.mktemp("spec") / "story.json"
    files = [path for path in TESTS.rglob("test_*.py") if "@requirement(" in path.read_text()]
    done = finished(*COLLECT, "--story", story, *files)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(story.read_text())["shown"]


def names(requirements):
    return sorted(one.id for one in requirements)


# The manifest and the tests


@pytest.mark.thorough
def test_the_tests_show_every_requirement_that_is_implemented_and_nothing_else(shown):
    marks = {name for ids in shown.values() for name in ids}

    assert sorted(marks) == [one for one in names(REQUIREMENTS) if BY_ID[one].is_implemented]


# The manifest by itself


def test_no_two_requirements_have_the_same_name_and_each_word_they_use_is_known():
    features = {field.name for field in fields(Features)}

    assert len(BY_ID) == len(REQUIREMENTS)
    assert {one.feature or one.lacking for one in REQUIREMENTS} <= features | {""}
    assert {one.missing for one in REQUIREMENTS} == {None, *Missing}


def test_every_number_of_the_list_is_there_and_parts_of_one_are_about_different_things():
    parts = Counter(
        (one.number, one.looks_at, one.revisions, one.is_implemented) for one in REQUIREMENTS
    )

    assert sorted({number for number, *_ in parts}) == list(range(1, LAST + 1))
    assert [part for part, times in parts.items() if times > 1] == []


@pytest.mark.parametrize("one", REQUIREMENTS, ids=lambda one: one.id)
def test_a_requirement_is_a_sentence_about_something_on_a_page(one: Requirement):
    assert re.fullmatch(r"[a-z0-9-]+:[a-z0-9-]+", one.id)
    assert re.fullmatch(r"\S.{15,}\.", one.sentence)
    assert PAGE.fullmatch(one.chapter)
    assert one.looks_at in OTHER | {name for name, _ in MESSAGES}


# The manifest and the protocol layer


@pytest.mark.parametrize("one", REQUIREMENTS, ids=lambda one: one.id)
def test_a_requirement_holds_in_revisions_that_have_its_message_and_its_feature(one: Requirement):
    holds = set(one.revisions)

    assert holds
    if one.looks_at not in OTHER:
        assert holds <= {rev for rev in Revision if (one.looks_at, rev.value) in MESSAGES}
    if one.feature:
        assert holds == {rev for rev in Revision if getattr(rev.features, one.feature)}
    if one.lacking:
        assert not any(getattr(rev.features, one.lacking) for rev in holds)


@pytest.mark.parametrize(
    "one",
    [one for one in REQUIREMENTS if (one.looks_at, V2511) in CLIENT_REQUESTS],
    ids=lambda one: one.id,
)
def test_an_implemented_requirement_about_a_method_holds_where_the_method_is_served(
    one: Requirement,
):
    served = METHODS[one.looks_at].eras if one.looks_at in METHODS else set()

    assert not one.is_implemented or {revision.era for revision in one.revisions} <= served


def test_what_is_called_missing_has_no_method():
    """Whoever serves the first method of tasks has their requirements to look at."""
    is_missing = any(one.missing is Missing.TASKS for one in REQUIREMENTS)

    assert not is_missing or not {name for name, _ in TASKS} & METHODS.keys()


def test_the_methods_of_one_era_are_those_that_requirements_give_to_one_era():
    legacy = {name for name, method in METHODS.items() if method.eras == {Era.LEGACY}}
    modern = {name for name, method in METHODS.items() if method.eras == {Era.MODERN}}
    eras = {
        name: {rev.era for one in REQUIREMENTS if one.looks_at == name for rev in one.revisions}
        for name in legacy | modern
    }

    assert eras == {name: {Era.LEGACY} for name in legacy} | {
        name: {Era.MODERN} for name in modern
    }

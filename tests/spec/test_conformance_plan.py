"""What the runs of the conformance suite may leave out: what is not there, and nothing else."""

from __future__ import annotations

import re

import pytest

from mcp_django.protocol.revisions import LEGACY, Revision
from tests.conformance_site.plan import BRIDGED, HTTP, HTTP_SSE, LATER, PIPED, RUNS, STDIO
from tests.conformance_site.run import other_scenarios
from tests.conformance_site.suite import Verdict
from tests.docs.pages import ROOT, table

REVISIONS = list(Revision)


@pytest.mark.parametrize(
    ("transport", "revisions"), [(HTTP, REVISIONS), (HTTP_SSE, list(LEGACY)), (STDIO, REVISIONS)]
)
def test_each_revision_is_asked_over_each_transport_that_it_has(transport, revisions):
    assert [Revision(run.revision) for run in RUNS if run.transport == transport] == revisions


def test_a_warning_is_a_failure():
    passed, warned = [{"id": "a", "status": status} for status in ("SUCCESS", "WARNING")]

    assert Verdict(checks=[passed]).is_shown
    assert Verdict(checks=[passed, warned]).failures == [warned]
    assert not Verdict(checks=[passed, warned]).is_shown


def test_scenarios_of_extensions_are_named_and_any_other_that_no_run_asks_is_an_error():
    asked = ("tools-list", "tasks-list")
    listed = {None: (*asked, "tasks-cancel", "sep-2640-skills", "new-thing")}

    extensions, unplanned = other_scenarios(lambda revision: listed.get(revision, asked))

    assert list(extensions) == ["tasks-cancel", "sep-2640-skills"]
    assert unplanned == ["new-thing"]


def test_nothing_is_left_out_over_streamable_http_but_what_came_with_a_later_revision():
    for run in RUNS:
        if run.transport == HTTP:
            assert set(run.left_out) == set(LATER.get(run.revision, {}))
    for revision, features in LATER.items():
        for feature in features.values():
            assert not getattr(Revision(revision).features, feature)
            assert getattr(REVISIONS[-1].features, feature)


def test_a_bridge_is_no_excuse_for_scenarios_about_messages():
    about_messages = ("tools-", "prompts-", "resources-", "elicitation-", "input-", "logging-")

    assert not [name for name in {**BRIDGED, **PIPED} if name.startswith(about_messages)]


def test_the_page_says_of_each_run_that_all_of_its_scenarios_pass():
    planned = {(run.revision, run.transport) for run in RUNS}

    told = table(ROOT / "docs" / "reference" / "conformance.md", "## Results")

    assert [row[0] for row in told] == [revision.value for revision in REVISIONS]
    for revision, *cells in told:
        for transport, cell in zip((HTTP, HTTP_SSE, STDIO), cells, strict=True):
            assert bool(re.fullmatch(r"(\d+) of \1", cell)) is ((revision, transport) in planned)
            assert cell or (revision, transport) not in planned

"""What the runs of the conformance suite may leave out: what is not there, and nothing else."""

from __future__ import annotations

import re

import pytest

from mcp_django.protocol.revisions import LEGACY, Revision
from tests.conformance_site.plan import BRIDGED, HTTP, HTTP_SSE, LATER, PIPED, RUNS, STDIO
from tests.docs.pages import ROOT, table

REVISIONS = list(Revision)


def revisions_over(transport):
    return [Revision(run.revision) for run in RUNS if run.transport == transport]


def test_each_revision_is_asked_over_streamable_http():
    assert revisions_over(HTTP) == REVISIONS


def test_each_revision_with_a_handshake_is_asked_over_http_sse():
    assert revisions_over(HTTP_SSE) == list(LEGACY)


def test_both_eras_are_asked_over_pipes():
    assert {revision.era for revision in revisions_over(STDIO)} == {one.era for one in Revision}


@pytest.mark.parametrize("run", [one for one in RUNS if one.transport == HTTP], ids=str)
def test_nothing_is_left_out_over_streamable_http_but_what_came_later(run):
    assert set(run.left_out) == set(LATER.get(run.revision, {}))


@pytest.mark.parametrize("revision", LATER)
def test_what_a_revision_is_spared_came_with_a_later_one(revision):
    for feature in LATER[revision].values():
        assert not getattr(Revision(revision).features, feature)
        assert getattr(REVISIONS[-1].features, feature)


def test_a_bridge_is_no_excuse_for_scenarios_about_messages():
    about_messages = ("tools-", "prompts-", "resources-", "elicitation-", "input-", "logging-")

    assert not [name for name in {**BRIDGED, **PIPED} if name.startswith(about_messages)]


def test_the_readme_tells_of_each_run_that_all_of_its_scenarios_pass():
    planned = {(run.revision, run.transport) for run in RUNS}

    told = table(ROOT / "README.md", "## Conformance")

    assert [row[0] for row in told] == [revision.value for revision in REVISIONS]
    for revision, *cells in told:
        for transport, cell in zip((HTTP, HTTP_SSE, STDIO), cells, strict=True):
            assert bool(re.fullmatch(r"(\d+) of \1", cell)) is ((revision, transport) in planned)
            assert cell or (revision, transport) not in planned

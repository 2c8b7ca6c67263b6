from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

import mcp_django
from mcp_django.protocol.revisions import (
    ASSUMED,
    LATEST_LEGACY,
    LEGACY,
    MODERN,
    Era,
    Features,
    Revision,
)
from tests.spec import requirement

TEXTS = [revision.value for revision in Revision]
#: The first revision that has a feature; it stays in the ones behind.
SINCE = {
    feature: revision
    for revision, features in {
        "2025-03-26": "tool_annotations audio progress_message completions_capability",
        "2025-06-18": "elicitation titles structured_content resource_links last_modified",
        "2025-11-25": "error_id_optional rich_elicitation url_elicitation",
        "2026-07-28": "any_structured_content result_type input_required caching "
        "missing_resource_is_invalid_params disconnect_cancels",
    }.items()
    for feature in features.split()
}


def test_the_known_revisions_are_those_of_the_reference_implementation_in_order():
    assert list(KNOWN_PROTOCOL_VERSIONS) == TEXTS
    assert [revision.value for revision in MODERN] == list(MODERN_PROTOCOL_VERSIONS)
    assert (*LEGACY, *MODERN) == tuple(Revision)
    assert {revision.era for revision in LEGACY} == {Era.LEGACY}
    assert {revision.era for revision in MODERN} == {Era.MODERN}
    assert (LATEST_LEGACY, ASSUMED) == (Revision.V2025_11_25, Revision.V2025_03_26)


@pytest.mark.parametrize("feature", SINCE)
def test_a_feature_is_there_from_its_revision_on(revision, feature):
    assert getattr(revision.features, feature) is (revision.value >= SINCE[feature])


@requirement("batch:answered", "batch:refused", "resumption:priming-event")
@pytest.mark.parametrize(
    ("feature", "revision"),
    [
        ("batches", "2025-03-26"),
        # Before, clients choke on an event without a message; behind, no stream can be resumed.
        ("priming_events", "2025-11-25"),
    ],
)
def test_one_revision_only_has_this_feature(feature, revision):
    assert [one.value for one in Revision if getattr(one.features, feature)] == [revision]


def test_every_feature_has_a_test():
    assert {field.name for field in fields(Features)} == {
        *SINCE, "batches", "priming_events", "era"
    }  # fmt: skip


@pytest.mark.parametrize("feature", [one.name for one in fields(Features) if one.name != "era"])
def test_a_feature_decides_something(feature):
    read = re.compile(rf"\bfeatures\.{feature}\b")
    sources = Path(mcp_django.__file__).parent.rglob("*.py")

    assert any(read.search(source.read_text()) for source in sources)


@given(
    st.sampled_from(TEXTS)
    | st.text()
    | st.none()
    | st.integers()
    | st.sampled_from([" 2025-06-18", "2025-06-18 ", "2025-6-18", "2025-06-18,2025-06-18"])
)
def test_a_revision_is_found_by_its_text_and_by_nothing_else(text):
    revision = Revision.parse(text)

    assert (None if revision is None else revision.value) == (text if text in TEXTS else None)

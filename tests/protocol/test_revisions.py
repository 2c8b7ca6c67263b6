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
    "tool_annotations": "2025-03-26",
    "audio": "2025-03-26",
    "progress_message": "2025-03-26",
    "completions_capability": "2025-03-26",
    "elicitation": "2025-06-18",
    "titles": "2025-06-18",
    "structured_content": "2025-06-18",
    "resource_links": "2025-06-18",
    "last_modified": "2025-06-18",
    "error_id_optional": "2025-11-25",
    "rich_elicitation": "2025-11-25",
    "url_elicitation": "2025-11-25",
    "any_structured_content": "2026-07-28",
    "result_type": "2026-07-28",
    "input_required": "2026-07-28",
    "caching": "2026-07-28",
    "missing_resource_is_invalid_params": "2026-07-28",
    "disconnect_cancels": "2026-07-28",
}


def test_the_known_revisions_are_those_of_the_reference_implementation_in_order():
    assert list(KNOWN_PROTOCOL_VERSIONS) == TEXTS
    assert [revision.value for revision in MODERN] == list(MODERN_PROTOCOL_VERSIONS)


def test_each_revision_belongs_to_one_era():
    assert (*LEGACY, *MODERN) == tuple(Revision)
    assert all(revision.era is Era.LEGACY for revision in LEGACY)
    assert all(revision.era is Era.MODERN for revision in MODERN)
    assert LATEST_LEGACY is Revision.V2025_11_25
    assert ASSUMED is Revision.V2025_03_26


@pytest.mark.parametrize("feature", SINCE)
def test_a_feature_is_there_from_its_revision_on(revision, feature):
    assert getattr(revision.features, feature) is (revision.value >= SINCE[feature])


@requirement("batch:answered", "batch:refused")
def test_one_revision_only_has_batches():
    assert [one.value for one in Revision if one.features.batches] == ["2025-03-26"]


@requirement("resumption:priming-event")
def test_one_revision_only_takes_an_event_without_a_message():
    """Before, clients choke on it; behind, no stream can be resumed."""
    assert [one.value for one in Revision if one.features.priming_events] == ["2025-11-25"]


def test_every_feature_has_a_test():
    known = {*SINCE, "batches", "priming_events", "era"}

    assert {field.name for field in fields(Features)} == known


@pytest.mark.parametrize("feature", [one.name for one in fields(Features) if one.name != "era"])
def test_a_feature_decides_something(feature):
    read = re.compile(rf"\bfeatures\.{feature}\b")
    sources = Path(mcp_django.__file__).parent.rglob("*.py")

    assert any(read.search(source.read_text()) for source in sources)


@pytest.mark.parametrize("text", TEXTS)
def test_a_revision_is_found_by_its_text(text):
    found = Revision.parse(text)

    assert found is not None
    assert found.value == text


@given(
    st.text()
    | st.none()
    | st.integers()
    | st.lists(st.text())
    | st.sampled_from([" 2025-06-18", "2025-06-18 ", "2025-6-18", "2025-06-18,2025-06-18"])
)
def test_anything_else_is_no_revision(text):
    assert Revision.parse(text) is None or text in TEXTS

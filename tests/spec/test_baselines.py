"""What the conformance baselines may excuse: nothing, since all that is tried is served."""

from __future__ import annotations

import pytest

from tests.conformance_site.run import REVISIONS, baseline


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_baseline_of_a_revision_excuses_nothing(revision):
    _, entries = baseline(revision).read_text().split("server:")

    assert entries.strip() == "[]"

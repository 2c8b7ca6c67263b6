"""What the conformance baselines may excuse: features that are not served, and nothing else."""

from __future__ import annotations

import re
from fnmatch import fnmatch

import pytest

from tests.conformance_site.run import REVISIONS, baseline

EXCUSED = (
    "tools-call-with-logging",
    "logging-set-level",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-*",
    "server-sse-polling",
    "server-sse-multiple-streams",
    "resources-subscribe",
    "resources-unsubscribe",
    "server-session-lifecycle",
    "server-stateless:*subscription*",
)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_baseline_of_a_revision_excuses_missing_features_only(revision):
    entries = re.findall(r"^  - (\S+)$", baseline(revision).read_text(), re.MULTILINE)

    assert entries or "server: []" in baseline(revision).read_text()
    for entry in entries:
        assert any(fnmatch(entry, pattern) for pattern in EXCUSED), entry

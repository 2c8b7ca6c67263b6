"""A short run of each search, in a process with a database of its own.

The seed is fixed; MCP_TEST_FUZZ_SEED names another one that is tried as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = sorted({"1", os.environ.get("MCP_TEST_FUZZ_SEED", "1")})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("search", "count"), [("messages", "1200"), ("pairs", "200")], ids=["messages", "pairs"]
)
def test_the_endpoint_stands_malformed_messages_and_tells_nothing_of_what_is_hidden(
    search, count, seed
):
    done = subprocess.run(
        [sys.executable, "-m", f"tests.fuzz.{search}", "--count", count, "--seed", seed],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.stdout.endswith("\n0 failures\n"), f"{done.stdout}{done.stderr}"

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


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("search", "count"), [("messages", "1200"), ("pairs", "200"), ("writes", "50")]
)
def test_the_endpoint_stands_malformed_messages_tells_nothing_hidden_and_writes_as_the_admin(
    search, count, seed
):
    done = run("-m", "tests.fuzz", search, "--count", count, "--seed", seed)

    assert done.stdout.endswith("\n0 failures\n"), f"{done.stdout}{done.stderr}"


PLANTED = """
import sys
from tests.fuzz.__main__ import main
from mcp_django.exposure.admin_bridge import posts

data_of = posts.data_of
posts.data_of = lambda asked, meant: data_of(asked, "x" if meant == "new" else meant)
sys.exit(main())
"""


def test_a_text_that_is_stored_otherwise_than_it_was_sent_is_noticed():
    done = run("-c", PLANTED, "writes", "--count", "50")

    assert done.returncode == 1, f"{done.stdout}{done.stderr}"
    assert " by the tool alone\n" in done.stdout or ": rows\n" in done.stdout

"""A short run of each search, in a process with a database of its own.

The seed is fixed; MCP_TEST_FUZZ_SEED names another one that is tried as well.
"""

from __future__ import annotations

import os

import pytest

from tests.children import finished

SEEDS = sorted({"1", os.environ.get("MCP_TEST_FUZZ_SEED", "1")})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("search", "count"),
    [
        ("messages", "1200"),
        ("pairs", "200"),
        pytest.param("pairs --tenants", "200", marks=pytest.mark.needs("django_tenants")),
        ("writes", "50"),
    ],
)
def test_the_endpoint_stands_malformed_messages_tells_nothing_hidden_and_writes_as_the_admin(
    search, count, seed
):
    done = finished(
        "-m", "tests.fuzz", *search.split(), "--count", count, "--seed", seed, timeout=600
    )

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
    done = finished("-c", PLANTED, "writes", "--count", "50", timeout=600)

    assert done.returncode == 1, f"{done.stdout}{done.stderr}"
    assert " by the tool alone\n" in done.stdout or ": rows\n" in done.stdout

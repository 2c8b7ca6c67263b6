"""The demo without limits by the minute: all stacks have one token."""

from __future__ import annotations

from demo_project.settings import *  # noqa: F403
from demo_project.settings import MCP_DJANGO as OF_THE_DEMO

LIMITS = (
    "CALLS_PER_MINUTE",
    "DRY_RUNS_PER_MINUTE",
    "DRY_RUN_SECONDS_PER_MINUTE",
    "FAILURES_PER_MINUTE",
)
MCP_DJANGO = {**OF_THE_DEMO, **dict.fromkeys(LIMITS, 10_000)}

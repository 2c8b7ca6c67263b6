"""Faults in templating, commands and the modules at the top of the package."""

from __future__ import annotations

from tests.faults.model import Fault, Room

TOP_FAULTS = (
    # A caller could close a fence, or open one.
    Fault(
        file="templating/lookups.py",
        old='if writer == CALLERS and is_short and not set("<>{}") & set(text):',
        new="if writer == CALLERS and is_short:",
    ),
    # A filter would hand out what nobody checked.
    Fault(
        file="templating/library.py",
        old='return result if type(result) in LEAVES or type(result) is Record else ""',
        new="return result",
    ),
    # `--user` alone would leave the newest records.
    Fault(
        file="management/commands/mcp_prune.py",
        old="if days is None and found is None:",
        new="if days is None:",
    ),
    Fault(
        file="management/commands/mcp_token.py",
        old="if days is not None and not 0 < days <= longest:",
        new="if days is not None and not 0 < days:",
    ),
    # Two callers would share one key, and with it cursors and counters.
    Fault(
        file="principal.py",
        old='part.replace("%", "%25").replace("/", "%2F")',
        new='part.replace("/", "%2F")',
    ),
    Fault(
        file="context.py",
        old="if self._value is not None and number <= self._value:",
        new="if self._value is not None and number < self._value:",
    ),
)

TOP = Room(
    tests=(
        "tests/test_principal.py",
        "tests/test_context.py",
        "tests/templating",
        "tests/management/test_mcp_token.py",
        "tests/management/test_mcp_prune.py",
    ),
    faults=TOP_FAULTS,
)

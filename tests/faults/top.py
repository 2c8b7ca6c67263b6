"""Faults in templating, commands and the modules at the top of the package."""

from __future__ import annotations

from tests.faults.model import Room

TOP = Room(
    tests=(
        "tests/test_principal.py",
        "tests/test_context.py",
        "tests/templating",
        "tests/management/test_mcp_token.py",
        "tests/management/test_mcp_prune.py",
    ),
    lines={
        # A caller could close a fence, or open one.
        "templating/lookups.py": [
            (
                'if writer == CALLERS and is_short and not set("<>{}") & set(text):',
                "if writer == CALLERS and is_short:",
            )
        ],
        # A filter would hand out what nobody checked.
        "templating/library.py": [
            (
                'return result if type(result) in LEAVES or type(result) is Record else ""',
                "return result",
            )
        ],
        # `--user` alone would leave the newest records.
        "management/commands/mcp_prune.py": [
            ("if days is None and found is None:", "if days is None:")
        ],
        "management/commands/mcp_token.py": [
            (
                "if days is not None and not 0 < days <= longest:",
                "if days is not None and not 0 < days:",
            )
        ],
        # Two callers would share one key, and with it cursors and counters.
        "principal.py": [
            ('part.replace("%", "%25").replace("/", "%2F")', 'part.replace("/", "%2F")')
        ],
        "context.py": [
            (
                "if self._value is not None and number <= self._value:",
                "if self._value is not None and number < self._value:",
            )
        ],
    },
)

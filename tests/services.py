"""What some tests need besides Python, and what happens where it is missing.

A test that needs a service is marked `@pytest.mark.needs("chromium")`. Where the service is
missing the test is skipped by name and counted at the end; with MCP_TEST_SERVICES=1 it fails.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

REQUIRED = os.environ.get("MCP_TEST_SERVICES") == "1"
DATABASE = os.environ.get("MCP_TEST_DB", "sqlite")


def answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def has_postgresql() -> bool:
    host = os.environ.get("MCP_TEST_PG_HOST", "127.0.0.1")
    return answers(host, int(os.environ.get("MCP_TEST_PG_PORT", "5432")))


SERVICES: dict[str, Callable[[], bool]] = {
    "postgresql": has_postgresql,
    "chromium": lambda: shutil.which("chromium") is not None,
    "make": lambda: shutil.which("make") is not None,
    "curl": lambda: shutil.which("curl") is not None,
    "git": lambda: shutil.which("git") is not None,
}


@cache
def is_there(service: str) -> bool:
    return SERVICES[service]()


class Services:
    """The pytest plugin."""

    def __init__(self) -> None:
        self.missing: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        needed = {name for mark in item.iter_markers("needs") for name in mark.args}
        if DATABASE != "sqlite":
            needed.add(DATABASE)
        for service in sorted(needed):
            if not is_there(service):
                self.missing[service] += 1
                if REQUIRED:
                    pytest.fail(f"{service} is missing, and MCP_TEST_SERVICES=1 asks for it.")
                pytest.skip(f"{service} is missing")

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        for service, count in sorted(self.missing.items()):
            terminalreporter.write_line(f"Not run, because {service} is missing: {count} tests")

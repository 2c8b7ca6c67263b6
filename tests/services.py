"""What some tests need besides Python, and what happens where it is missing.

A test that needs a service is marked `@pytest.mark.needs("chromium")`, or asks for a fixture in
FIXTURES. Where the service is missing the test is skipped by name and counted at the end; with
MCP_TEST_SERVICES=1 it fails.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from glob import glob
from importlib.util import find_spec

import pytest

from tests.databases import VENDOR

REQUIRED = os.environ.get("MCP_TEST_SERVICES") == "1"


def answers(prefix: str, port: int) -> bool:
    """Whether something listens where MCP_TEST_{prefix}_HOST and _PORT say, or at home."""
    host = os.environ.get(f"MCP_TEST_{prefix}_HOST", "127.0.0.1")
    port = int(os.environ.get(f"MCP_TEST_{prefix}_PORT", port))
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def is_installed(*modules: str) -> bool:
    return all(find_spec(module) for module in modules)


#: Where Debian keeps servers, which need not be on everybody's path.
PLACES = os.pathsep.join(
    [os.environ.get("PATH", os.defpath), "/usr/sbin", *glob("/usr/lib/postgresql/*/bin")]
)


def is_on_path(program: str) -> bool:
    return shutil.which(program, path=PLACES) is not None


def path_of(program: str) -> str:
    found = shutil.which(program, path=PLACES)
    assert found is not None, f"{program} is missing"
    return found


SERVICES: dict[str, Callable[[], bool]] = {
    "postgresql": partial(answers, "PG", 5432),
    "mariadb": partial(answers, "MARIADB", 3306),
    "redis": partial(answers, "REDIS", 6379),
    **{
        name: partial(is_on_path, name)
        for name in (
            "chromium",
            "curl",
            "git",
            "initdb",
            "make",
            "mariadbd",
            "nginx",
            "node",
            "npm",
            "pgbouncer",
            "setpriv",
        )
    },
    # The extras of the package.
    "daphne": partial(is_installed, "daphne"),
    "drf": partial(is_installed, "rest_framework"),
    "django_filters": partial(is_installed, "django_filters"),
    "jwt": partial(is_installed, "jwt", "cryptography"),
    "oauth": partial(is_installed, "oauth2_provider"),
    "channels_redis": partial(is_installed, "channels_redis"),
    "demo": partial(is_installed, "daphne", "airportsdata"),
    # Of the group `test`.
    "playwright": partial(is_installed, "playwright", "axe_playwright_python"),
    "jazzmin": partial(is_installed, "jazzmin"),
    # Of the group `sites`, since it does not know every Django that we do.
    "django_prometheus": partial(is_installed, "django_prometheus"),
    "django_tenants": lambda: is_installed("django_tenants") and answers("PG", 5432),
}
#: Packages that the group `gate` installs. Everything else is a service.
INSTALLED = {"channels_redis", "daphne", "demo", "drf", "jazzmin", "jwt", "oauth"}
#: What stands behind a fixture that many tests share.
FIXTURES = {
    "demo": "demo",
    "desk": "demo",
    "daphne": "daphne",
    "chromium": "chromium",
    "playwright": "playwright",
}


#: The property of a skipped test that names the service.
MISSING = "missing service"


@cache
def is_there(service: str) -> bool:
    return SERVICES[service]()


def needs_of(item: pytest.Item) -> set[str]:
    needed = {name for mark in item.iter_markers("needs") for name in mark.args}
    shared = FIXTURES.keys() & set(getattr(item, "fixturenames", ()))
    return needed | {FIXTURES[name] for name in shared}


def needs_a_service(item: pytest.Item) -> bool:
    """Return whether the test needs something that `pip` alone does not install."""
    return bool(needs_of(item) - INSTALLED)


class Services:
    """The pytest plugin."""

    def __init__(self) -> None:
        self.missing: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        needed = needs_of(item)
        if VENDOR != "sqlite":
            needed.add(VENDOR)
        for service in sorted(needed):
            if not is_there(service):
                if REQUIRED:
                    pytest.fail(f"{service} is missing, and MCP_TEST_SERVICES=1 asks for it.")
                # Workers report to the process that sums up.
                item.user_properties.append((MISSING, service))
                pytest.skip(f"{service} is missing")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup":
            self.missing.update(value for name, value in report.user_properties if name == MISSING)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, exitstatus: int
    ) -> None:
        counts = ", ".join(f"{name} ({count} tests)" for name, count in self.missing.most_common())
        if counts:
            terminalreporter.write_line(f"Not run, because it is missing: {counts}")

"""The official suite: Node and the package come from npm into `.conformance/`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests import npm

HOME = Path(__file__).parent.parent.parent / ".conformance"
PACKAGES = {"node": "node@24", "suite": "@modelcontextprotocol/conformance@0.2.0-alpha.12"}
SUITE = HOME / "suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"
#: The suite needs Node 22 or later and does not say so.
NODE = HOME / "node/node_modules/node/bin/node"
#: Seconds that all scenarios of a revision may take.
PATIENCE = 600


def install() -> None:
    """Node and the suite, where they are missing."""
    for folder, package in PACKAGES.items():
        npm.install(package, HOME / folder)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a scenario, by its checks."""

    checks: list[dict[str, str]]

    @property
    def failures(self) -> list[dict[str, str]]:
        """Those that a revision asks for, and those that it only recommends."""
        return [check for check in self.checks if check["status"] in ("FAILURE", "WARNING")]

    @property
    def is_shown(self) -> bool:
        """Whether something passed, besides messages that were of the right shape."""
        return not self.failures and any(
            check["status"] == "SUCCESS" and not check["id"].startswith("wire-schema")
            for check in self.checks
        )


@cache
def names(revision: str | None = None) -> tuple[str, ...]:
    """The scenarios that the suite has for a revision, or all that it has."""
    listed = ask("list", "--server", *(["--spec-version", revision] if revision else []))
    return tuple(re.findall(r"^  - (\S+)", listed, re.MULTILINE))


def run(url: str, *options: str) -> dict[str, Verdict]:
    """The verdicts by the names of scenarios. One that crashed has none, and is shown."""
    with tempfile.TemporaryDirectory() as folder:
        said = ask("server", "--url", url, *options, "--output-dir", folder)
        found = {}
        for output in sorted(Path(folder).glob("server-*")):
            name = re.match(r"server-(.+)-\d{4}-\d\d-\d\dT", output.name)
            checks = output / "checks.json"
            if name is not None and checks.exists():
                found[name[1]] = Verdict(checks=json.loads(checks.read_text()))
        if not found:
            print("\n".join(said.splitlines()[-30:]), file=sys.stderr)
        return found


def run_all(url: str, *, revision: str) -> dict[str, Verdict]:
    return run(url, "--suite", "all", "--spec-version", revision)


def run_one(url: str, scenario: str, *, schema: str) -> dict[str, Verdict]:
    """Run a scenario of another revision, with the messages held to the schema of this one."""
    return run(url, "--scenario", scenario, "--spec-version", schema, "--force")


def ask(*arguments: str) -> str:
    finished = subprocess.run(
        [NODE, SUITE, *arguments],
        check=False, capture_output=True, text=True, timeout=PATIENCE,
        # A third of the time of one scenario is that of reading the suite.
        env={**os.environ, "NO_COLOR": "1", "NODE_COMPILE_CACHE": str(HOME / "cache")},
    )  # fmt: skip
    return finished.stdout + finished.stderr

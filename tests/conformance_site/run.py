"""Run the official conformance suite against the fixture site.

    python -m tests.conformance_site.run            all revisions that the suite can test
    python -m tests.conformance_site.run 2026-07-28 -v

Node and the suite come from npm into `.conformance/`. `baselines/` names what this build does
not serve yet; anything else that fails, and anything listed there that passes, is an error.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance_site.serve import serve

HERE = Path(__file__).parent
HOME = HERE.parent.parent / ".conformance"
PACKAGES = {"node": "node@24", "suite": "@modelcontextprotocol/conformance@0.2.0-alpha.12"}
SUITE = "suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")


def install() -> tuple[Path, Path]:
    """The paths of Node and of the suite, installed where they are missing."""
    for folder, package in PACKAGES.items():
        target = HOME / folder
        stamp = target / "stamp"
        if stamp.exists() and stamp.read_text() == package:
            continue
        target.mkdir(parents=True, exist_ok=True)
        (target / "package.json").write_text('{"name": "x", "version": "0.0.0", "private": true}')
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", package],
            cwd=target,
            check=True,
        )
        stamp.write_text(package)
    # The suite needs Node 22 or later and does not say so.
    return HOME / "node" / "node_modules" / "node" / "bin" / "node", HOME / SUITE


def run(revision: str, url: str, *, verbose: bool) -> bool:
    """Whether a revision conforms, but for the baseline. Prints a line, and what failed."""
    node, suite = install()
    with tempfile.TemporaryDirectory() as output:
        finished = subprocess.run(
            [str(node), str(suite), "server", "--url", url, "--suite", "all",
             "--spec-version", revision, "--expected-failures", str(baseline(revision)),
             "--output-dir", output],
            check=False, capture_output=True, text=True, timeout=600,
            env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
        scenarios = read_scenarios(Path(output))
    failed = {name: checks for name, checks in scenarios.items() if failures(checks)}
    shown = {name for name, checks in scenarios.items() if is_shown(checks)}
    is_good = finished.returncode == 0 and bool(shown)
    print(
        f"{revision}: {len(shown)} of {len(scenarios)} scenarios pass, "
        f"{len(failed)} fail, {len(scenarios) - len(shown | failed.keys())} give no verdict; "
        f"{'as the baseline says' if is_good else 'NOT as the baseline says'}"
    )
    if verbose or not is_good:
        for name, checks in sorted(failed.items()):
            for check in failures(checks):
                print(f"  {name}: {check['id']}: {check.get('errorMessage', '')[:300]}")
    if not is_good:
        print("\n".join(finished.stdout.splitlines()[-30:]))
    return is_good


def baseline(revision: str) -> Path:
    return HERE / "baselines" / f"{revision}.yml"


def read_scenarios(output: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for folder in sorted(output.glob("server-*")):
        name = re.match(r"server-(.+)-\d{4}-\d\d-\d\dT", folder.name)
        checks = folder / "checks.json"
        if name is not None and checks.exists():
            found[name[1]] = json.loads(checks.read_text())
    return found


def failures(checks: list[dict[str, str]]) -> list[dict[str, str]]:
    return [check for check in checks if check["status"] == "FAILURE"]


def is_shown(checks: list[dict[str, str]]) -> bool:
    """Whether something passed, besides messages that were of the right shape."""
    return not failures(checks) and any(
        check["status"] == "SUCCESS" and not check["id"].startswith("wire-schema")
        for check in checks
    )


def main() -> int:
    options = [one for one in sys.argv[1:] if one.startswith("-")]
    revisions = [one for one in sys.argv[1:] if one not in options] or list(REVISIONS)
    with serve() as url:
        results = [run(one, url, verbose="-v" in options) for one in revisions]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

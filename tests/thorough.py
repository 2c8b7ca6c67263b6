"""The thorough run: everything that the gate leaves out. `make test-all`, or PART= with names.

A part that fails keeps no other from running. A table at the end says how each went, and
build/thorough has what each printed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "thorough"
PYTHON = [sys.executable, "-W", "error::ResourceWarning", "-m"]
#: They look at whole sites, and reach no line that the other tests leave out.
OUTSIDE = [f"tests/{name}" for name in ("browser", "demo", "docs", "fuzz", "leaks", "official")]
PARALLEL = ["--quiet", "--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder"]
PYTEST = ["pytest", *PARALLEL, "--hypothesis-profile=thorough", "--timeout=1200"]
MEASURED = [*PYTHON, "coverage", "run", "-m", *PYTEST]
#: What other releases of Django and of our dependencies cannot change is left out.
CORNER = [
    *PARALLEL,
    "--timeout=1200",
    *(f"--ignore={folder}" for folder in [*OUTSIDE, "tests/smoke"]),
]


#: The tests of the gate, a few seconds before midnight of days that programs stumble over.
DATED = [*PYTHON, "pytest", *PARALLEL, "-m", "not thorough"]


@dataclass(frozen=True)
class Part:
    name: str
    command: list[str]
    environ: Mapping[str, str] = field(default_factory=dict)


def tox(environment: str) -> list[str]:
    return [*PYTHON, "tox", "run", *discovered(), "-e", environment, "--", *CORNER]


def discovered() -> list[str]:
    """Name the newest Python to tox, since pyenv shows it only where it is named."""
    for version in ("3.13", "3.12"):
        if shutil.which(f"python{version}") is None:
            continue
        result = subprocess.run(
            [f"python{version}", "-c", "import sys; print(sys.executable)"],
            env={**os.environ, "PYENV_VERSION": version},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode == 0:
            return ["--discover", result.stdout.strip()]
    return []


PARTS = [
    Part("lint", ["make", "lint"]),
    Part("docs", ["make", "docs"]),
    Part("sqlite", [*MEASURED, *(f"--ignore={folder}" for folder in OUTSIDE)]),
    Part("outside", [*PYTHON, *PYTEST, *OUTSIDE]),
    Part("postgresql", [*MEASURED, "-m", "database"], {"MCP_TEST_DB": "postgresql"}),
    Part("mariadb", [*MEASURED, "-m", "database"], {"MCP_TEST_DB": "mariadb"}),
    Part("sites", [*PYTHON, "tests.sites"], {"COVERAGE": "1"}),
    Part("coverage", ["make", "coverage-report"]),
    *(
        Part(f"date-{day}", DATED, {"MCP_TEST_NOW": f"{day}T23:59:50+00:00"})
        for day in ("2026-12-31", "2028-02-28", "2028-02-29")
    ),
    Part("conformance", ["make", "conformance"]),
    Part("faults", ["make", "faults"]),
    Part("fuzz", ["make", "fuzz", "MESSAGES=20000", "PAIRS=400", "WRITES=400"]),
    Part("leaks", ["make", "leaks"]),
    Part("lowest", tox("lowest")),
    Part("newest", tox("newest")),
]


def run(part: Part) -> tuple[bool, float, str]:
    """Return whether it passed, its seconds and the last line that it printed."""
    log, started = LOGS / f"{part.name}.log", time.monotonic()
    print(f"== {part.name}: {log.relative_to(ROOT)}", flush=True)
    with log.open("w") as out:
        # With the services named, none that is missing is skipped.
        environ = {**os.environ, "MCP_TEST_SERVICES": "1", **part.environ}
        done = subprocess.run(
            part.command, cwd=ROOT, env=environ, stdout=out, stderr=subprocess.STDOUT, check=False
        )
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    return done.returncode == 0, time.monotonic() - started, lines[-1] if lines else ""


def main(names: list[str]) -> int:
    unknown = set(names) - {part.name for part in PARTS}
    if unknown:
        print(f"No such part: {', '.join(unknown)}. There are:", *(part.name for part in PARTS))
        return 2
    chosen = [part for part in PARTS if not names or part.name in names]
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    if any(part.command[: len(MEASURED)] == MEASURED for part in chosen):
        subprocess.run([*PYTHON, "coverage", "erase"], cwd=ROOT, check=True)
    results = [(part.name, *run(part)) for part in chosen]
    print(f"\n{'part':<12} {'result':<7} {'seconds':>7}  last line")
    for name, passed, seconds, line in results:
        print(f"{name:<12} {'passed' if passed else 'FAILED':<7} {seconds:>7.0f}  {line[:120]}")
    return int(not all(passed for _, passed, _, _ in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Plant each fault of `faults.py` in a copy of the tree, and look whether a test of its
requirement turns red: `make faults`.
"""

from __future__ import annotations

import enum
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.spec.faults import FAULTS, Fault

ROOT = Path(__file__).parent.parent.parent
COPIED = ("mcp_django", "tests", "pyproject.toml")
LOOKED_AT = (
    "tests/protocol",
    "tests/handlers/test_pagination.py",
    "tests/transports/http/test_endpoint.py",
)
PYTEST = (
    sys.executable,
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "tests.spec.plugin",
    # Tests of the requirement go first.
    "-p",
    "no:randomly",
    # GATE=1: what `make test` runs, and no more.
    *(
        ["-m", "not thorough"]
        if os.environ.get("GATE") == "1"
        else ["--hypothesis-profile=thorough"]
    ),
)
PROCESSES = 2
#: Seconds that the tests may take. They need ten.
PATIENCE = 300


class Verdict(enum.Enum):
    RED = "red"
    SURVIVED = "SURVIVED"
    #: Tests failed, and none of them is about the requirement.
    ELSEWHERE = "RED, BUT NOT FOR ITS REQUIREMENT"
    BROKEN = "BROKEN: no test ran"


def copy_tree(target: Path) -> Path:
    target.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            skipped = shutil.ignore_patterns("__pycache__", "*.sqlite3*")
            shutil.copytree(source, target / name, ignore=skipped)
        else:
            shutil.copy(source, target / name)
    return target


def run_tests(tree: Path, *options: str) -> tuple[dict[str, list[str]], list[str]]:
    """The requirements of each test that was collected, and the tests that failed."""
    story = tree / "story.json"
    story.unlink(missing_ok=True)
    done = subprocess.run(
        [*PYTEST, "--story", str(story), *options, *LOOKED_AT],
        cwd=tree,
        # A file that changes twice in a second would not be compiled again.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if not story.exists():
        sys.exit(f"pytest told nothing.\n{done.stdout}\n{done.stderr}")
    told = json.loads(story.read_text())
    return told["shown"], told["failed"]


@contextmanager
def planted(tree: Path, fault: Fault) -> Iterator[None]:
    path = tree / "mcp_django/protocol" / fault.file
    sound = path.read_text()
    if sound.count(fault.old) != 1:
        sys.exit(f"{fault.file} does not have exactly once: {fault.old}")
    path.write_text(sound.replace(fault.old, fault.new))
    try:
        yield
    finally:
        path.write_text(sound)


def judge(tree: Path, fault: Fault) -> tuple[Verdict, str]:
    """What the tests say of a fault, and the first that failed.

    Tests of the requirement go first and the first failure ends the run: if that one is none of
    theirs, they have all passed.
    """
    with planted(tree, fault):
        shown, failed = run_tests(tree, "-x", "--first", fault.requirement)
    if not failed:
        return (Verdict.SURVIVED if shown else Verdict.BROKEN), ""
    is_its_own = fault.requirement in shown[failed[0]]
    return (Verdict.RED if is_its_own else Verdict.ELSEWHERE), failed[0]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(PROCESSES):
            trees.put(copy_tree(Path(folder, str(number))))

        def judge_in_turn(fault: Fault) -> tuple[Verdict, str]:
            tree = trees.get()
            try:
                return judge(tree, fault)
            finally:
                trees.put(tree)

        _, failed = run_tests(Path(folder, "0"))
        if failed:
            print("Tests fail before any fault is planted:", *failed, sep="\n  ")
            return 1
        verdicts = set()
        with ThreadPoolExecutor(PROCESSES) as pool:
            for fault, (verdict, test) in zip(
                FAULTS, pool.map(judge_in_turn, FAULTS), strict=True
            ):
                verdicts.add(verdict)
                name = test.removeprefix("tests/")[:120]
                print(f"{verdict.value:<10}{fault.requirement:<33}{name}", flush=True)
    return int(verdicts != {Verdict.RED})


if __name__ == "__main__":
    sys.exit(main())

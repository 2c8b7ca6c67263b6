"""Plant each fault of `rooms.py` in a copy of the tree, and look whether a test turns red:
`make faults`. With the names of rooms, only theirs.
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

from tests.faults.model import Fault
from tests.faults.rooms import ROOMS

ROOT = Path(__file__).parent.parent.parent
COPIED = ("mcp_django", "tests", "docs", "demo_project", "manage.py", "pyproject.toml")
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
#: Seconds that the tests of one room may take.
PATIENCE = 900


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


def run_tests(
    tree: Path, tests: tuple[str, ...], *options: str
) -> tuple[dict[str, list[str]], list[str]]:
    """The requirements of each test that was collected, and the tests that failed."""
    story = tree / "story.json"
    story.unlink(missing_ok=True)
    done = subprocess.run(
        [*PYTEST, "--story", str(story), *options, *tests],
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
    path = tree / "mcp_django" / fault.file
    sound = path.read_text()
    if sound.count(fault.old) != 1:
        sys.exit(f"{fault.file} does not have exactly once: {fault.old}")
    path.write_text(sound.replace(fault.old, fault.new))
    try:
        yield
    finally:
        path.write_text(sound)


def judge(tree: Path, tests: tuple[str, ...], fault: Fault) -> tuple[Verdict, str]:
    """What the tests say of a fault, and the first that failed.

    Tests of the requirement go first and the first failure ends the run: if that one is none of
    theirs, they have all passed.
    """
    first = ("--first", fault.requirement) if fault.requirement else ()
    with planted(tree, fault):
        shown, failed = run_tests(tree, tests, "-x", *first)
    if not failed:
        return (Verdict.SURVIVED if shown else Verdict.BROKEN), ""
    if fault.requirement and fault.requirement not in shown.get(failed[0], ()):
        return Verdict.ELSEWHERE, failed[0]
    return Verdict.RED, failed[0]


def main(names: list[str]) -> int:
    rooms = [ROOMS[name] for name in names or ROOMS]
    with tempfile.TemporaryDirectory() as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(PROCESSES):
            trees.put(copy_tree(Path(folder, str(number))))

        def judge_in_turn(tests: tuple[str, ...], fault: Fault) -> tuple[Verdict, str]:
            tree = trees.get()
            try:
                return judge(tree, tests, fault)
            finally:
                trees.put(tree)

        _, failed = run_tests(
            Path(folder, "0"), tuple(dict.fromkeys(path for room in rooms for path in room.tests))
        )
        if failed:
            print("Tests fail before any fault is planted:", *failed, sep="\n  ")
            return 1
        planned = [(room.tests, fault) for room in rooms for fault in room.faults]
        verdicts = set()
        with ThreadPoolExecutor(PROCESSES) as pool:
            judged = pool.map(judge_in_turn, *zip(*planned, strict=True))
            for (_, fault), (verdict, test) in zip(planned, judged, strict=True):
                verdicts.add(verdict)
                name = test.removeprefix("tests/")[:100]
                print(f"{verdict.value:<10}{fault.file:<38}{fault.old[:40]:<42}{name}", flush=True)
    return int(verdicts != {Verdict.RED})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

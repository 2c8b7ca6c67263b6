"""The demo has its own settings, so everything of it runs in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.children import start
from tests.waiting import LONG_PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
#: Where the clock of each desk of the tests stands. The days that tests name are around it.
TODAY = "2026-11-18"


class Inside:
    """A process that has the demo's own settings, and answers what a module can find out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def ask(self, name: str, *arguments: object) -> Any:
        self.start(name, *arguments)
        return self.answer()

    def start(self, name: str, *arguments: object) -> None:
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        line = self.process.stdout.readline()
        assert line, "The process inside of the demo has ended."
        found = json.loads(line)
        assert "error" not in found, found["error"]
        return found["answer"]


class Demo:
    """A flight desk that keeps its state in a directory of the test run."""

    settings = "demo_project.settings"
    #: Its functions are what tests can ask.
    module = "tests.demo.inside"
    #: What it printed.
    first_run: str
    #: While somebody asks.
    orm: Inside

    def __init__(self, state: Path) -> None:
        self.state = state

    def copy_to(self, state: Path) -> Self:
        shutil.copytree(self.state, state)
        copied = type(self)(state)
        copied.first_run = self.first_run
        return copied

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if key[:5] != "DEMO_"}
        return {
            **inherited,
            "DJANGO_SETTINGS_MODULE": self.settings,
            "DEMO_STATE": str(self.state),
            "DEMO_TODAY": TODAY,
            **more,
        }

    def manage(self, *arguments: str, check: bool = True, **environment: str):
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment(**environment),
            check=check,
            capture_output=True,
            text=True,
            timeout=LONG_PATIENCE,
        )

    @contextmanager
    def inside(self) -> Iterator[Inside]:
        with (
            (self.state / "inside.log").open("a") as errors,
            start(
                [sys.executable, "-m", "tests.demo", self.module],
                cwd=ROOT,
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            yield Inside(process)
            process.stdin.close()

    def ask(self, name: str, *arguments: object) -> Any:
        return self.orm.ask(name, *arguments)

    def mode(self, name: str) -> int:
        return (self.state / name).stat().st_mode & 0o777

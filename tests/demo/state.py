"""The demo has its own settings, so everything of it runs in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.children import start
from tests.waiting import LONG_PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent


class Demo:
    """A flight desk that keeps its state in a directory of the test run."""

    #: What it printed.
    first_run: str

    def __init__(self, state: Path) -> None:
        self.state = state

    def copy_to(self, state: Path) -> Demo:
        shutil.copytree(self.state, state)
        copied = Demo(state)
        copied.first_run = self.first_run
        return copied

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if key[:5] != "DEMO_"}
        return {
            **inherited,
            "DJANGO_SETTINGS_MODULE": "demo_project.settings",
            "DEMO_STATE": str(self.state),
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

    def start(self, errors):
        """A process that answers what `inside` can find out."""
        return start(
            [sys.executable, "-m", "tests.demo"],
            cwd=ROOT,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    def ask(self, name: str, *arguments: object) -> Any:
        """What a function of tests/demo/inside.py finds out within the demo."""
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, (self.state / "errors.log").read_text()
        found = json.loads(line)
        assert "error" not in found, found["error"]
        return found["answer"]

    def mode(self, name: str) -> int:
        return (self.state / name).stat().st_mode & 0o777


@contextmanager
def answering(demo):
    """The demo, with a process that answers what tests ask."""
    with (demo.state / "errors.log").open("w") as errors, demo.start(errors) as demo.process:
        yield demo
        demo.process.stdin.close()

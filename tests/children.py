"""Processes that tests start: none of them outlives the tests, also where these are killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.waiting import LONG_PATIENCE

ROOT = Path(__file__).parent.parent

#: Linux ends a process with the thread that started it, if it is asked to. Debian's util-linux has
#: the program that asks. Elsewhere only the fixtures end processes.
BOUND = ("setpriv", "--pdeathsig", "TERM", "--") if shutil.which("setpriv") else ()


def start(command: Sequence[Any], **options: Any) -> subprocess.Popen[Any]:
    """As `subprocess.Popen`. Call it in a thread that lives as long as the process may."""
    return subprocess.Popen([*BOUND, *command], **options)


def finished(
    *arguments: str, cwd: Path = ROOT, timeout: float = LONG_PATIENCE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and variables to its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )

"""Processes that tests start: none of them outlives the tests, also where these are killed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

#: Linux ends a process with the thread that started it, if it is asked to. Debian's util-linux has
#: the program that asks. Elsewhere only the fixtures end processes.
BOUND = ("setpriv", "--pdeathsig", "TERM", "--") if shutil.which("setpriv") else ()


def start(command: Sequence[Any], **options: Any) -> subprocess.Popen[Any]:
    """As `subprocess.Popen`. Call it in a thread that lives as long as the process may."""
    return subprocess.Popen([*BOUND, *command], **options)

"""The options and the processes of the searches."""

from __future__ import annotations

import argparse
import subprocess
import sys


def options_of(text: str, *, count: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the index of the first case")
    parser.add_argument("--only", type=int, help="the index of a single case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser


def run_jobs(module: str, options: argparse.Namespace, *, batch: int = 1) -> int:
    """Run several processes, each with a share and a database of its own."""
    share = -(-options.count // options.jobs // batch) * batch
    started = []
    for first in range(options.first, options.first + options.count, share):
        count = min(share, options.first + options.count - first)
        arguments = ["--seed", options.seed, "--first", first, "--count", count]
        command = [sys.executable, "-m", module, *map(str, arguments)]
        started.append(subprocess.Popen(command))
    return max([process.wait() for process in started])

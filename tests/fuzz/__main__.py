"""Run one of the searches.

    python -m tests.fuzz messages --count 500000 --seed 1 --jobs 2
    python -m tests.fuzz pairs --seed 1 --only 4711
    python -m tests.fuzz pairs --tenants      # two tenants on PostgreSQL at the same time

Case 4711 of a seed is always the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib import import_module

site = "tenants" if "--tenants" in sys.argv else "settings"
os.environ["DJANGO_SETTINGS_MODULE"] = f"tests.fuzz.{site}"

import django  # noqa: E402

django.setup()

from tests.fuzz import rows  # noqa: E402  after Django is set up

#: Failures that are printed whole.
SHOWN = 10


def run_jobs(options: argparse.Namespace) -> int:
    """Run several processes, each with a share and a database of its own."""
    # Whole hundreds: as many pairs have the same two states.
    share = -(-options.count // options.jobs // 100) * 100
    started = []
    for first in range(options.first, options.first + options.count, share):
        count = min(share, options.first + options.count - first)
        arguments = [options.search, "--seed", options.seed, "--first", first, "--count", count]
        arguments += ["--tenants"] if options.tenants else []
        command = [sys.executable, "-m", "tests.fuzz", *map(str, arguments)]
        started.append(subprocess.Popen(command))
    return max([process.wait() for process in started])


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("search", choices=["messages", "pairs", "writes"])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the index of the first case")
    parser.add_argument("--only", type=int, help="the index of a single case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--tenants", action="store_true", help="of pairs")
    options = parser.parse_args()
    if options.only is not None:
        options.first, options.count = options.only, 1
    elif options.jobs > 1:
        return run_jobs(options)
    failures = 0
    with rows.site():
        if options.search != "pairs":
            rows.fill()
        for failure in import_module(f"tests.fuzz.{options.search}").search(options):
            failures += 1
            if failures <= SHOWN:
                print(failure, end="\n\n", flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Each site with its own tests and with those of the suite that mean something there.

`python -m tests.sites`, or with the names of some. COVERAGE=1 measures branches as `make test`.
"""

from __future__ import annotations

import os
import subprocess
import sys

CALLS = ["tests/handlers", "tests/transports/test_calls.py"]
#: Site -> what else it is tested with.
SITES: dict[str, list[str]] = {
    "noadmin": ["tests/management", *CALLS],
    "users": ["tests/admin", "tests/auth/test_personal_tokens.py", "tests/hostile", *CALLS],
    "databases": [],
    "naive": ["tests/admin", "tests/auth", "tests/management", *CALLS],
    "script": ["tests/transports/test_wsgi.py", *CALLS],
    "packages": [],
    "second": ["tests/admin", "tests/hostile", *CALLS],
}
MEASURED = ["-m", "coverage", "run"] if os.environ.get("COVERAGE") == "1" else []


def run(site: str) -> int:
    print(f"== {site}", flush=True)
    command = [sys.executable, "-W", "error::ResourceWarning", *MEASURED, "-m", "pytest", "-q"]
    paths = ["tests/sites", *SITES[site]]
    return subprocess.run([*command, f"--ds=tests.sites.{site}", *paths], check=False).returncode


if __name__ == "__main__":
    # All of them, so that one that fails hides no other.
    failed = [site for site in sys.argv[1:] or SITES if run(site)]
    sys.exit(f"Failed: {', '.join(failed)}" if failed else 0)

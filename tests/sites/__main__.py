"""Each site with its own tests and with those of the suite that mean something there.

`python -m tests.sites`, or with the names of some. COVERAGE=1 measures branches as `make test`.
"""

from __future__ import annotations

import os
import subprocess
import sys

CALLS = ["tests/handlers", "tests/transports/test_calls.py"]
#: Tests that speak of `auth.User` by name.
OF_DJANGOS_USER = [
    f"tests/admin/{name}"
    for name in (
        "test_inspect.py::test_what_looks_secret_and_what_code_excludes_say_so",
        "test_inspect.py::test_a_model_of_the_admin_that_staff_opened_has_what_the_admin_shows",
        "test_inspect.py::test_nothing_of_a_superuser_shows_through_to_somebody_with_fewer_rights",
        "test_looking.py::test_the_pages_of_a_second_admin_link_to_each_other",
        "test_looking.py::test_a_second_admin_looks_at_the_users_that_it_shows_itself",
    )
]
#: Site -> what else it is tested with.
SITES: dict[str, list[str]] = {
    "noadmin": ["tests/management", *CALLS],
    "users": [
        "tests/admin",
        "tests/auth/test_personal_tokens.py",
        "tests/hostile",
        *CALLS,
        *(f"--deselect={one}" for one in OF_DJANGOS_USER),
    ],
    "databases": [],
    "naive": ["tests/admin", "tests/auth", "tests/management", "tests/stores", *CALLS],
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

"""Each site with its own tests and with those of the suite that mean something there.

`python -m tests.sites`, or with the names of some. COVERAGE=1 measures as `make test-all`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from subprocess import PIPE, STDOUT

CALLS = ["tests/handlers", "tests/transports/test_call.py"]
#: Tests that speak of `auth.User` by name.
OF_DJANGOS_USER = [
    f"tests/{name}"
    for name in (
        "admin/test_inspect_records.py::test_what_looks_secret_and_what_code_excludes_say_so",
        "admin/test_inspect.py::test_nothing_of_a_superuser_shows_through_to_somebody_with_fewer_rights",
    )
]
#: Tests of async tools on a server without sync middleware, in which they would have a loop and a
#: thread of their own: tests/transports/test_bridge.py.
OF_THE_SERVERS_LOOP = [
    f"tests/transports/test_call.py::{name}"
    for name in (
        "test_async_tools_run_on_the_servers_loop_and_leave_no_connection_open",
        "test_a_full_lane_says_when_to_come_back_and_takes_the_end_of_an_async_tool",
    )
]
IN_MIDDLEWARE = [
    "tests/transports/test_wsgi.py",
    *CALLS,
    *(f"--deselect={one}" for one in OF_THE_SERVERS_LOOP),
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
    "packages": IN_MIDDLEWARE,
    "tenants": IN_MIDDLEWARE,
    "constraints": [],
    "second": ["tests/admin", "tests/hostile", *CALLS],
    "fields": [],
    "credentials": [],
    "admin_packages": [],
    "nested": [],
    "schemas": [],
}
#: Site -> packages of the group `sites` that it is made of.
PACKAGES: dict[str, list[str]] = {
    "admin_packages": ["adminsortable2", "modeltranslation", "mptt", "parler", "solo", "unfold"],
    "credentials": [
        "allauth",
        "constance",
        "django_otp",
        "knox",
        "rest_framework_api_key",
        "social_django",
    ],
    "fields": ["django_countries", "djmoney", "polymorphic", "taggit", "treebeard", "wagtail"],
    "nested": ["nested_admin"],
    "schemas": ["django_tenants"],
}
MEASURED = ["-m", "coverage", "run"] if os.environ.get("COVERAGE") == "1" else []


def run(site: str) -> tuple[bool, str]:
    """Whether it passed, and what its tests print."""
    missing = [name for name in PACKAGES.get(site, ()) if find_spec(name) is None]
    if missing:
        text = f"Not run, because it is missing: {', '.join(missing)}\n"
        return os.environ.get("MCP_TEST_SERVICES") != "1", text
    command = [sys.executable, *MEASURED, "-m", "pytest", "-q", "--timeout=600"]
    # The migrations of some packages take minutes on a busy machine.
    paths = [f"--ds=tests.sites.{site}", "tests/sites", *SITES[site]]
    done = subprocess.run([*command, *paths], check=False, stdout=PIPE, stderr=STDOUT, text=True)
    return done.returncode == 0, done.stdout


def run_all(sites: list[str]) -> list[str]:
    """Those that failed. All are run, so that one that fails hides no other."""
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for site, (passed, text) in zip(sites, pool.map(run, sites), strict=True):
            print(f"== {site}", text, sep="\n", flush=True)
            if not passed:
                failed.append(site)
    return failed


if __name__ == "__main__":
    failed = run_all(sys.argv[1:] or list(SITES))
    sys.exit(f"Failed: {', '.join(failed)}" if failed else 0)

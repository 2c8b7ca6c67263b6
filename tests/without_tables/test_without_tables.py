"""A site can do without our tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from tests.waiting import LONG_PATIENCE

pytestmark = pytest.mark.database
ROOT = Path(__file__).parent.parent.parent


@contextmanager
def empty_database(folder, django_db_blocker):
    """A database of the kind that the tests run on."""
    if connection.vendor == "sqlite":
        yield str(folder / "site.sqlite3")
        return
    name = f"test_mcp_django_without_{os.getpid()}"
    with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")


def runner(database):
    """Return what runs `inside` on one database, in a process of its own."""

    def run():
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-m", "tests.without_tables.inside"],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.without_tables.settings",
                "MCP_SITE_DB": database,
            },
            capture_output=True,
            text=True,
            timeout=LONG_PATIENCE,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        # Ours, and Django's own for views that raise.
        assert "A request failed" not in finished.stderr
        assert "Internal Server Error" not in finished.stderr
        return json.loads(finished.stdout)

    return run


@pytest.fixture
def site(tmp_path, django_db_blocker):
    with empty_database(tmp_path, django_db_blocker) as database:
        yield runner(database)


def test_without_our_tables_the_site_works_and_the_endpoint_refuses(site):
    found = site()

    assert found["left"] == []
    assert found["without"] == {
        "token": [503, "This server is not set up."],
        "anonymous": 401,
        "wsgi": 401,
        "index": 200,
        "orders": 200,
        "user saved": True,
    }
    assert found["again"]

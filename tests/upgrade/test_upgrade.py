"""Databases of older releases are brought up to date, and a site can do without our tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

#: Of the token in the dumps.
SECRET = "mcp_w6yPLxCwTcRmdhb3PGgewUsXkstTo8QQ1SuTiaA6MaK1aPm2V"
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def database(tmp_path, django_db_blocker):
    """An empty one, of the kind that the tests run on."""
    if connection.vendor == "sqlite":
        yield str(tmp_path / "site.sqlite3")
        return
    name = f"test_mcp_django_upgrade_{os.getpid()}"
    with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def site(database):
    def run(*arguments):
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-m", "tests.upgrade.inside", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.upgrade.settings",
                "MCP_UPGRADE_DB": database,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        # Ours, and Django's own for views that raise.
        assert "A request failed" not in finished.stderr
        assert "Internal Server Error" not in finished.stderr
        return json.loads(finished.stdout)

    return run


@pytest.mark.skipif(connection.vendor == "mysql", reason="The first slice ran on two databases.")
def test_a_token_of_the_first_slice_works_after_all_migrations(site):
    found = site("upgrade", SECRET)

    assert found["records"] == ["A1"]
    assert "find_records" in found["tools"]
    assert found["owner"] == "clerk"
    assert found["used"]
    assert found["number"] >= 5  # the generation in the dump: caches of old processes stay void


def test_without_our_tables_the_site_works_and_the_endpoint_refuses(site):
    found = site("downgrade")

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

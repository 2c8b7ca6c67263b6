"""Databases of older releases are brought up to date, and a site can do without our tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from tests.upgrade.schema import schema
from tests.waiting import LONG_PATIENCE

pytestmark = pytest.mark.database


#: Of the token in the dumps.
SECRET = "mcp_w6yPLxCwTcRmdhb3PGgewUsXkstTo8QQ1SuTiaA6MaK1aPm2V"
#: The migrations since there is one in place of four.
LATER = [
    "0002_follow_relations",
    "0003_label_fields",
    "0004_reasons_of_calls",
    "0005_words_of_the_admin",
    "0006_pages_about_assistants",
    "0007_untrusted_fields",
    "0008_files_for_assistants",
]
ROOT = Path(__file__).parent.parent.parent


@contextmanager
def empty_database(folder, django_db_blocker):
    """A database of the kind that the tests run on."""
    if connection.vendor == "sqlite":
        yield str(folder / "site.sqlite3")
        return
    name = f"test_mcp_django_upgrade_{os.getpid()}"
    with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield name
        cursor.execute(f"DROP DATABASE {name}")


def runner(database):
    """Runs functions of `inside` on one database, each in a process of its own."""

    def run(*arguments, **environment):
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-m", "tests.upgrade.inside", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.upgrade.settings",
                "MCP_UPGRADE_DB": database,
                **environment,
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


@pytest.fixture
def new_schema(db):
    """Our tables on a site that never had an older release: this one."""
    return json.loads(json.dumps(schema()))


older_releases = pytest.mark.skipif(
    connection.vendor == "mysql", reason="The dumps of older releases are of two databases."
)


@older_releases
def test_a_site_that_applied_all_four_migrations_has_only_the_later_ones_to_do(site, new_schema):
    found = site("upgrade", SECRET)

    assert found["planned"] == LATER
    assert found["schema"] == new_schema
    assert found["records"] == ["A1"]
    assert "find_records" in found["tools"]
    assert found["owner"] == "clerk"
    assert found["used"]
    assert found["number"] >= 5  # the generation in the dump: caches of old processes stay void


@older_releases
def test_a_token_of_the_first_slice_works_after_the_steps_of_the_changelog(
    site, new_schema, tmp_path
):
    tokens = str(tmp_path / "tokens.json")
    site("leave_first_slice", tokens, MCP_UPGRADE_FROM="first_slice")

    found = site("come_back", tokens, SECRET)

    assert found["planned"] == ["0001_initial", *LATER]
    assert found["schema"] == new_schema
    assert found["records"] == ["A1"]
    assert "find_records" in found["tools"]
    assert found["owner"] == "clerk"
    assert found["used"]


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

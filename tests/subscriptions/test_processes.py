"""Commands, workers and forks: real processes with a database of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.waiting import LONG_PATIENCE

pytestmark = [pytest.mark.live, pytest.mark.thorough]


BEGIN = """
import os
import django
django.setup()
from django.core.management import call_command
from django.db import connections, transaction
from mcp_django.subscriptions.outbox import flush, register_default_sink
from tests.shop.models import Memo

def tell(batch):
    # One write, so that lines of two processes do not mix.
    lines = [f"{os.getpid() == parent} {one.topic} {one.is_whole}\\n" for one in batch]
    os.write(1, "".join(lines).encode())

parent = os.getpid()
register_default_sink(lambda: tell)
"""
MEMOS = "django://objects/shop.memo"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run code in a process of its own; what its outbox tells, line by line, in order."""
    folder = tmp_path_factory.mktemp("processes")
    environment = {
        **os.environ,
        "MCP_TEST_FILE": str(folder / "site.sqlite3"),
        "DJANGO_SETTINGS_MODULE": "tests.audit.process_settings",
    }

    def run(code):
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + dedent(code)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONG_PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if "://" in line]

    run.migrated = run('call_command("migrate", run_syncdb=True, verbosity=0)')
    return run


def test_migrating_announces_nothing(run):
    assert run.migrated == []


def test_a_process_that_saves_once_and_ends_is_heard(run):
    told = run('Memo(pk=7, text="x", code="seven").save()')

    assert f"True {MEMOS}/7 False" in told
    assert f"True {MEMOS} False" in told


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_children_of_a_process_that_published_are_heard(run):
    told = run(
        """
        Memo(pk=20, text="x", code="parent").save()
        flush()
        connections.close_all()
        children = []
        for number in (21, 22):
            child = os.fork()
            if not child:
                Memo(pk=number, text="x", code=f"child {number}").save()
                flush()
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        Memo(pk=23, text="x", code="parent again").save()
        """
    )

    records = [line for line in told if line.split()[1].startswith(f"{MEMOS}/")]
    assert sorted(records) == [
        f"False {MEMOS}/21 False",
        f"False {MEMOS}/22 False",
        f"True {MEMOS}/20 False",
        f"True {MEMOS}/23 False",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_in_the_middle_of_a_transaction_tells_once(run):
    told = run(
        """
        with transaction.atomic():
            Memo(pk=30, text="x", code="thirty").save()
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)
        """
    )

    assert told.count(f"True {MEMOS}/30 False") == 1
    assert not any(line.startswith("False") for line in told)

"""Commands, workers and forks: real processes with a database of their own."""

from __future__ import annotations

import os

import pytest

from tests.children import finished

pytestmark = [pytest.mark.live, pytest.mark.thorough]


BEGIN = """
import os
import django
django.setup()
from django.core.management import call_command
from django.db import connections, transaction
from mcp_django.subscriptions.outbox import flush, outbox
from tests.shop.models import Memo

def tell(batch):
    # One write, so that lines of two processes do not mix.
    lines = [f"{os.getpid() == parent} {one.topic} {one.is_whole}\\n" for one in batch]
    os.write(1, "".join(lines).encode())

parent = os.getpid()
outbox.register_default_sink(lambda: tell)
"""
MEMOS = "django://objects/shop.memo"


SAVE_AND_FORK = """
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
with transaction.atomic():
    Memo(pk=30, text="x", code="in a transaction").save()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
# The end of the process does not cut this off.
Memo(pk=40, text="x", code="last").save()
"""


def told(code, database):
    """What the outbox of a process that runs this code says of records, in any order."""
    settings = "tests.audit.process_settings"
    variables = {"MCP_TEST_FILE": str(database), "DJANGO_SETTINGS_MODULE": settings}
    done = finished("-c", BEGIN + code, **variables)
    assert done.returncode == 0, done.stderr
    return sorted(line for line in done.stdout.splitlines() if "://" in line)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_every_process_tells_what_it_saved_and_none_what_another_did_or_migrations_do(tmp_path):
    database = tmp_path / "site.sqlite3"
    migrated = told('call_command("migrate", run_syncdb=True, verbosity=0)', database)

    lines = told(SAVE_AND_FORK, database)

    assert migrated == []
    assert f"True {MEMOS} False" in lines
    assert [line for line in lines if f"{MEMOS}/" in line] == [
        f"False {MEMOS}/21 False",
        f"False {MEMOS}/22 False",
        f"True {MEMOS}/20 False",
        f"True {MEMOS}/30 False",
        f"True {MEMOS}/40 False",
    ]

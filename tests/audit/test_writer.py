from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from shutil import copyfile
from threading import Event
from zoneinfo import ZoneInfo

import pytest
from django.core import mail
from django.db import (
    DataError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from mcp_django.audit import records as writers
from mcp_django.audit.records import BATCH, COLUMNS, Records, write_rows
from mcp_django.models import CallRecord
from tests.children import finished
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.database


class Table:
    """Stands where the database does, and may be locked or gone."""

    def __init__(self, *errors, is_stuck=False):
        self.errors = list(errors)
        self.batches = []
        self.tried = Event()
        self.written = Event()
        #: A database that is stuck answers when the test says so.
        self.opened = Event()
        if not is_stuck:
            self.opened.set()

    def __call__(self, entries, using):
        self.tried.set()
        assert self.opened.wait(PATIENCE)
        if self.errors:
            raise self.errors.pop(0)
        self.batches.append([entry["target"] for entry in entries])
        self.written.set()

    @property
    def targets(self):
        return [target for batch in self.batches for target in batch]


LOCKED = OperationalError("database is locked")


def begun(writer, end):
    """A writer that has handed its first record over to the table."""
    writer.put(end)
    assert writer.write.tried.wait(PATIENCE)
    return writer


def fill(writer, end, count):
    for at in range(count):
        writer.put(end(str(at)))


def test_what_is_put_is_written_in_order_and_together(make_writer, make_end):
    table = Table()
    writer = make_writer(write=table, gather=PATIENCE)

    fill(writer, make_end, BATCH + 3)
    assert table.written.wait(PATIENCE)
    writer.close()

    assert [len(batch) for batch in table.batches] == [BATCH, 3]
    assert table.targets == [str(at) for at in range(BATCH + 3)]
    assert writer.lost == 0


def test_an_urgent_entry_behind_many_is_written_with_them(make_writer, make_end):
    table = Table(is_stuck=True)
    writer = make_writer(write=table, gather=PATIENCE * 10)
    fill(writer, make_end, BATCH)
    assert table.tried.wait(PATIENCE)
    fill(writer, make_end, BATCH)
    waiting = threading.Thread(target=writer.put, args=[make_end("last")], kwargs={"wait": True})
    waiting.start()
    table.opened.set()

    waiting.join(PATIENCE)

    assert not waiting.is_alive()
    assert table.targets[-1] == "last"


def test_a_locked_database_is_asked_again_until_it_is_free(make_writer, make_end, caplog):
    table = Table(LOCKED, InterfaceError("connection already closed"), LOCKED)
    writer = make_writer(write=table)

    writer.put(make_end())

    assert table.written.wait(PATIENCE)
    wait_until(lambda: not writer._is_troubled)
    writer.put(make_end("after the trouble"), wait=True)
    assert table.targets == ["echo", "after the trouble"]
    assert writer.lost == 0
    assert caplog.text.count("have to wait for the database") == 1


def test_calls_do_not_wait_while_the_database_makes_trouble(make_writer, make_end):
    table = Table(LOCKED)
    writer = make_writer(write=table, pauses=(PATIENCE * 10,), patience=PATIENCE * 10)
    begun(writer, make_end("first"))
    wait_until(lambda: writer._is_troubled)

    writer.put(make_end("second"), wait=True)

    assert len(writer._waiting) == 1
    assert table.batches == []


def test_a_call_waits_for_a_slow_database_once_and_not_for_long(make_writer, make_end):
    table = Table(is_stuck=True)
    writer = make_writer(write=table, patience=0.01)

    writer.put(make_end("first"), wait=True)
    writer.patience = PATIENCE * 10
    writer.put(make_end("second"), wait=True)

    assert table.batches == []
    table.opened.set()
    writer.close()
    assert table.targets == ["first", "second"]


def test_what_has_no_room_is_lost_and_counted_and_the_rest_is_kept(make_writer, make_end, caplog):
    table = Table(is_stuck=True)
    writer = begun(make_writer(write=table, room=5, patience=PATIENCE * 10), make_end("first"))

    fill(writer, make_end, 12)
    # Nobody waits for what is lost.
    writer.put(make_end("last"), wait=True)
    table.opened.set()
    writer.close()

    assert writer.lost == 8
    assert table.targets == ["first", "0", "1", "2", "3", "4"]
    assert "8 records of calls were lost, 8 in all." in caplog.text


def test_an_entry_that_cannot_be_written_takes_no_other_with_it_and_nobody_waits_for_it(
    make_writer, make_end, caplog
):
    table = Table()

    def refuse_poison(entries, using):
        if any(entry["target"] == "poison" for entry in entries):
            raise DataError("no such character")
        table(entries, using)

    writer = make_writer(write=refuse_poison, gather=PATIENCE, patience=PATIENCE * 10)
    for target in ("a", "b"):
        writer.put(make_end(target))

    writer.put(make_end("poison"), wait=True)

    assert sorted(table.targets) == ["a", "b"]
    assert writer.lost == 1
    assert "no such character" in caplog.text


def test_a_thread_that_died_is_replaced(make_writer, make_end, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    table = Table(SystemExit())
    writer = make_writer(write=table)
    writer.put(make_end("first"))
    writer._thread.join(PATIENCE)

    writer.put(make_end("second"), wait=True)

    assert table.targets == ["second"]


def test_a_thread_that_ends_late_leaves_the_one_after_it_alone(make_writer, make_end):
    table = Table(is_stuck=True)
    writer = begun(make_writer(write=table), make_end("first"))
    late = writer._thread
    writer.close(seconds=0)
    writer.put(make_end("second"))
    table.opened.set()
    late.join(PATIENCE)
    writer.put(make_end("third"), wait=True)

    assert sorted(table.targets) == ["first", "second", "third"]


def test_a_database_that_is_locked_at_the_end_costs_the_records_and_no_more(
    make_writer, make_end, caplog
):
    table = Table(*[LOCKED] * 1000)
    writer = begun(make_writer(write=table, pauses=(PATIENCE * 10,)), make_end())

    writer.close()

    assert writer.lost == 1
    assert "1 records of calls were lost" in caplog.text


def test_a_database_that_hangs_at_the_end_is_not_waited_for(make_writer, make_end, caplog):
    table = Table(is_stuck=True)
    writer = begun(make_writer(write=table, gather=0.0), make_end("in hand"))
    fill(writer, make_end, 4)

    writer.close(seconds=0.01)

    assert writer.lost == 4
    table.opened.set()


def test_where_no_thread_can_start_an_entry_is_lost(make_writer, make_end, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    writer = make_writer(write=Table())
    monkeypatch.setattr(threading.Thread, "start", refuse)

    writer.put(make_end(), wait=True)

    assert writer.lost == 1


def test_an_event_loop_never_waits(make_writer, make_end):
    table = Table(is_stuck=True)
    writer = make_writer(write=table, patience=PATIENCE * 10)

    async def put():
        writer.put(make_end(), wait=True)

    asyncio.run(put())

    assert table.batches == []
    table.opened.set()


def test_what_is_put_while_the_writer_ends_is_written_or_counted(make_writer, make_end):
    table = Table()
    writer = make_writer(write=table)
    done = Event()

    def close():
        while not done.is_set():
            writer.close()

    with ThreadPoolExecutor(9) as threads:
        closing = threads.submit(close)
        puts = [threads.submit(fill, writer, make_end, 500) for _ in range(8)]
        for put in puts:
            put.result()
        done.set()
        closing.result()
    writer.close()

    assert len(writer._waiting) == 0
    assert len(table.targets) + writer.lost == 8 * 500


# With a real database


@pytest.mark.django_db(transaction=True)
def test_a_call_in_a_transaction_does_not_wait_for_what_it_may_hold_up(make_writer, make_end):
    writer = make_writer(patience=PATIENCE * 10)

    with transaction.atomic():
        # On SQLite this holds the only lock.
        CallRecord.objects.create(method="x")
        writer.put(make_end("mine"), wait=True)
        transaction.set_rollback(True)
    writer.close()

    assert list(CallRecord.objects.values_list("target", flat=True)) == ["mine"]
    assert writer.lost == 0


@pytest.mark.django_db(transaction=True)
def test_records_are_written_over_a_connection_that_is_closed_when_it_is_quiet(
    make_writer, make_end, monkeypatch
):
    closed = Event()
    seen = set()

    def close():
        seen.update(id(one.connection) for one in connections.all(initialized_only=True))
        close_for_good()
        closed.set()

    close_for_good = writers.close_connections
    monkeypatch.setattr(writers, "close_connections", close)
    writer = make_writer(quiet=0.01)

    writer.put(make_end("a"), wait=True)
    assert closed.wait(PATIENCE)
    writer.put(make_end("b"), wait=True)

    assert id(connection.connection) not in seen
    assert CallRecord.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="Needs a server to cut off.")
def test_a_connection_that_was_cut_is_replaced(make_writer, make_end):
    writer = make_writer()
    writer.put(make_end("a"), wait=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    writer.put(make_end("b"))
    writer.close()

    assert writer.lost == 0
    assert sorted(CallRecord.objects.values_list("target", flat=True)) == ["a", "b"]


@pytest.mark.django_db
def test_every_column_arrives_as_it_was(make_end, staff):
    end = make_end(user_id=staff.pk, rows=7, arguments={"name": "echo", "n": [1, None]})

    write_rows([end, make_end("other")], "default")

    record, other = CallRecord.objects.order_by("pk")
    assert {name: getattr(record, name) for name in COLUMNS} == end
    assert (other.user_id, other.rows, other.arguments) == (None, None, None)
    assert CallRecord.objects.filter(arguments__isnull=True).count() == 1


@pytest.fixture(params=[UTC, ZoneInfo("Europe/Paris")], ids=str)
def zone_of_connection(request, db, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(connection, "timezone", request.param)
        patched.setattr(connection, "timezone_name", str(request.param))
        # Of the session as well, where the database has one.
        connection.ensure_timezone()
        yield
    connection.ensure_timezone()


def test_a_time_arrives_as_that_moment_whatever_zone_the_database_has(
    make_end, zone_of_connection
):
    end = make_end()

    write_rows([end], "default")

    assert CallRecord.objects.get().at == end["at"]


@pytest.mark.django_db
def test_a_site_without_time_zones_keeps_its_own_time(make_end, settings):
    settings.USE_TZ = False
    before = datetime.now()

    write_rows([make_end()], "default")

    found = CallRecord.objects.get().at
    assert found.tzinfo is None
    assert timedelta() <= found - before < timedelta(minutes=1)


@pytest.mark.django_db
def test_a_batch_is_written_whole_or_not_at_all(make_end):
    with pytest.raises(Exception), transaction.atomic():  # noqa: B017, PT011  each has its own
        write_rows([make_end(), make_end(bytes=None)], "default")

    assert not CallRecord.objects.exists()


# The process


def test_a_thread_writes_but_under_a_test_runner(make_writer, make_end, monkeypatch):
    table = Table()
    records = Records()
    records.writer = make_writer(write=table)

    records.put(make_end("under a test runner"))
    before = len(records.writer._waiting), records.writer._thread
    monkeypatch.delattr(mail, "outbox")
    records.put(make_end(), wait=True)

    assert before == (0, None)
    assert table.targets == ["echo"]


START = """
import os, sys, django
django.setup()
from django.core.management import call_command
from mcp_django.audit.records import COLUMNS, records
from mcp_django.models import CallRecord

def put(target, **options):
    record = CallRecord(kind="tool", method="m", target=target, outcome="done")
    records.put({name: getattr(record, name) for name in COLUMNS}, **options)

def targets():
    return sorted(CallRecord.objects.values_list("target", flat=True))
"""


def run(code, database):
    variables = {
        "DJANGO_SETTINGS_MODULE": "tests.audit.process_settings",
        "MCP_TEST_FILE": str(database),
    }
    return finished("-W", "ignore", "-c", START + code, **variables)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    path = tmp_path_factory.mktemp("calls") / "calls.sqlite3"
    run('call_command("migrate", verbosity=0)', path)
    return path


@pytest.fixture
def database(migrated, tmp_path):
    return copyfile(migrated, tmp_path / "calls.sqlite3")


FORK = """
records.writer.gather = 1
put("parent")
child = os.fork()
put("child" if not child else "parent too")
if child:
    os.waitpid(child, 0)
else:
    # Under a server a child ends as any process does.
    records.close()
    os._exit(0)
"""
CAN_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="The system cannot fork.")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "returned", "written"),
    [
        ('put("a"); put("b")', 0, ["a", "b"]),
        (
            'put("read"); put("write", wait=True); os.kill(os.getpid(), 9)',
            -signal.SIGKILL,
            ["read", "write"],
        ),
        pytest.param(FORK, 0, ["child", "parent", "parent too"], marks=CAN_FORK),
    ],
    ids=["end", "kill", "fork"],
)
def test_a_process_writes_what_is_left_or_what_it_answered_for_and_only_its_own(
    database, code, returned, written
):
    done = run(code, database)

    assert (done.stderr, done.returncode) == ("", returned)
    assert run("print(targets())", database).stdout == f"{written}\n"

"""What only the store in the database has to care about."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import OperationalError, connection, transaction

from mcp_django.models import EventLog, LogEvent, OpenQuestion, Subscription
from mcp_django.models import Session as SessionRow
from mcp_django.protocol.errors import ProtocolError
from mcp_django.stores import transactions
from mcp_django.stores.transactions import is_inside, written
from tests.stores.conftest import COMMITS

pytestmark = [COMMITS, pytest.mark.database]


@pytest.fixture
def store(database):
    return database


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("update_session", ["s1"]),
        ("end_session", ["s1"]),
        ("append", ["l1", [b"a"]]),
        ("renew", ["hub"]),
        ("withdraw", ["q1"]),
        ("hide_stream", ["t1"]),
    ],
)
def test_a_caller_inside_of_a_transaction_is_told(store, method, arguments):
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        getattr(store, method)(*arguments)


@pytest.mark.django_db(transaction=False)
def test_only_a_transaction_of_the_project_is_one_to_stay_out_of():
    assert connection.in_atomic_block
    assert not is_inside()

    with transaction.atomic():
        assert is_inside()


#: What is done with a session, ten of its logs and ten of its questions, and what that costs.
COSTS = [
    (lambda store: store.session("s1"), ["SELECT"]),
    # Within the minute after it was seen.
    (lambda store: store.see("s1"), ["SELECT"]),
    (lambda store: store.append("l1", [b"a"] * 50), ["UPDATE", "SELECT", "INSERT"]),
    (lambda store: store.renew("hub"), ["INSERT"]),
]


@pytest.mark.parametrize(("work", "statements"), COSTS)
def test_the_costs_do_not_grow(
    store, session, open_log, ask, django_assert_max_num_queries, work, statements
):
    for number in range(10):
        open_log(f"l{number}")
        ask(f"q{number}")

    with django_assert_max_num_queries(5) as captured:
        work(store)

    kinds = [query["sql"].split()[0] for query in captured]
    assert [kind for kind in kinds if kind not in {"BEGIN", "COMMIT"}] == statements


@pytest.mark.usefixtures("filled")
def test_nothing_of_an_ended_session_is_left(store):
    store.end_session("s1")

    tables = [SessionRow, Subscription, EventLog, LogEvent, OpenQuestion]
    assert not any(table.objects.exists() for table in tables)


def test_events_that_went_are_not_left_in_the_table(store, log):
    for _ in range(3):
        store.append("l1", [b"a"] * 200)

    assert LogEvent.objects.count() == 256


@pytest.mark.thorough
def test_more_idle_sessions_than_one_transaction_takes_are_pruned(store, clock, add_session):
    for number in range(201):
        add_session(f"s{number}")
    clock.pass_by(minutes=30)

    assert store.prune() == 201


def test_a_key_that_is_taken_is_an_error_that_does_not_last(store, add_session):
    add_session()

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        add_session()


# Trying again


def test_work_that_others_were_in_the_way_of_is_done_again_and_not_where_the_database_is_gone():
    waiting = [OperationalError("database is locked")] * 3

    @written
    def write():
        if waiting:
            raise waiting.pop()
        return "done"

    assert write() == "done"
    waiting.append(OperationalError("no such host"))
    with pytest.raises(OperationalError, match="no such host"):
        write()


@pytest.fixture
def held():
    """A lock of somebody else on a session: on SQLite on everything."""
    held, released = Event(), Event()

    def lock():
        try:
            with transaction.atomic():
                SessionRow.objects.filter(key="s1").update(log_level="error")
                held.set()
                released.wait()
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        pool.submit(lock)
        held.wait()
        yield
        released.set()


@pytest.mark.skipif(connection.vendor == "mysql", reason="Its own limit is 50 seconds.")
def test_whoever_writes_what_others_hold_is_told_to_come_back(
    store, session, held, monkeypatch, caplog
):
    monkeypatch.setattr(transactions, "PATIENCE", 0.1)
    if connection.vendor == "sqlite":
        # Not the 20 seconds of the settings.
        connection.cursor().execute("PRAGMA busy_timeout = 100")

    with pytest.raises(ProtocolError, match=r"busy\. Try again later\.") as raised:
        store.subscribe("s1", "django://site", most=5)

    assert raised.value.status == 503
    assert "What sessions are to remember cannot be written" in caplog.text

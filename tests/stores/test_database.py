"""What only the store in the database has to care about."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from django.db import OperationalError, connection, transaction

from mcp_django.models import (
    EventLog,
    Lease,
    LiveStream,
    LogEvent,
    OpenQuestion,
    Subscription,
)
from mcp_django.models import Session as SessionRow
from mcp_django.protocol.errors import ProtocolError
from mcp_django.signing import digest_of
from mcp_django.stores.bounds import SEEN_EVERY
from mcp_django.stores.database import DatabaseStore
from mcp_django.stores.interface import OpenStream, Question
from mcp_django.stores.last_used import LastSeen
from mcp_django.stores.transactions import until_done, written
from tests.stores.conftest import COMMITS

pytestmark = [COMMITS, pytest.mark.database]


@pytest.fixture
def store(database):
    return database


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("see", ["s1"]),
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
def test_the_transaction_round_a_test_of_django_does_not_count(store, add_session, open_log, read):
    add_session()
    open_log()
    store.append("l1", [b"a"])

    assert connection.in_atomic_block
    assert read() == [b"a"]
    assert store.session("s1")


def test_a_session_is_looked_up_in_one_query(store, add_session, django_assert_num_queries):
    add_session()

    with django_assert_num_queries(1):
        store.session("s1")
    # What was read says when it was last seen.
    with django_assert_num_queries(0):
        store.see("s1")


def statements(captured):
    """Without BEGIN and COMMIT."""
    return [one["sql"] for one in captured if one["sql"].split()[0] not in {"BEGIN", "COMMIT"}]


def test_many_events_cost_three_statements(
    store, add_session, open_log, django_assert_max_num_queries
):
    add_session()
    open_log()

    with django_assert_max_num_queries(5) as captured:
        store.append("l1", [b"a"] * 50)

    assert len(statements(captured)) == 3


def test_a_lease_is_renewed_in_one_statement_for_any_number_of_logs(
    store, add_session, open_log, django_assert_max_num_queries
):
    add_session()
    for number in range(10):
        open_log(f"l{number}")
        store.ask(Question(session="s1", id=f"q{number}", owner="hub"))

    with django_assert_max_num_queries(3) as captured:
        store.renew("hub")

    assert len(statements(captured)) == 1


def test_use_that_another_process_has_written_is_not_written_again(
    store, clock, dice, add_session, django_assert_max_num_queries
):
    add_session()
    store.session("s1")
    clock.pass_by(seconds=100)
    other = DatabaseStore(clock=clock, dice=dice)
    other.see("s1")
    clock.pass_by(seconds=30)

    store.see("s1")

    assert store.session("s1").seen == other.session("s1").seen
    with django_assert_max_num_queries(0):
        store.see("s1")


def test_a_process_remembers_a_bounded_number_of_sessions(clock):
    last_seen = LastSeen(size=2)

    for key in ("a", "b", "a", "c"):
        last_seen.note(key, clock())

    known = [key for key in "abc" if last_seen.is_within(SEEN_EVERY, key, now=clock())]
    assert known == ["a", "c"]


def test_nothing_of_an_ended_session_is_left(store, add_session, open_log):
    add_session()
    open_log()
    store.append("l1", [b"a"] * 3)
    store.subscribe("s1", "django://1", most=5)
    store.ask(Question(session="s1", id="q1", owner="hub"))

    store.end_session("s1")

    assert not SessionRow.objects.exists()
    assert not LogEvent.objects.exists()
    assert not Subscription.objects.exists()


def test_events_that_went_are_not_left_in_the_table(store, add_session, open_log):
    add_session()
    open_log()

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


def test_rows_say_what_they_are(store, clock, add_session, open_log):
    add_session()
    open_log()
    store.append("l1", [b"a"])
    store.subscribe("s1", "django://1", most=5)
    store.ask(Question(session="s1", id="q1", owner="hub"))
    store.show_stream(
        OpenStream(
            key="t1",
            owner="hub",
            server="default",
            principal="p",
            kind="listen",
            revision="2026-07-28",
            opened=clock(),
        )
    )

    tables = [SessionRow, Subscription, EventLog, LogEvent, LiveStream, Lease]
    assert [str(table.objects.get()) for table in tables] == [
        "s1",
        "django://1",
        "l1",
        "1",
        "t1",
        "hub",
    ]
    assert str(OpenQuestion.objects.get()) == digest_of("q1")[:12]


# Trying again


class Work:
    """Raises what it is given, one after the other, and then returns."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def __call__(self):
        if self.errors:
            raise self.errors.pop(0)
        return "done"


LOCKED = OperationalError("database is locked")


def test_work_that_others_were_in_the_way_of_is_done_again():
    assert until_done(Work(LOCKED, LOCKED, LOCKED)) == "done"


def test_after_a_while_it_is_not_done_again():
    work = Work(LOCKED, LOCKED)

    with pytest.raises(OperationalError):
        until_done(work, seconds=0)

    assert len(work.errors) == 1


def test_a_database_that_is_gone_is_not_asked_again():
    work = Work(OperationalError("no such host"), LOCKED)

    with pytest.raises(OperationalError, match="no such host"):
        until_done(work)

    assert len(work.errors) == 1


# Others who do not let go


@pytest.fixture
def hold():
    """Somebody else with a lock on a session: on SQLite on everything."""
    held, released = Event(), Event()

    def lock():
        try:
            with transaction.atomic():
                SessionRow.objects.filter(key="s1").update(log_level="error")
                held.set()
                released.wait()
        finally:
            connection.close()

    thread = Thread(target=lock)

    def start():
        thread.start()
        held.wait()

    yield start
    released.set()
    thread.join()


@pytest.mark.thorough
@pytest.mark.skipif(connection.vendor == "mysql", reason="Its own limit is 50 seconds.")
def test_whoever_writes_what_others_hold_is_told_to_come_back(store, add_session, hold, caplog):
    add_session()
    if connection.vendor == "sqlite":
        # Not the 20 seconds of the settings.
        connection.cursor().execute("PRAGMA busy_timeout = 100")
    hold()

    with pytest.raises(ProtocolError, match=r"busy\. Try again later\.") as raised:
        store.subscribe("s1", "django://site", most=5)

    assert raised.value.status == 503
    assert "What sessions are to remember cannot be written" in caplog.text


def test_a_database_that_is_gone_is_not_said_to_be_busy():
    @written
    def fail():
        raise OperationalError("no such host")

    with pytest.raises(OperationalError, match="no such host"):
        fail()

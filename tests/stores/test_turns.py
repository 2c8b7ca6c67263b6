"""On SQLite, records and the like are written while no call is in the middle of its own."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from threading import Event, Thread

import pytest
from django.db import connection, connections

from mcp_django.stores.transactions import Turns
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="Others have many writers."),
]


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture(autouse=True)
def deferred(monkeypatch):
    """Transactions as Django has them where nobody says otherwise."""
    monkeypatch.setitem(connections.settings["default"], "OPTIONS", {})


@pytest.fixture
def in_thread():
    """Starts a function in a thread, and ends it with the test."""
    threads = []

    def start(function):
        def run():
            try:
                function()
            finally:
                connections.close_all()

        thread = Thread(target=run)
        threads.append(thread)
        thread.start()

    with ExitStack() as stack:
        stack.callback(lambda: [thread.join(PATIENCE) for thread in threads])
        yield start


@pytest.fixture
def write(turns, in_thread):
    """Write in a thread, and say when that is done. `work` is what happens meanwhile."""

    def start(work=bool):
        done = Event()

        def run():
            with turns.alone("default"):
                work()
            done.set()

        in_thread(run)
        return done

    return start


def test_a_writer_waits_until_calls_are_over(turns, in_thread, write):
    steps = []

    def enter():
        with turns.call():
            steps.append("entered")

    with turns.call():
        done = write(lambda: steps.append("written"))
        # A call that comes meanwhile does not wait for the one that runs.
        in_thread(enter)
        while "entered" not in steps:
            done.wait(0.01)
        steps.append("over")

    assert done.wait(PATIENCE)
    assert steps == ["entered", "over", "written"]


def be_impatient(settings):
    settings.MCP_DJANGO = {**settings.MCP_DJANGO, "TOOL_TIMEOUT": 0.01}


def take_the_lock_before_reading(settings):
    connections.settings["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE"}


@pytest.mark.parametrize(
    ("prepare", "is_paused"),
    [
        # A call that waits for a writer, one that takes too long, and transactions without need.
        (bool, True),
        (be_impatient, False),
        (take_the_lock_before_reading, False),
    ],
)
def test_a_writer_does_not_wait_for_every_call(turns, write, settings, prepare, is_paused):
    prepare(settings)

    with turns.call(), turns.paused() if is_paused else nullcontext():
        assert write().wait(PATIENCE)


def test_a_child_of_a_fork_knows_nothing_of_the_calls_of_its_parent(turns, write):
    with turns.call():
        turns.forget()

        assert write().wait(PATIENCE)

    with turns.call():
        second = write()
        assert not second.is_set()
    assert second.wait(PATIENCE)


def test_whoever_writes_alone_waits_for_other_processes_for_a_moment_and_never_for_itself(turns):
    def patience():
        with connection.cursor() as cursor:
            return cursor.execute("PRAGMA busy_timeout").fetchone()[0]

    before = patience()
    with turns.alone("default"):
        assert patience() < before

    assert patience() == before
    # A call that writes what belongs to none.
    with turns.call(), turns.alone("default"):
        assert patience() == before


def test_a_connection_that_is_closed_by_whoever_writes_alone_is_left_closed(write):
    assert write(lambda: connections["default"].close()).wait(PATIENCE)

"""On SQLite, records and the like are written while no call is in the middle of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

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
    """Run a function in another thread, whose connections end with it."""

    def run(function):
        try:
            function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor() as pool:
        yield lambda function: pool.submit(run, function)


@pytest.fixture
def write(turns, in_thread):
    """Write in a thread. `work` is what happens meanwhile."""

    def run(work):
        with turns.alone("default"):
            work()

    return lambda work=bool: in_thread(partial(run, work))


def test_a_writer_waits_until_calls_are_over(turns, in_thread, write):
    steps = []

    def enter():
        with turns.call():
            steps.append("entered")

    with turns.call():
        writing = write(lambda: steps.append("written"))
        # A call that comes meanwhile does not wait for the one that runs.
        in_thread(enter).result(PATIENCE)
        steps.append("over")

    writing.result(PATIENCE)
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
        write().result(PATIENCE)


def test_a_child_of_a_fork_knows_nothing_of_the_calls_of_its_parent(turns, write):
    with turns.call():
        turns.forget()

        write().result(PATIENCE)

    with turns.call():
        second = write()
        assert not second.done()
    second.result(PATIENCE)


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
    write(lambda: connections["default"].close()).result(PATIENCE)

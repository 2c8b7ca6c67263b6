"""Uses of tokens and sessions are written in a thread that nobody waits for."""

from __future__ import annotations

import threading
from threading import Event

import pytest
from django.core import mail
from django.db import connection, connections

from mcp_django.stores.last_used import Uses, note_use
from tests.waiting import PATIENCE


@pytest.fixture
def uses():
    return Uses()


def here():
    return threading.current_thread()


def test_whoever_notes_a_use_does_not_wait_for_it_to_be_written(uses):
    noted, written, threads = Event(), Event(), []

    def write():
        noted.wait(PATIENCE)
        threads.append(here())
        written.set()

    uses.note("a", write)
    noted.set()

    assert written.wait(PATIENCE)
    assert here() not in threads


def test_of_one_token_the_last_use_counts(uses):
    begun, may_end, done, written = Event(), Event(), Event(), []

    def hold():
        begun.set()
        may_end.wait(PATIENCE)

    uses.note("first", hold)
    begun.wait(PATIENCE)
    uses.note("a", lambda: written.append(1))
    uses.note("a", lambda: written.append(2))
    uses.note("b", done.set)
    may_end.set()

    assert done.wait(PATIENCE)
    assert written == [2]


def test_a_use_that_cannot_be_written_is_in_the_way_of_no_other(uses, caplog):
    written = Event()

    def fail():
        raise OSError("gone")

    uses.note("a", fail)
    uses.note("b", written.set)

    assert written.wait(PATIENCE)
    assert "The last use of a token or session is not noted: gone" in caplog.text


def test_no_more_wait_than_there_is_room_for():
    uses, begun, may_end, written = Uses(room=1), Event(), Event(), []
    done = Event()

    def hold():
        begun.set()
        may_end.wait(PATIENCE)

    uses.note("first", hold)
    begun.wait(PATIENCE)
    uses.note("a", lambda: written.append("a"))
    uses.note("b", lambda: written.append("b"))
    uses.note("a", done.set)
    may_end.set()

    assert done.wait(PATIENCE)
    assert written == []


def test_the_thread_ends_when_there_is_nothing_to_write_and_another_one_begins():
    uses, threads, first, written = Uses(quiet=0), [], Event(), Event()
    uses.note("a", lambda: (threads.append(here()), first.set()))
    first.wait(PATIENCE)
    threads[0].join(PATIENCE)

    uses.note("b", lambda: (threads.append(here()), written.set()))

    assert written.wait(PATIENCE)
    assert threads[0] is not threads[1]


def test_late_at_the_end_of_a_process_a_use_is_lost_and_nothing_fails(uses, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    written = Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        uses.note("a", pytest.fail)

    uses.note("a", written.set)

    assert written.wait(PATIENCE)


def test_a_test_runner_has_uses_written_at_once_in_its_own_thread():
    threads = []

    note_use("a", lambda: threads.append(here()))

    assert threads == [here()]


def test_a_child_of_a_fork_has_nothing_of_its_parent_to_write(uses):
    begun, may_end, done = Event(), Event(), Event()

    def hold():
        begun.set()
        may_end.wait(PATIENCE)

    uses.note("first", hold)
    begun.wait(PATIENCE)
    uses.note("a", pytest.fail)

    uses.forget()
    uses.note("b", done.set)

    assert done.wait(PATIENCE)
    may_end.set()


def test_a_process_that_runs_no_tests_has_them_written_in_the_thread(monkeypatch):
    monkeypatch.delattr(mail, "outbox")
    threads, written = [], Event()

    note_use("a", lambda: (threads.append(here()), written.set()))

    assert written.wait(PATIENCE)
    assert here() not in threads


@pytest.mark.django_db
def test_the_connection_ends_with_the_thread():
    uses, found, written = Uses(quiet=0), [], Event()

    def write():
        connection.ensure_connection()
        found.extend([here(), connection.connection, connections["default"]])
        written.set()

    uses.note("a", write)

    assert written.wait(PATIENCE)
    thread, raw, wrapper = found
    thread.join(PATIENCE)
    assert raw is not None
    assert wrapper.connection is None

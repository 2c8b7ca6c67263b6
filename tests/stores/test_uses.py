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


@pytest.fixture
def held():
    """Keep the thread of some uses busy, until the event is set that this returns."""
    may_end = Event()

    def hold(uses):
        begun = Event()
        uses.note("first", lambda: (begun.set(), may_end.wait(PATIENCE)))
        assert begun.wait(PATIENCE)
        return may_end

    yield hold
    may_end.set()


def noted(note):
    """The thread in which one more use is written, once it is."""
    done, threads = Event(), []
    note("last", lambda: (threads.append(threading.current_thread()), done.set()))
    assert done.wait(PATIENCE)
    return threads[0]


def test_of_one_token_the_last_use_counts_and_no_more_wait_than_there_is_room_for(held):
    uses, written, done = Uses(room=2), [], Event()
    may_end = held(uses)

    uses.note("a", lambda: written.append("a1"))
    uses.note("b", lambda: written.append("b"))
    uses.note("c", lambda: written.append("c"))
    uses.note("a", lambda: written.append("a2"))
    uses.note("b", done.set)
    may_end.set()

    assert done.wait(PATIENCE)
    assert written == ["a2"]


def test_a_use_that_cannot_be_written_is_in_the_way_of_no_other(uses, caplog):
    def fail():
        raise OSError("gone")

    uses.note("a", fail)
    noted(uses.note)

    assert "The last use of a token or session is not noted: gone" in caplog.text


def test_late_at_the_end_of_a_process_a_use_is_lost_and_nothing_fails(uses, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        uses.note("last", pytest.fail)

    assert noted(uses.note)


def test_a_child_of_a_fork_has_nothing_of_its_parent_to_write(uses, held):
    held(uses)
    uses.note("a", pytest.fail)

    uses.forget()

    assert noted(uses.note)


def test_a_process_that_runs_no_tests_has_them_written_in_the_thread(monkeypatch):
    assert noted(note_use) is threading.current_thread()

    monkeypatch.delattr(mail, "outbox")

    assert noted(note_use) is not threading.current_thread()


@pytest.mark.django_db
def test_the_thread_and_its_connection_end_when_there_is_nothing_to_write():
    uses, held, written = Uses(quiet=0), [], Event()

    def write():
        connection.ensure_connection()
        held.extend([threading.current_thread(), connection.connection, connections["default"]])
        written.set()

    uses.note("a", write)

    assert written.wait(PATIENCE)
    thread, raw, wrapper = held
    thread.join(PATIENCE)
    assert raw is not None
    assert wrapper.connection is None
    assert noted(uses.note) is not thread

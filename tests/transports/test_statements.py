"""What is stopped of the statements of a job. The drivers are fakes: each has its own way."""

from __future__ import annotations

import threading

import pytest

from mcp_django.transports import statements
from mcp_django.transports.statements import Statements


class Safe:
    def __init__(self, stopped):
        self.stopped = stopped

    def cancel_safe(self, *, timeout):
        self.stopped.append("safely")


class Old:
    def __init__(self, stopped):
        self.stopped = stopped

    def cancel(self):
        self.stopped.append("as of old")


class Gone:
    def cancel(self):
        raise OSError


class Wrapper:
    def __init__(self, raw, vendor="postgresql"):
        self.connection = raw
        self.vendor = vendor


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def connect(monkeypatch):
    class Connections:
        wrappers = ()

        def all(self):
            return self.wrappers

    found = Connections()
    monkeypatch.setattr(statements, "connections", found)

    def connect(*wrappers):
        found.wrappers = wrappers

    return connect


def test_the_statement_of_a_job_is_stopped_in_the_way_of_its_driver(connect, stopped):
    connect(Wrapper(Safe(stopped)), Wrapper(None), Wrapper(Gone()), Wrapper(Old(stopped)))
    job = Statements()

    assert job.run(lambda: (job.may_run, job.stop())) == (True, None)

    assert stopped == ["safely", "as of old"]


def test_other_databases_are_left_alone(connect, stopped):
    connect(Wrapper(Old(stopped), vendor="sqlite"))
    job = Statements()

    assert job.run(lambda: (job.may_run, job.stop())) == (False, None)

    assert stopped == []


def test_behind_its_end_a_job_has_nothing_to_stop(connect, stopped):
    connect(Wrapper(Old(stopped)))
    job = Statements()

    with pytest.raises(ZeroDivisionError):
        job.run(lambda: 1 / 0)
    job.stop()

    assert not job.may_run
    assert stopped == []


def test_the_thread_goes_on_only_when_nobody_is_about_to_stop_it(connect, stopped):
    """A stop that came late would hit the next job of the thread."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        def cancel(self):
            begun.set()
            assert go_on.wait(5)
            stopped.append("in time")

    connect(Wrapper(Slow()))
    job = Statements()
    stopping = threading.Thread(target=job.stop)

    def work():
        stopping.start()
        assert begun.wait(5)
        threading.Timer(0.05, go_on.set).start()

    job.run(work)

    assert stopped == ["in time"]
    stopping.join(5)

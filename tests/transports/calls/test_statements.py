"""What is stopped of the statements of a job. The drivers are fakes: each has its own way."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured

from mcp_django.transports.calls.running import Statements
from tests.waiting import PATIENCE


class Connections(dict):
    """As Django keeps them: by alias, made at first need."""

    def __init__(self):
        self.settings = {}

    def __missing__(self, alias):
        raise ImproperlyConfigured(f"{alias} has no driver.")

    def add(self, raw, *, engine="django.db.backends.postgresql"):
        alias = str(len(self.settings))
        self.settings[alias] = {"ENGINE": engine}
        self[alias] = SimpleNamespace(connection=raw)


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def fakes(monkeypatch):
    fakes = Connections()
    monkeypatch.setattr("mcp_django.transports.calls.running.connections", fakes)
    return fakes


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("django.contrib.gis.db.backends.postgis", ["safely", "as of old"]),
        ("django.db.backends.sqlite3", []),
    ],
)
def test_the_statement_of_a_job_on_postgresql_is_stopped_in_the_way_of_its_driver(
    fakes, stopped, engine, expected
):
    psycopg = SimpleNamespace(cancel_safe=lambda *, timeout: stopped.append("safely"))
    psycopg2 = SimpleNamespace(cancel=lambda: stopped.append("as of old"))
    closed = SimpleNamespace(cancel=lambda: 1 / 0)
    for raw in (psycopg, None, closed, psycopg2):
        fakes.add(raw, engine=engine)
    # Of a driver that is not there.
    fakes.settings["old"] = {"ENGINE": engine}
    job = Statements()

    assert job.run(lambda: (job.may_run, job.stop())) == (bool(expected), None)

    assert stopped == expected


def test_behind_its_end_a_job_has_nothing_to_stop(fakes, stopped):
    fakes.add(SimpleNamespace(cancel=lambda: stopped.append("too late")))
    job = Statements()

    with pytest.raises(ZeroDivisionError):
        job.run(lambda: 1 / 0)
    job.stop()

    assert not job.may_run
    assert stopped == []


def test_the_thread_goes_on_only_when_nobody_is_about_to_stop_it(fakes, stopped):
    """A stop that came late would hit the next job of the thread."""
    begun, go_on = threading.Event(), threading.Event()

    def cancel():
        begun.set()
        assert go_on.wait(PATIENCE)
        stopped.append("in time")

    fakes.add(SimpleNamespace(cancel=cancel))
    job = Statements()
    stopping = threading.Thread(target=job.stop)

    def work():
        stopping.start()
        assert begun.wait(PATIENCE)
        threading.Timer(0.05, go_on.set).start()

    job.run(work)

    assert stopped == ["in time"]
    stopping.join(PATIENCE)

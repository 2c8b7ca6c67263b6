"""Threads of this package keep connections of their own, and take none out of a pool."""

from __future__ import annotations

from threading import Event

import pytest
from django.db import Error, connections

from mcp_django.audit.records import Writer
from mcp_django.connections import refresh_connections, release_connections
from mcp_django.stores.last_used import Uses
from tests.waiting import PATIENCE


@pytest.fixture
def pool(monkeypatch):
    """The site has a pool. Connections that exist already stay as they are."""
    given = connections.settings["default"]
    options = {**given["OPTIONS"], "pool": {"min_size": 1}}
    settings = {**given, "CONN_MAX_AGE": 0, "OPTIONS": options}
    monkeypatch.setitem(connections.settings, "default", settings)


@pytest.fixture
def note():
    """Have the thread of calls and that of last uses do something."""
    writers = []

    def by_writer(job):
        writers.append(Writer(write=lambda *args: job(), gather=0))
        writers[0].put(None)

    def by_uses(job):
        Uses(quiet=0).note("a", job)

    yield {"writer": by_writer, "uses": by_uses}
    for writer in writers:
        writer.close()


class Connection:
    """As Django has it, of a database that may have hung up."""

    connection = object()

    def __init__(self, *, works):
        self.works = works
        self.is_closed = self.is_looked_at = False

    def close_if_unusable_or_obsolete(self):
        """It is neither old nor known to have failed, and cannot be closed."""
        self.is_looked_at = True
        raise Error("gone")

    def is_usable(self):
        return self.works

    def close(self):
        self.is_closed = True


def test_only_connections_that_do_not_work_are_closed_after_a_quiet_spell(monkeypatch):
    lost, whole = Connection(works=False), Connection(works=True)
    monkeypatch.setattr(connections, "all", lambda **options: [lost, whole])
    release_connections()

    refresh_connections()
    was_closed_at_once = lost.is_closed
    monkeypatch.setattr("mcp_django.connections.QUIET", 0)
    refresh_connections()

    assert not was_closed_at_once
    assert (lost.is_closed, whole.is_closed) == (True, False)
    # One that cannot be closed does not hold up the others.
    assert lost.is_looked_at
    assert whole.is_looked_at


@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("name", ["writer", "uses"])
def test_what_is_written_behind_a_call_takes_no_connection_out_of_a_pool(note, name):
    found, done = [], Event()

    def job():
        found.append(connections["default"].settings_dict)
        done.set()

    note[name](job)

    assert done.wait(PATIENCE)
    assert "pool" not in found[0]["OPTIONS"]

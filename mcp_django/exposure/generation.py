"""A number per server that rises when rights or exposures change, in whatever process.

One row, read at most once a second per process: this is how a change reaches every process. What
is kept in memory is kept under a mark (the number, and a count of this process's own changes), so
that a change made here counts at once, even if the row could not be written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from django.db import Error, router, transaction
from django.db.models import F

from mcp_django.models import ExposureGeneration
from mcp_django.principal import DEFAULT_SERVER

logger = logging.getLogger("mcp_django.generation")

#: Seconds that a number read from the row is believed.
BELIEVED = 1.0


class Mark(NamedTuple):
    """Under what a process may keep something. Another mark: drop it."""

    number: int
    #: Changes that this process has made or announced.
    own: int


@dataclass(frozen=True)
class Reading:
    mark: Mark
    at: float


class Generations:
    """The numbers as one process knows them. Any thread may ask."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._own = 0
        self._readings: dict[str, Reading] = {}
        self._lock = threading.Lock()
        # Held during the query, apart from the other: the event loop never waits for a database.
        self._reading = threading.Lock()

    def known_mark(self, server: str = DEFAULT_SERVER) -> Mark | None:
        """The mark if it was read within the last second. Never a query."""
        # Without the lock: nothing is believed that was read before a change of this process, and
        # every call asks.
        reading = self._readings.get(server)
        if reading is None or self.clock() - reading.at >= BELIEVED:
            return None
        return reading.mark

    def mark(self, server: str = DEFAULT_SERVER) -> Mark:
        """The mark now. Take it before reading what you are going to keep under it."""
        found = self.known_mark(server)
        if found is not None:
            return found
        with self._reading:
            return self.known_mark(server) or self._read(server)

    def _read(self, server: str) -> Mark:
        with self._lock:
            own, now, before = self._own, self.clock(), self._readings.get(server)
        number = read_number(server, otherwise=0 if before is None else before.mark.number)
        found = Mark(number, own)
        with self._lock:
            # A change of this process during the query: what was read may be older than it.
            if own == self._own:
                self._readings[server] = Reading(found, now)
        return found

    def own_changes(self) -> int:
        """The part of the mark that needs no query."""
        return self._own

    def forget(self) -> None:
        """Whatever this process keeps under an earlier mark is void."""
        with self._lock:
            self._own += 1
            for server, reading in self._readings.items():
                self._readings[server] = Reading(reading.mark, float("-inf"))


generations = Generations()
mark = generations.mark
known_mark = generations.known_mark
own_changes = generations.own_changes


def current(server: str = DEFAULT_SERVER) -> int:
    """The number now, at most a second old. 0 where nothing was ever bumped or migrated."""
    return mark(server).number


def bump(server: str | None = DEFAULT_SERVER, *, using: str | None = None) -> None:
    """Something about this server changed; None: about every one. The row rises on commit."""
    generations.forget()
    alias = using or router.db_for_write(ExposureGeneration)
    ticket = _open_ticket(server, alias)

    # No partial: Django names what failed by its __qualname__, and raises where there is none.
    def raise_once() -> None:
        _raise_once(ticket, server=server)

    try:
        transaction.on_commit(raise_once, using=alias, robust=True)
    except transaction.TransactionManagementError:
        # The site commits by hand, so there is nothing to hang this on.
        raise_once()


def read_number(server: str, *, otherwise: int) -> int:
    """The row's number, 0 without a row, `otherwise` where the database cannot say."""
    # A replica that lags would give an old number, or a new one beside old rights.
    known = ExposureGeneration.objects.using(router.db_for_write(ExposureGeneration))
    rows = known.filter(server=server).values_list("number", flat=True)
    connection = transaction.get_connection(rows.db)
    try:
        if connection.in_atomic_block:
            # A missing table must not break the transaction around the call.
            with transaction.atomic(using=rows.db):
                return rows.first() or 0
        return rows.first() or 0
    except Error:
        return otherwise


def raise_number(server: str | None) -> None:
    name = DEFAULT_SERVER if server is None else server
    ExposureGeneration.objects.get_or_create(server=name)
    rows = ExposureGeneration.objects.all()
    if server is not None:
        rows = rows.filter(server=server)
    rows.update(number=F("number") + 1)


# A transaction that saves a thousand users raises the number once. Each save hangs its own
# function on the commit, since a savepoint may take some of them back; the first that runs does
# the work.


class Ticket:
    def __init__(self) -> None:
        self.is_spent = False


class Tickets(threading.local):
    def __init__(self) -> None:
        self.open: dict[tuple[str | None, str], Ticket] = {}


_tickets = Tickets()


def _open_ticket(server: str | None, alias: str) -> Ticket:
    ticket = _tickets.open.get((server, alias))
    if ticket is None or ticket.is_spent:
        ticket = _tickets.open[server, alias] = Ticket()
    return ticket


def _raise_once(ticket: Ticket, *, server: str | None) -> None:
    if ticket.is_spent:
        return
    ticket.is_spent = True
    try:
        raise_number(server)
    except Error:
        logger.warning("Other processes learn of a change of rights a second late.", exc_info=True)
    finally:
        # Once more: another thread may have kept what it read before the commit.
        generations.forget()

"""Records of calls on their way to the table: a bounded queue and one thread.

A call only puts its end into the queue. The thread writes what has gathered, many rows at a time,
over a connection of its own, so a record stays when the transaction of the tool rolls back.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, count
from threading import Event
from typing import Any, NamedTuple, TypeAlias

from django.core import mail
from django.db import InterfaceError, OperationalError, connections, router, transaction
from django.db.models import CharField, IntegerField

from mcp_django.connections import (
    TenantSchemas,
    close_connections,
    current_schemas,
    entered,
    keep_connections,
)
from mcp_django.models import CallRecord
from mcp_django.stores.transactions import turns

logger = logging.getLogger("mcp_django")

#: Rows in one statement.
BATCH = 200


# What the thread writes: one statement for many rows.

#: The values of all fields of a CallRecord but its key, by name. Not a model: to make one takes
#: nearly as long as to write it.
CallColumns: TypeAlias = Mapping[str, Any]

#: The fields whose columns are written.
COLUMNS: dict[str, Any] = {
    field.attname: field for field in CallRecord._meta.concrete_fields if not field.primary_key
}
#: Those whose values a database takes in another shape. The others are texts and numbers.
CONVERTED = [
    (index, field.attname, field)
    for index, field in enumerate(COLUMNS.values())
    if not isinstance(field, CharField | IntegerField)
]


def write_rows(ends: Sequence[CallColumns], using: str) -> None:
    """Insert the records with these columns together, or none, while no call of this process is
    about to write. Raises what the database raises.

    Not `bulk_create`: that takes four times as long, on a core that calls need.
    """
    connection = connections[using]
    rows = [[end[name] for name in COLUMNS] for end in ends]
    for end, row in zip(ends, rows, strict=True):
        for index, name, field in CONVERTED:
            row[index] = field.get_db_prep_save(end[name], connection)
    quote = connection.ops.quote_name
    table = quote(CallRecord._meta.db_table)
    columns = ", ".join(quote(field.column) for field in COLUMNS.values())
    places = f"({', '.join(['%s'] * len(COLUMNS))})"
    # Some databases have no limit of their own.
    most = (connection.features.max_query_params or 10_000) // len(COLUMNS)
    together = transaction.atomic(using=using) if len(rows) > most else nullcontext()
    with turns.alone(using), together, connection.cursor() as cursor:
        for start in range(0, len(rows), most):
            # One statement, not many: SQLite gives the interpreter's lock away for each.
            part = rows[start : start + most]
            values = list(chain.from_iterable(part))
            # Nothing in the statement comes from a caller.
            statement = f"INSERT INTO {table} ({columns}) VALUES {', '.join([places] * len(part))}"  # noqa: S608
            cursor.execute(statement, values)


class Waiting(NamedTuple):
    """A record that is to be written."""

    columns: CallColumns
    #: Set once it is.
    written: Event | None
    #: The database, and the schemas of the call that it is about.
    place: tuple[str, TenantSchemas]


@dataclass(eq=False, kw_only=True)
class Writer:
    """Any thread may put, event loops as well. The writing thread starts at the first put."""

    write: Callable[[Sequence[CallColumns], str], None] = write_rows
    #: Ends that may wait. The newest are lost first: what led up to a flood is worth more.
    room: int = 10_000
    #: Seconds that an end waits for others.
    gather: float = 0.5
    #: Seconds without a call after which the connection is closed.
    quiet: float = 10.0
    #: Seconds between attempts while the database is locked or gone. The last one repeats.
    pauses: Sequence[float] = (0.1, 0.5, 2.0, 5.0)
    #: Seconds that a call waits for its record at most.
    patience: float = 2.0

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start again. After a fork the queue belongs to the parent, and the thread is gone."""
        self._waiting: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stop = Event()
        self._is_urgent = False
        #: The thread waits for the first end, and is to be woken.
        self._is_asleep = False
        #: While the database makes trouble no call waits for it.
        self._is_troubled = False
        self._told = 0
        #: Ends that were never written, since this process started.
        self.lost = 0

    def put(self, end: CallColumns, *, wait: bool = False) -> None:
        """Take an end; with `wait`, return when it is written, if that is soon. Never raises."""
        written = Event() if wait and not self._is_troubled and may_wait() else None
        place = router.db_for_write(CallRecord), current_schemas()
        with self._changed:
            if len(self._waiting) >= self.room or not self._start():
                self.lost += 1
                return
            self._waiting.append(Waiting(end, written, place))
            self._is_urgent |= written is not None
            # To wake a thread takes long, and it need not know of each.
            if self._is_asleep or written is not None or len(self._waiting) == BATCH:
                self._is_asleep = False
                self._changed.notify_all()
        if written is not None:
            with turns.paused():
                if not written.wait(self.patience):
                    self._is_troubled = True

    def close(self, seconds: float = 5.0) -> None:
        """Write what is left, in so many seconds, and end the thread. A `put` starts another."""
        with self._changed:
            thread, self._thread = self._thread, None
            self._stop.set()
            self._changed.notify_all()
        if thread is None:
            return
        thread.join(seconds)
        if thread.is_alive():
            with self._changed:
                self.lost += len(self._waiting)
                self._waiting.clear()
        self._tell()

    def _start(self) -> bool:
        """Start the thread unless it runs. Return whether it does."""
        if self._thread is not None and self._thread.is_alive() and not self._stop.is_set():
            return True
        self._stop = Event()
        thread = threading.Thread(
            target=self._run, args=(self._stop,), name="mcp-calls", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # Late at the end of a process there are no new threads.
            return False
        self._thread = thread
        atexit.unregister(self.close)
        atexit.register(self.close)
        return True

    # In the thread.

    def _run(self, stop: Event) -> None:
        keep_connections()
        quiet: float | None = self.quiet
        try:
            while (batch := self._take(quiet, stop)) is not None:
                if batch:
                    for place in dict.fromkeys(waiting.place for waiting in batch):
                        self._write([one for one in batch if one.place == place], stop)
                else:
                    close_connections()
                quiet = self.quiet if batch else None
            close_connections()
        finally:
            with self._changed:
                # Whatever ended it: who puts the next one starts another.
                stop.set()

    def _take(self, quiet: float | None, stop: Event) -> list[Waiting] | None:
        """What to write next; nothing after a quiet spell, None at the end."""

        def is_due() -> bool:
            return self._is_urgent or len(self._waiting) >= BATCH or stop.is_set()

        with self._changed:
            self._is_asleep = not self._waiting
            if not self._changed.wait_for(lambda: self._waiting or stop.is_set(), quiet):
                return []
            self._changed.wait_for(is_due, self.gather)
            if not self._waiting:
                return None
            self._is_urgent = len(self._waiting) > BATCH and self._is_urgent
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _write(self, batch: list[Waiting], stop: Event) -> None:
        """Write records of one place."""
        using, schemas = batch[0].place
        for attempts in count():
            try:
                for connection in connections.all(initialized_only=True):
                    connection.close_if_unusable_or_obsolete()
                with entered(schemas):
                    self.write([waiting.columns for waiting in batch], using)
                self._is_troubled = False
                break
            except (OperationalError, InterfaceError) as error:
                if self._is_over(error, attempts, stop):
                    self.lost += len(batch)
                    break
            except Exception as error:
                if len(batch) > 1:
                    # A row that the database refuses loses no other.
                    for waiting in batch:
                        self._write([waiting], stop)
                    break
                self.lost += 1
                logger.error("A record of a call cannot be written: %s", error)
                break
        for waiting in batch:
            if waiting.written is not None:
                waiting.written.set()
        self._tell()

    def _is_over(self, error: Exception, attempts: int, stop: Event) -> bool:
        """Wait for the next attempt. Return whether there is none."""
        if not attempts:
            logger.warning("Records of calls have to wait for the database: %s", error)
        self._is_troubled = True
        close_connections()
        self._tell()
        with self._changed:
            pause = self.pauses[min(attempts, len(self.pauses) - 1)]
            is_stopped = self._changed.wait_for(stop.is_set, pause)
        # At the end there is one more: the connection may just have been an old one.
        return is_stopped and attempts > 0

    def _tell(self) -> None:
        lost, self._told = self.lost - self._told, self.lost
        if lost:
            logger.error("%d records of calls were lost, %d in all.", lost, self.lost)


def may_wait() -> bool:
    """Whether this thread may wait for the writer: not one that may hold what that waits for."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return False
    return not any(
        connection.in_atomic_block for connection in connections.all(initialized_only=True)
    )


# Where the records of this process go. Tests may change that.


class Gathered:
    """Keeps the ends of calls, until a test writes them in its own thread and transaction."""

    def __init__(self) -> None:
        self.ends: list[CallRecord] = []

    def put(self, end: CallColumns, *, wait: bool = False) -> None:
        self.ends.append(CallRecord(**end))

    def close(self) -> None:
        """Nothing of its own runs."""

    def write(self) -> None:
        ends, self.ends = self.ends, []
        CallRecord.objects.bulk_create(ends)


class Records:
    """The writer of this process, or what a test has put in its place."""

    def __init__(self) -> None:
        self.writer = Writer()
        #: In place of the writer.
        self.gathered: Gathered | None = None

    def put(self, end: CallColumns, *, wait: bool = False) -> None:
        # Only test runners make an outbox. They drop the database while the thread still has it.
        if self.gathered is not None or "outbox" not in vars(mail):
            (self.gathered or self.writer).put(end, wait=wait)

    @contextmanager
    def using(self, gathered: Gathered) -> Iterator[None]:
        before, self.gathered = self.gathered, gathered
        try:
            yield
        finally:
            self.gathered = before

    def close(self) -> None:
        (self.gathered or self.writer).close()


records = Records()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=records.writer.forget)

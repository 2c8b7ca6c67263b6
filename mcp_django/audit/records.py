"""Where the records of this process go, which tests may change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from django.core import mail

from mcp_django.audit.ends import End
from mcp_django.audit.entries import Entry
from mcp_django.audit.rows import write_rows
from mcp_django.audit.writer import Writer


class Sink(Protocol):
    def put(self, entry: Entry, *, wait: bool = False) -> None: ...

    def close(self) -> None: ...


class Gathered:
    """Keeps the entries, until a test writes them in its own thread and transaction."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def put(self, entry: Entry, *, wait: bool = False) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        """Nothing of its own runs."""

    def write(self) -> None:
        entries, self.entries = self.entries, []
        if entries:
            write_rows(entries)


class Records:
    """The writer of this process, or what a test has put in its place."""

    def __init__(self) -> None:
        self.writer = Writer()
        #: In place of the writer.
        self.sink: Sink | None = None

    def put(self, end: End, *, wait: bool = False) -> None:
        if self.sink is not None:
            self.sink.put(end.entry(), wait=wait)
        # Only test runners make an outbox. They drop the database while the thread still has it.
        elif "outbox" not in vars(mail):
            self.writer.put(end, wait=wait)

    @contextmanager
    def using(self, sink: Sink) -> Iterator[None]:
        kept, self.sink = self.sink, sink
        try:
            yield
        finally:
            self.sink = kept

    def close(self) -> None:
        (self.sink or self.writer).close()


records = Records()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=records.writer.forget)

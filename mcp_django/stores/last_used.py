"""When tokens and sessions were last used: written for people and for upkeep, so no call waits.

Such a write may have to wait: on SQLite for the one lock, on other databases for the row. So a
call only queues it, and a thread with a connection of its own writes it. What fails is written
with the next use. The thread also exchanges what processes count: see mcp_django.auth.windows.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress

from django.core import mail

from mcp_django.connections import close_connections, current_schemas, entered, keep_connections

logger = logging.getLogger("mcp_django")

#: Tokens and sessions whose use is not written yet. More are noted when they are used again.
ROOM = 4096
#: Seconds without anything to write after which the thread and its connection end.
QUIET = 10.0


class Uses:
    """Any thread may note a use. Of each token and session the last use counts."""

    def __init__(self, *, room: int = ROOM, quiet: float = QUIET) -> None:
        self.room = room
        self.quiet = quiet
        self.forget()

    def forget(self) -> None:
        """Start again. After a fork the uses are the parent's, and its thread is not here."""
        self._waiting: dict[Hashable, Callable[[], object]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def note(self, key: Hashable, write: Callable[[], object]) -> None:
        """Have `write` called soon, in another thread. Never waits, and never raises."""
        schemas = current_schemas()
        self.queue((key, schemas), entered(schemas)(write))

    def queue(self, key: Hashable, write: Callable[[], object]) -> bool:
        """Do the same for what belongs to no tenant. False: too much waits already."""
        with self._changed:
            if key not in self._waiting and len(self._waiting) >= self.room:
                return False
            self._waiting[key] = write
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="mcp-uses", daemon=True)
                # Late at the end of a process there are no new threads.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread
            self._changed.notify()
            return True

    # In the thread.

    def _run(self) -> None:
        keep_connections()
        while (write := self._next()) is not None:
            try:
                write()
            except Exception as error:
                logger.warning("The last use of a token or session is not noted: %s", error)
                close_connections()

    def _next(self) -> Callable[[], object] | None:
        """Return the next write. None: there was nothing for long enough to end."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, self.quiet):
                close_connections()
                self._thread = None
                return None
            return self._waiting.pop(next(iter(self._waiting)))


def note_use(key: Hashable, write: Callable[[], object]) -> None:
    """Note a use in the thread, but at once under a test runner: its tests see one connection."""
    # Only test runners make an outbox.
    if "outbox" in vars(mail):
        write()
    else:
        uses.note(key, write)


uses = Uses()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=uses.forget)

"""From the thread that saved to whoever tells clients, without making the save wait.

One outbox per process. `publish` only notes what changed; a thread of its own hands it to the
sinks: the hub of this process, and what links processes. The thread starts at first need and is
made anew after a fork.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

from mcp_django.subscriptions.events import Change
from mcp_django.subscriptions.gathering import Gathering

#: Takes a batch, in the thread of the outbox. Once it returns, the batch counts as delivered: one
#: that sends through a network returns when that is done, so that `flush` means something.
Sink: TypeAlias = Callable[[frozenset[Change]], None]
#: Makes the sink that this process has in any case; None: there is nobody else to tell.
Factory: TypeAlias = Callable[[], Sink | None]

#: Seconds that the end of a process waits for what it published.
PATIENCE = 2.0
#: Seconds between two batches.
BREATH = 0.01

logger = logging.getLogger("mcp_django.subscriptions")


class Outbox:
    """Any thread may publish. Nothing that it is told is lost while the process lives."""

    def __init__(self, *, make: Callable[[], Gathering] = Gathering) -> None:
        self._make = make
        self._factory: Factory | None = None
        self._begin()

    def _begin(self) -> None:
        # What was there before a fork is the parent's: it hands out what waits, and its loops
        # and connections are not ours. Its locks may be held by threads that we do not have.
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting = self._make()
        self._sinks: tuple[Sink, ...] = ()
        self._default: Sink | None = None
        self._is_made = False
        self._thread: threading.Thread | None = None
        self._is_asleep = False
        self._is_busy = False
        self._is_closed = False
        self._hurries = 0

    def _settle(self) -> None:
        if self._pid != os.getpid():
            self._begin()

    @property
    def is_wanted(self) -> bool:
        """Whether anybody takes what is published."""
        self._settle()
        is_unmade = self._factory is not None and not self._is_made
        return bool(self._sinks) or self._default is not None or is_unmade

    def add_sink(self, sink: Sink) -> None:
        self._settle()
        with self._changed:
            self._sinks = (*self._sinks, sink)

    def remove_sink(self, sink: Sink) -> None:
        """Nothing is handed to it any more, but for a batch that is on its way."""
        self._settle()
        with self._changed:
            self._sinks = tuple(one for one in self._sinks if one != sink)

    def register_default_sink(self, factory: Factory | None) -> None:
        """Have a sink made in this process and in every child of it, when there is something to
        send. The thread of the outbox calls the factory; None takes the last one back."""
        self._settle()
        with self._changed:
            self._factory, self._default, self._is_made = factory, None, False

    def publish(self, changes: Iterable[Change]) -> None:
        """Have the sinks told, soon. Never waits for them, and never raises what they raise."""
        if not self.is_wanted:
            return
        with self._changed:
            is_sooner = self._waiting.add(changes)
            is_running = self._start()
            if is_sooner and self._is_asleep:
                # Once for all that comes before it wakes.
                self._is_asleep = False
                self._changed.notify_all()
        if not is_running:
            self._deliver(self._take_all())

    def flush(self, timeout: float = PATIENCE) -> bool:
        """Wait until all that waits was handed over: at the end of a command or of a task.

        False: it was not within the time. In the thread that hands over it does nothing.
        """
        self._settle()
        if threading.current_thread() is self._thread:
            return False
        with self._changed:
            if not self._is_idle():
                self._start()
            self._hurries += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(self._is_idle, timeout)
            finally:
                self._hurries -= 1

    def close(self) -> None:
        """Hand over what waits and end the thread. Publishing again starts another."""
        self.flush()
        with self._changed:
            thread, self._is_closed = self._thread, True
            self._changed.notify_all()
        if thread is not None:
            thread.join(PATIENCE)
        self._is_closed = False
        atexit.unregister(self.flush)

    def _is_idle(self) -> bool:
        return not self._waiting and not self._is_busy

    def _start(self) -> bool:
        """Whether a thread runs. At the very end of a process none can be started."""
        if self._thread is None or not self._thread.is_alive():
            self._is_busy = False
            thread = threading.Thread(target=self._run, name="mcp-outbox", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
            # A daemon thread is cut off when the process ends, with what it holds.
            atexit.unregister(self.flush)
            atexit.register(self.flush)
        return True

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            self._deliver(batch)
            with self._changed:
                self._is_busy = False
                if self._hurries:
                    self._changed.notify_all()
                # So that a storm of saves is not a storm of threads that take turns.
                self._changed.wait_for(self._is_called, BREATH)

    def _is_called(self) -> bool:
        return self._hurries > 0 or self._is_closed

    def _next(self) -> frozenset[Change] | None:
        """Wait for a batch. None: there will be none."""
        with self._changed:
            while True:
                batch = self._waiting.take_all() if self._hurries else self._waiting.take()
                if batch:
                    self._is_busy = True
                    return batch
                if self._is_closed:
                    return None
                self._is_asleep = True
                self._changed.wait(self._waiting.wait())
                self._is_asleep = False

    def _take_all(self) -> frozenset[Change]:
        with self._changed:
            return self._waiting.take_all()

    def _deliver(self, batch: frozenset[Change]) -> None:
        for sink in (*self._sinks, *self._made()):
            try:
                sink(batch)
            except Exception:
                logger.exception("Changes could not be handed over.")

    def _made(self) -> tuple[Sink, ...]:
        """The default sink, made at first need."""
        factory = self._factory
        if factory is not None and not self._is_made:
            try:
                self._default = factory()
                self._is_made = True
            except Exception:
                logger.exception("Other processes cannot be told of changes.")
        return () if self._default is None else (self._default,)


outbox = Outbox()
publish = outbox.publish
flush = outbox.flush
add_sink = outbox.add_sink
remove_sink = outbox.remove_sink
register_default_sink = outbox.register_default_sink

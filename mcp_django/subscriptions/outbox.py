"""From the thread that saved to what notifies clients, without making the save wait.

Each process has one outbox. `publish` only queues changes. A thread hands them to the sinks: the
hub of this process, and the publisher that reaches other processes. It starts at first need, and
again after a fork.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from django.db import transaction

from mcp_django.connections import current_tenant
from mcp_django.exposure.uris import OBJECTS
from mcp_django.subscriptions.topics import EVERYTHING, Change, is_control

# Changes on their way out: the first of a kind at once, repeats gathered, never without bound.

NEVER = float("inf")


@dataclass(eq=False, kw_only=True)
class Gathering:
    """Not for several threads at once: the outbox holds its lock."""

    clock: Callable[[], float] = time.monotonic
    #: Seconds in which repeats of a change become one.
    gather: float = 0.25
    #: Changes that may wait. What is more becomes a few that say more.
    most: int = 1000

    def __post_init__(self) -> None:
        self._ready: dict[Change, None] = {}
        #: Repeats, by when they are due.
        self._later: dict[Change, float] = {}
        #: When a change went out, as long as that makes the next one a repeat. Oldest first.
        self._gone: dict[Change, float] = {}

    def __len__(self) -> int:
        return len(self._ready) + len(self._later)

    def add(self, changes: Iterable[Change]) -> bool:
        """Whether something is due sooner now than it was before."""
        now, before = self.clock(), self.due
        for change in changes:
            due = self._gone.get(change, now - self.gather) + self.gather
            # For what processes tell each other somebody waits.
            if due <= now or is_control(change.topic):
                self._ready[change] = None
            else:
                self._later[change] = due
        if len(self) > self.most:
            self._ready = dict.fromkeys(collapse([*self._ready, *self._later], most=self.most))
            self._later.clear()
        return self.due < before

    def take(self, *, is_hurry: bool = False) -> frozenset[Change]:
        """Return what is due now, or in a hurry all there is."""
        now = self.clock()
        due = [change for change, at in self._later.items() if is_hurry or at <= now]
        changes = frozenset([*self._ready, *due])
        self._ready.clear()
        for change in changes:
            self._later.pop(change, None)
            self._gone.pop(change, None)
            self._gone[change] = now
        while self._gone and now - next(iter(self._gone.values())) >= self.gather:
            del self._gone[next(iter(self._gone))]
        return changes

    @property
    def due(self) -> float:
        """When something is to be taken, by the clock."""
        return -NEVER if self._ready else min(self._later.values(), default=NEVER)

    def wait(self) -> float | None:
        """Seconds until something is due; None: nothing waits."""
        return None if self.due == NEVER else max(0.0, self.due - self.clock())


def collapse(changes: Iterable[Change], *, most: int) -> set[Change]:
    """Fewer changes that leave none of these out: collections for records, all for some users."""
    found = set()
    for change in changes:
        label, slash, _ = change.topic.removeprefix(OBJECTS).partition("/")
        if change.topic.startswith(OBJECTS) and slash:
            change = replace(change, topic=OBJECTS + label, is_whole=True)
        found.add(replace(change, users=None))
    if len(found) <= most:
        return found
    # What processes tell each other stands for nothing else, so nothing can stand for it.
    return {EVERYTHING, *(change for change in found if is_control(change.topic))}


#: Takes a batch, in the thread of the outbox. Once it returns, the batch counts as delivered: one
#: that sends through a network returns when that is done, so that `flush` means something.
Sink: TypeAlias = Callable[[frozenset[Change]], None]

#: Seconds that the end of a process waits for what it published.
PATIENCE = 2.0
#: Seconds between two batches.
BREATH = 0.01

logger = logging.getLogger("mcp_django.subscriptions")


class Outbox:
    """Any thread may publish. Nothing is lost while the process lives."""

    def __init__(self, *, make: Callable[[], Gathering] = Gathering) -> None:
        self._make = make
        self._factory: Callable[[], Sink | None] | None = None
        self._begin()

    def _begin(self) -> None:
        # What was there before a fork is the parent's: it hands out what waits, and its loops
        # and connections are not ours. Its locks may be held by threads that we do not have.
        self._changed = threading.Condition()
        self._waiting = self._make()
        self._sinks: tuple[Sink, ...] = ()
        self._default: Sink | None = None
        #: Makes the default, until that worked.
        self._unmade = self._factory
        self._thread: threading.Thread | None = None
        self._is_asleep = False
        self._is_busy = False
        self._hurries = 0

    @property
    def is_wanted(self) -> bool:
        """Whether anybody takes what is published."""
        return bool(self._sinks or self._default or self._unmade)

    def add_sink(self, sink: Sink) -> None:
        with self._changed:
            self._sinks = (*self._sinks, sink)

    def remove_sink(self, sink: Sink) -> None:
        """Nothing is handed to it any more, but for a batch that is on its way."""
        with self._changed:
            self._sinks = tuple(other for other in self._sinks if other != sink)

    def register_default_sink(self, factory: Callable[[], Sink | None]) -> None:
        """Have a sink made in this process and in every child of it, when there is something to
        send. The thread of the outbox calls the factory: None is for nobody else to tell."""
        self._factory = self._unmade = factory

    def publish(self, changes: Iterable[Change]) -> None:
        """Hand changes to the sinks, soon. Never waits for them or raises what they raise."""
        if not self.is_wanted:
            return
        if tenant := current_tenant():
            changes = [replace(change, tenant=tenant) for change in changes]
        with self._changed:
            is_sooner = self._waiting.add(changes)
            is_running = self._start()
            if is_sooner and self._is_asleep:
                # Once for all that comes before it wakes.
                self._is_asleep = False
                self._changed.notify_all()
        if not is_running:
            with self._changed:
                batch = self._waiting.take(is_hurry=True)
            self._deliver(batch)

    def flush(self, timeout: float = PATIENCE) -> bool:
        """Wait until all that waits was handed over: at the end of a command or of a task.

        False: that took too long. In the thread of the outbox it does nothing.
        """
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
        while True:
            self._deliver(self._next())
            with self._changed:
                self._is_busy = False
                if self._hurries:
                    self._changed.notify_all()
                # So that a storm of saves is not a storm of threads that take turns.
                self._changed.wait_for(lambda: self._hurries, BREATH)

    def _next(self) -> frozenset[Change]:
        """Wait for a batch."""
        with self._changed:
            while True:
                batch = self._waiting.take(is_hurry=self._hurries > 0)
                if batch:
                    self._is_busy = True
                    return batch
                self._is_asleep = True
                self._changed.wait(self._waiting.wait())
                self._is_asleep = False

    def _deliver(self, batch: frozenset[Change]) -> None:
        if self._unmade is not None:
            try:
                self._default, self._unmade = self._unmade(), None
            except Exception:
                logger.exception("Other processes cannot be told of changes.")
        for sink in filter(None, (*self._sinks, self._default)):
            try:
                sink(batch)
            except Exception:
                logger.exception("Changes could not be handed over.")


outbox = Outbox()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=outbox._begin)
publish = outbox.publish
flush = outbox.flush


# After the commit, once, and without an error or a delay for the code that commits.


def publish_after_commit(changes: Iterable[Change], *, using: str | None) -> None:
    run_after_commit(partial(publish, tuple(changes)), using=using)


def run_after_commit(function: Callable[[], None], *, using: str | None) -> None:
    try:
        transaction.on_commit(function, using=using, robust=True)
    except transaction.TransactionManagementError:
        # The site commits by hand, so nobody will say when. Better early than never.
        function()

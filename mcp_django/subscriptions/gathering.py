"""Changes on their way out: the first of a kind at once, repeats gathered, never without bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from mcp_django.exposure.uris import OBJECTS
from mcp_django.subscriptions.events import EVERYTHING, Change, is_control

#: Seconds in which repeats of a change become one.
GATHER = 0.25
NEVER = float("inf")
#: Changes that may wait. What is more becomes a few that say more.
MOST = 1000


class Gathering:
    """Not for several threads at once: the outbox holds its lock."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        gather: float = GATHER,
        most: int = MOST,
    ) -> None:
        self.clock = clock
        self.gather = gather
        self.most = most
        self._ready: dict[Change, None] = {}
        #: Repeats, by when they are due.
        self._later: dict[Change, float] = {}
        #: The first of these times.
        self._next = NEVER
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
                self._next = min(self._next, due)
        if len(self) > self.most:
            self._ready = dict.fromkeys(collapse([*self._ready, *self._later], most=self.most))
            self._later.clear()
            self._next = NEVER
        return self.due < before

    def take(self) -> frozenset[Change]:
        """What is due now."""
        now = self.clock()
        due = [change for change, at in self._later.items() if at <= now]
        return self._leave([*self._ready, *due], now)

    def take_all(self) -> frozenset[Change]:
        return self._leave([*self._ready, *self._later], self.clock())

    def _leave(self, changes: list[Change], now: float) -> frozenset[Change]:
        self._ready.clear()
        for change in changes:
            self._later.pop(change, None)
            self._gone.pop(change, None)
            self._gone[change] = now
        self._next = min(self._later.values(), default=NEVER)
        while self._gone and now - next(iter(self._gone.values())) >= self.gather:
            del self._gone[next(iter(self._gone))]
        return frozenset(changes)

    @property
    def due(self) -> float:
        """When something is to be taken, by the clock."""
        return -NEVER if self._ready else self._next

    def wait(self) -> float | None:
        """Seconds until something is due; None: nothing waits."""
        return None if self.due == NEVER else max(0.0, self.due - self.clock())


def collapse(changes: Iterable[Change], *, most: int) -> set[Change]:
    """Fewer changes that leave none of these out: collections for records, all for some users."""
    found = {wider(change) for change in changes}
    if len(found) <= most:
        return found
    # What processes tell each other stands for nothing else, so nothing can stand for it.
    return {EVERYTHING, *(change for change in found if is_control(change.topic))}


def wider(change: Change) -> Change:
    label, slash, _ = change.topic.removeprefix(OBJECTS).partition("/")
    if change.topic.startswith(OBJECTS) and slash:
        return replace(change, topic=OBJECTS + label, is_whole=True, users=None)
    return replace(change, users=None)

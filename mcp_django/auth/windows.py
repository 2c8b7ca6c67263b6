"""Counts per key in fixed windows of a minute, which hold over all processes.

A call counts in the memory of its process, and waits for nothing. Within a second a thread adds
what is new to a document in the cache of sessions, and reads there what other processes counted.
So a limit is exceeded by what they count in a second, at most, and a process that starts anew
learns what was counted before.

Windows are the minutes of the wall clock, which all processes have. So within sixty seconds around
the end of one of them twice as much may pass, and never more.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass

from django.core import mail
from django.core.cache import BaseCache

from mcp_django.conf import Config, get_config
from mcp_django.connections import close_connections
from mcp_django.signing import digest_of
from mcp_django.stores.documents import Documents, is_of_one_process, make_cache
from mcp_django.stores.last_used import uses
from mcp_django.stores.transactions import database_of, turns

logger = logging.getLogger("mcp_django")

#: Seconds of a window.
MINUTE = 60.0
#: Seconds between a count and the exchange that other processes learn it from.
SHARED_AFTER = 1.0
#: Keys that are counted at once, of one limit and in the cache.
MOST_KEYS = 10_000


@dataclass
class Window:
    #: Which minute since 1970.
    minute: int
    #: What this process counted, how much of that the cache has, and what others counted.
    count: float = 0
    sent: float = 0
    others: float = 0


@dataclass(eq=False)
class Windows:
    """The counts of one limit. Bounded: the oldest windows go first."""

    name: str
    _: KW_ONLY
    limit: Callable[[], float]
    shared: SharedCounts | None = None
    #: Whether keys are of callers whom nobody knows. They have a document of their own: whoever
    #: comes from many addresses would fill that of the users.
    is_of_strangers: bool = False
    size: int = MOST_KEYS
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.clear()
        if self.shared is not None:
            self.shared.limits.append(self)

    def clear(self) -> None:
        # Also after a fork, when another thread of the parent may have the lock.
        self._lock = threading.RLock()
        self._windows: OrderedDict[str, Window] = OrderedDict()

    def _current(self, key: str, now: float) -> Window | None:
        window = self._windows.get(key)
        # A clock that is set back by less than a minute begins no window anew.
        return window if window is not None and -1 <= now // MINUTE - window.minute <= 0 else None

    def left(self, key: str, *, limit: float | None = None) -> float:
        """Return how much this key may still count in this minute."""
        most = self.limit() if limit is None else limit
        with self._lock:
            window = self._current(key, self.clock())
            return most if window is None else most - window.count - window.others

    def wait(self, key: str, *, limit: float | None = None) -> float | None:
        """Seconds until this key may go on. None: now.

        `limit` is that of the key, where not all keys have the same.
        """
        with self._lock:
            if self.left(key, limit=limit) > 0:
                return None
            window = self._current(key, now := self.clock())
            return MINUTE if window is None else (window.minute + 1) * MINUTE - now

    def add(self, key: str, count: float = 1) -> None:
        with self._lock:
            window = self._current(key, now := self.clock())
            if window is None:
                window = self._windows[key] = Window(int(now // MINUTE))
                self._windows.move_to_end(key)
                while len(self._windows) > self.size:
                    self._windows.popitem(last=False)
            window.count = max(0, window.count + count)
        if self.shared is not None:
            self.shared.tell_soon()

    def take(self, key: str, *, limit: float | None = None) -> float | None:
        """Count one, unless that would be too many: then the seconds to wait."""
        with self._lock:
            seconds = self.wait(key, limit=limit)
            if seconds is None:
                self.add(key)
            return seconds

    def of_minute(self, minute: int) -> dict[str, tuple[Window, float]]:
        """Return the windows of a minute and their counts, by what stands for their keys."""
        with self._lock:
            rows = [(key, w, w.count) for key, w in self._windows.items() if w.minute == minute]
        return {digest_of(f"{self.name} {key}")[:24]: (w, count) for key, w, count in rows}


class SharedCounts:
    """What all processes count together."""

    def __init__(self, make: Callable[[], BaseCache] = make_cache) -> None:
        self._make = make
        self.limits: list[Windows] = []
        self._failed_at = 0.0
        self.forget()

    def forget(self) -> None:
        """Start again. After a fork the counts are the parent's."""
        self.documents = Documents(self._make)
        self._is_due = False
        #: The settings with which each process counts for itself.
        self._alone: Config | None = None
        for windows in self.limits:
            windows.clear()

    def tell_soon(self) -> None:
        """Have other processes told in another thread. Never waits, and never raises."""
        # Only test runners make an outbox. Nobody else counts with their process.
        if not (self._is_due or self._alone is get_config() or "outbox" in vars(mail)):
            self._is_due = True
            # Refused where too much waits. The next count tries again.
            if not uses.queue("counts", self._tell):
                self._is_due = False

    def _tell(self) -> None:
        time.sleep(SHARED_AFTER)
        self._is_due = False
        try:
            if is_of_one_process(self.documents.cache):
                self._alone = get_config()
            else:
                self.exchange()
        except Exception as error:
            close_connections()
            if abs((now := time.time()) - self._failed_at) >= MINUTE:
                self._failed_at = now
                logger.warning("Each process counts for itself at the moment: %s", error)

    def exchange(self) -> None:
        """Add what is new to the cache, and learn what others counted.

        The document is one for all keys, and its lock keeps it exact in any cache: `incr` is not
        atomic in Django's cache in a database, and with an entry for each key strangers with many
        addresses would push sessions out of a cache that holds so many entries.
        """
        using = database_of(self.documents.cache)
        if using is not None and not turns.is_free(using):
            # Calls would wait for it. The next count tries again.
            return
        with nullcontext() if using is None else turns.alone(using):
            for name in ("counts", "stranger-counts"):
                is_of_strangers = name != "counts"
                some = [w for w in self.limits if w.is_of_strangers == is_of_strangers]
                self._exchange(name, some)

    def _exchange(self, name: str, limits: list[Windows]) -> None:
        minute = int(self.limits[0].clock() // MINUTE)
        current: dict[str, tuple[Window, float]] = {}
        for windows in limits:
            current |= windows.of_minute(minute)
        if not current:
            return
        name = f"{name}:{minute}"
        with self.documents.locked(name) as put:
            totals: dict[str, float] = self.documents.get(name) or {}
            for digest, (window, count) in current.items():
                if digest in totals or len(totals) < MOST_KEYS:
                    totals[digest] = totals.get(digest, 0) + count - window.sent
            put(name, totals, 2 * MINUTE)
        for digest, (window, count) in current.items():
            window.sent, window.others = count, max(0, totals.get(digest, count) - count)


shared_counts = SharedCounts()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=shared_counts.forget)

"""What is kept in memory until what it was made of changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """The last value that was made for each key, with the sources that it was made of.

    A value is stale once its sources do not equal those of now. A source is an object that is
    replaced when it changes, such as `registry.candidates`, or a version, such as
    `cache_version()`. Take a version before you read what it stands for: a change while you read
    then makes another version. Two threads may make the same value at once; one of them is kept.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[tuple[Any, ...], T]] = {}

    def get(self, *sources: Any, make: Callable[[T | None], T], key: Hashable = None) -> T:
        """The value. `make` gets the stale one, or None, and what it raises is raised."""
        kept = self._kept.get(key)
        if kept is None or kept[0] != sources:
            kept = self._kept[key] = sources, make(None if kept is None else kept[1])
        return kept[1]

    def known(self, *sources: Any, key: Hashable = None) -> T | None:
        """The value if it is not stale. Makes nothing, so it is for event loops."""
        kept = self._kept.get(key)
        return kept[1] if kept is not None and kept[0] == sources else None

    def latest(self, key: Hashable = None) -> T | None:
        """The value, stale or not."""
        kept = self._kept.get(key)
        return None if kept is None else kept[1]


K = TypeVar("K", bound=Hashable)


class Recent(Generic[K, T]):
    """The values that were put in last, at most `size` of them. For any thread."""

    def __init__(self, *, size: int) -> None:
        self.size = size
        self._values: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K) -> T | None:
        return self._values.get(key)

    def put(self, key: K, value: T) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.size:
                self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        with self._lock:
            self._values.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()

"""When sessions were last heard of, as this process knows: most requests need not write it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime, timedelta

#: Sessions. For more, some are asked about once more often.
SIZE = 4096


class LastSeen:
    def __init__(self, *, size: int = SIZE) -> None:
        self.size = size
        self._seen: OrderedDict[str, datetime] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, key: str, seen: datetime | None) -> None:
        """None: there is no such session."""
        with self._lock:
            self._seen.pop(key, None)
            if seen is not None:
                self._seen[key] = seen
            if len(self._seen) > self.size:
                self._seen.popitem(last=False)

    def is_within(self, time: timedelta, key: str, *, now: datetime) -> bool:
        with self._lock:
            seen = self._seen.get(key)
        return seen is not None and now - seen < time

"""Changes of the last moments, for streams that learn of a subscription a moment late."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from mcp_django.subscriptions.events import EVERYTHING, Change, Topic

#: Seconds. Longer than from the answer to resources/subscribe to whoever has the stream.
KEPT = 5.0
#: Changes. Of more than these anything may have changed.
MOST = 1000


class Recent:
    """In the order in which they came, by the clock of the loop."""

    def __init__(self) -> None:
        self._changes: deque[tuple[float, Change]] = deque(maxlen=MOST)
        #: When the last of those came that there was no room for.
        self._dropped = float("-inf")

    def add(self, change: Change, *, at: float) -> None:
        while self._changes and self._changes[0][0] < at - KEPT:
            self._changes.popleft()
        if len(self._changes) == MOST:
            self._dropped = self._changes[0][0]
        self._changes.append((at, change))

    def of(self, topic: Topic, *, since: float) -> Iterator[Change]:
        """Those that touch the topic."""
        if self._dropped >= since:
            yield EVERYTHING
        for at, change in self._changes:
            if at >= since and change.touches(topic):
                yield change

"""A clock that a test turns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Clock:
    """In place of the clocks of `time`. It stands still until a test adds seconds to `now`."""

    #: Without a fraction, so that sums and differences are exact, and where a minute begins.
    now: float = field(default_factory=lambda: time.monotonic() // 60 * 60)

    def __call__(self) -> float:
        return self.now

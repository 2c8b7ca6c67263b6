"""A clock that a test turns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Clock:
    """In place of `time.monotonic`. It stands still until a test adds seconds to `now`."""

    #: Without a fraction, so that sums and differences are exact.
    now: float = field(default_factory=lambda: float(int(time.monotonic())))

    def __call__(self) -> float:
        return self.now

"""How long tests wait for what must come: longer than any machine is busy. No test is about it."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds.
PATIENCE = 60
#: Seconds for a process that loads Django and works for a while.
LONG_PATIENCE = 300


def wait_until(condition: Callable[[], object], *, pause: float = 0.01) -> None:
    """Return once the condition is true, which is asked again and again. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(pause)

"""What databases say when others write to the same rows, and trying again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error, IntegrityError, OperationalError

T = TypeVar("T")

#: PostgreSQL: deadlock_detected, lock_not_available, serialization_failure.
STATES = frozenset({"40P01", "55P03", "40001"})
#: MySQL and MariaDB: lock wait timeout, deadlock, record changed since it was read.
NUMBERS = frozenset({1205, 1213, 1020})

#: Seconds for all attempts.
PATIENCE = 5.0
#: Seconds before the second attempt, at most; doubled for each further one.
PAUSE = 0.005
LONGEST_PAUSE = 0.2
#: Who loses a race for a key finds another one free, or the row gone. More is a mistake of ours.
MOST_COLLISIONS = 5


def is_contention(error: Error) -> bool:
    number, text = (error.args[0] if error.args else None), str(error)
    state = getattr(error.__cause__, "sqlstate", None)
    return state in STATES or number in NUMBERS or "is locked" in text


def until_done(work: Callable[[], T], *, seconds: float = PATIENCE) -> T:
    """What `work` returns, which others may have been in the way of at first. It must leave
    nothing behind when it raises. Raises what it raised last.
    """
    end, pause, collisions = time.monotonic() + seconds, PAUSE, 0
    while True:
        try:
            return work()
        except IntegrityError:
            collisions += 1
            if collisions > MOST_COLLISIONS:
                raise
        except OperationalError as error:
            if not is_contention(error) or time.monotonic() >= end:
                raise
        time.sleep(random.uniform(0, pause))  # noqa: S311  not a secret
        pause = min(2 * pause, LONGEST_PAUSE)

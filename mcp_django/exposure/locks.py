"""Waiting for others who write to the same rows, and saying so where that took too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError

from mcp_django.exceptions import ToolError

#: PostgreSQL: deadlock_detected, lock_not_available, serialization_failure.
STATES = frozenset({"40P01", "55P03", "40001"})
#: MySQL and MariaDB: lock wait timeout, deadlock, record changed since it was read.
NUMBERS = frozenset({1205, 1213, 1020})


@contextmanager
def contended() -> Iterator[None]:
    """Turn what a database says of others who write into a ToolError."""
    try:
        yield
    except OperationalError as error:
        if not is_contention(error):
            raise
        raise ToolError(
            "Somebody else is changing the same data right now. Nothing was changed. Send the "
            "same call again."
        ) from error


def is_contention(error: OperationalError) -> bool:
    number, text = (error.args[0] if error.args else None), str(error)
    state = getattr(error.__cause__, "sqlstate", None)
    return state in STATES or number in NUMBERS or "is locked" in text

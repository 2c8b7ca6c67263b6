"""Waiting for others who write to the same rows, and saying so where that took too long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError

from mcp_django.exceptions import ToolError
from mcp_django.stores.contention import is_contention


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

"""The store, asked from the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TypeVar

from mcp_django.conf import get_config
from mcp_django.exposure.tools import Lane
from mcp_django.stores.chosen import get_store
from mcp_django.stores.interface import Store
from mcp_django.transports.executor import lanes

logger = logging.getLogger("mcp_django.streams")

T = TypeVar("T")


async def in_store(job: Callable[[Store], T]) -> T:
    """What the store answers. Raises what it raises."""
    return await lanes[Lane.STORE].start(
        partial(with_store, job),
        seconds=get_config().tool_timeout,
        cancelled=Event(),
        is_owed=True,
    )


def with_store(job: Callable[[Store], T]) -> T:
    return job(get_store())


async def try_store(job: Callable[[Store], object]) -> None:
    """Tell the store something that others can do without."""
    try:
        await in_store(job)
    except Exception:
        logger.exception("The store of sessions cannot be reached.")

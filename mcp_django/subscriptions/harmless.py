"""Receivers of signals run inside somebody's save."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

logger = logging.getLogger("mcp_django.subscriptions")


def harmless(receiver: Callable[..., None]) -> Callable[..., None]:
    """What goes wrong in here must not become the failure of that save."""

    @wraps(receiver)
    def receive(**kwargs: Any) -> None:
        try:
            receiver(**kwargs)
        except Exception:
            logger.exception("A change of %s was not announced.", kwargs["sender"])

    return receive

"""Where sessions, event logs and questions are kept; `Store` is what a store of a site implements.

Nothing of Django is imported before one of these names is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_django.stores.interface import (
        Event,
        Log,
        OpenStream,
        Page,
        Question,
        Session,
        Store,
        StoreFull,
    )

__all__ = ["Event", "Log", "OpenStream", "Page", "Question", "Session", "Store", "StoreFull"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.interface"), name)


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})

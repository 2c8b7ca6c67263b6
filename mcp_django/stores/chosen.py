"""The store of this process: the one that the settings name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from mcp_django.conf import get_config
from mcp_django.stores.interface import Store

STORES = {
    "database": "mcp_django.stores.database.DatabaseStore",
    "memory": "mcp_django.stores.memory.MemoryStore",
    "redis": "mcp_django.stores.redis.RedisStore",
}


def make_store() -> Store:
    """A new store, as STORE says. Raises ImproperlyConfigured where that cannot be had."""
    name = get_config().store
    path = STORES.get(name, name)
    if "." not in path:
        raise ImproperlyConfigured(
            f"MCP_DJANGO['STORE'] is {name!r}: it must be one of {', '.join(map(repr, STORES))}, "
            "or the dotted path of a class."
        )
    try:
        make: Callable[[], Store] = import_string(path)
    except (ImportError, ValueError) as error:
        extra = ' Run: pip install "django-mcp-orm[redis]".' if name == "redis" else ""
        raise ImproperlyConfigured(
            f"MCP_DJANGO['STORE'] is {name!r}, which cannot be imported: {error}.{extra}"
        ) from error
    return make()


class Chosen:
    """What `get_store` answers with. Made at first need, once."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew. Neither connections nor the meaning of a lock survive a fork."""
        self._store: Store | None = None
        self._lock = threading.Lock()

    def get(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = make_store()
            return self._store

    @contextmanager
    def using(self, store: Store) -> Iterator[None]:
        """Have this one meanwhile, whatever the settings name."""
        with self._lock:
            kept, self._store = self._store, store
        try:
            yield
        finally:
            with self._lock:
                self._store = kept


chosen = Chosen()
if hasattr(os, "register_at_fork"):  # pragma: no branch  not on Windows
    os.register_at_fork(after_in_child=chosen.forget)


def get_store() -> Store:
    """The store of this process. Raises ImproperlyConfigured where the settings name none."""
    return chosen.get()


@receiver(setting_changed)
def forget_store(*, setting: str, **kwargs: Any) -> None:
    if setting == "MCP_DJANGO":
        chosen.forget()

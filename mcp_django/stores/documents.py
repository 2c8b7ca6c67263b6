"""Documents in one of Django's caches, each changed by one thread of one process at a time.

In every backend `add` is atomic, and of those who delete the same entry one is told that it was
there. Nothing else is: so a lock is an entry that somebody added, and expires if nobody takes it
away. Values are made of built-in types, which any code can read.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from django.core.cache import BaseCache, InvalidCacheBackendError, caches
from django.core.cache.backends.db import BaseDatabaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connections, router

from mcp_django.conf import get_config
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.stores.transactions import database_of, is_contention, is_inside

#: In front of each key. The number goes up with the shape of a document: others are not read.
PREFIX = "mcp:1:"
#: Seconds after which the lock of a process that died expires. In the last ones nobody begins to
#: write: SQLite may wait for long, and the lock may be somebody else's by then.
LOCK, LAST_OF_LOCK = 30, 10
#: Seconds that others may be in the way, for all attempts.
PATIENCE = 5.0
#: Seconds before the second attempt, at most; doubled for each further one.
PAUSE = 0.002
LONGEST_PAUSE = 0.1
#: Entries that are asked for at once.
CHUNK = 200

logger = logging.getLogger("mcp_django")

T = TypeVar("T")
#: Takes the name of a document, its content, and the seconds after which it goes. None: never.
Put: TypeAlias = Callable[[str, Any, float | None], None]


def make_cache() -> BaseCache:
    """Return the cache that SESSION_CACHE names. Raises ImproperlyConfigured."""
    alias = get_config().session_cache
    if alias not in caches.settings:
        raise ImproperlyConfigured(
            f"MCP_DJANGO['SESSION_CACHE'] is {alias!r}, which is not in CACHES."
        )
    try:
        return caches.create_connection(alias)
    except InvalidCacheBackendError as error:
        raise ImproperlyConfigured(f"CACHES[{alias!r}] cannot be used: {error}.") from error


def is_of_one_process(cache: BaseCache) -> bool:
    """Return whether the entries are known to one process only. In files `add` is not atomic."""
    return isinstance(cache, LocMemCache | DummyCache | FileBasedCache)


def is_shared(cache: BaseCache) -> bool:
    """Return whether all processes read at once what one of them has written."""
    if isinstance(cache, BaseDatabaseCache):
        return router.db_for_read(cache.cache_model_class) == database_of(cache)
    # Django's cache in Redis reads from all servers but the first.
    has_copies = isinstance(cache, RedisCache) and len(vars(cache)["_servers"]) > 1
    return not (has_copies or is_of_one_process(cache))


def missing_table(cache: BaseCache, databases: Iterable[str]) -> str:
    """Return the name of the table that the cache needs in one of these databases, if the database
    does not have it.
    """
    using = database_of(cache)
    if not isinstance(cache, BaseDatabaseCache) or using is None or using not in databases:
        return ""
    table: str = cache.cache_model_class._meta.db_table
    return "" if table in connections[using].introspection.table_names() else table


def attempts(end: float | None = None) -> Iterator[None]:
    """Yield before each attempt at something that others may be in the way of.

    Raises ProtocolError with status 503 when time is over.
    """
    end, pause = end or time.monotonic() + PATIENCE, PAUSE
    while time.monotonic() < end:
        yield
        time.sleep(random.uniform(0, pause))  # noqa: S311  not a secret
        pause = min(2 * pause, LONGEST_PAUSE)
    logger.warning("What sessions are to remember cannot be written: others are in the way.")
    raise ProtocolError(INTERNAL_ERROR, "The site is busy. Try again later.", status=503)


class Documents:
    def __init__(self, make: Callable[[], BaseCache]) -> None:
        self._make = make
        self._of_thread = threading.local()
        # Threads of this process wait here, and need not look again and again.
        self._locks = [threading.Lock() for _ in range(64)]

    @property
    def cache(self) -> BaseCache:
        """That of this thread: `caches` would make one for each context, and so for each call."""
        if not hasattr(self._of_thread, "cache"):
            self._of_thread.cache = self._make()
        cache: BaseCache = self._of_thread.cache
        return cache

    def get(self, name: str) -> Any:
        return self._try(self.cache.get, PREFIX + name)

    def get_many(self, names: Iterable[str]) -> dict[str, Any]:
        """Those that are there, by name."""
        keys = [PREFIX + name for name in names]
        values: dict[str, Any] = {}
        for start in range(0, len(keys), CHUNK):
            values |= self._try(self.cache.get_many, keys[start : start + CHUNK])
        return {key.removeprefix(PREFIX): value for key, value in values.items()}

    def add(self, name: str, value: Any, seconds: float) -> bool:
        """Of many who add the same, one is told that it was new."""
        return self._try(self.cache.add, PREFIX + name, value, seconds)

    def touch(self, name: str, seconds: float | None) -> bool:
        return self._try(self.cache.touch, PREFIX + name, seconds)

    def put(
        self, name: str, value: Any, seconds: float | None, *, end: float | None = None
    ) -> None:
        """Write until it is written. Raises ProtocolError where others are in the way too long."""
        for _ in attempts(end):
            self._try(self.cache.set, PREFIX + name, value, seconds)
            # Django's cache in a database says nothing when it has written nothing.
            if database_of(self.cache) is None or self.get(name) == value:
                return

    def drop(self, name: str) -> bool:
        """Of many who drop the same, one is told that it was there."""
        return self._try(self.cache.delete, PREFIX + name)

    @contextmanager
    def locked(self, name: str) -> Iterator[Put]:
        """Hold the lock of this name, and give what its holder writes with.

        Raises RuntimeError in a transaction, which might roll back what is written, and
        ProtocolError where others are in the way for too long.
        """
        using = database_of(self.cache)
        if using is not None and is_inside(using):
            raise RuntimeError("Sessions are not written in a transaction of their database.")
        key, waiting = f"lock:{name}", attempts()
        next(waiting)
        lock = self._locks[hash(name) % len(self._locks)]
        with self._first(lock, waiting):
            began = time.monotonic()
            while not self.add(key, 1, LOCK):
                next(waiting)
                began = time.monotonic()
            end = began + LOCK - LAST_OF_LOCK
            try:
                yield partial(self.put, end=end)
            finally:
                # What was done is done, and the lock expires by itself.
                with suppress(Exception):
                    if time.monotonic() < end:
                        self.drop(key)

    @contextmanager
    def _first(self, lock: threading.Lock, waiting: Iterator[None]) -> Iterator[None]:
        """Of the threads of this process one waits for the others."""
        while not lock.acquire(timeout=PATIENCE):
            next(waiting)
        try:
            yield
        finally:
            lock.release()

    def _try(self, operation: Callable[..., T], *arguments: Any) -> T:
        """Call it again where a database says that others are in the way."""
        waiting = attempts()
        while True:
            next(waiting)
            try:
                return operation(*arguments)
            except OperationalError as error:
                if not is_contention(error):
                    raise

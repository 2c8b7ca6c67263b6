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
from typing import Any, TypeVar

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
PREFIX = "mcp:2:"
#: Seconds after which the lock of a process that died expires. In the last ones nobody begins to
#: write: SQLite may wait for long, and the lock may be somebody else's by then.
LOCK, LAST_OF_LOCK = 30, 10
#: Seconds that others may be in the way, for all attempts.
PATIENCE = 5.0
#: Seconds before the second attempt, at most; doubled for each further one.
PAUSE, LONGEST_PAUSE = 0.002, 0.1
#: Seconds after which a client may try again what the cache could not answer.
RETRY_AFTER = "5"
#: Entries that are asked for at once.
CHUNK = 200

logger = logging.getLogger("mcp_django")

T = TypeVar("T")


def make_cache() -> BaseCache:
    """Return the cache that SESSION_CACHE names. Raises ImproperlyConfigured."""
    alias = get_config().session_cache
    if alias not in caches.settings:
        raise ImproperlyConfigured(f"SESSION_CACHE is {alias!r}, which is not in CACHES.")
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
    """Return the name of the table that the cache needs and one of these databases lacks."""
    using, table = database_of(cache), str(getattr(cache, "_table", ""))
    if using is None or using not in databases:
        return ""
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
    raise unavailable("The site is busy. Try again later.")


def unavailable(sentence: str) -> ProtocolError:
    return ProtocolError(
        INTERNAL_ERROR, sentence, status=503, headers=(("Retry-After", RETRY_AFTER),)
    )


class Documents:
    """Each method raises ProtocolError with status 503 where others are in the way for too long,
    and where the cache does not answer.
    """

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
        """Return those that are there, by name."""
        keys = [PREFIX + name for name in names]
        values: dict[str, Any] = {}
        for start in range(0, len(keys), CHUNK):
            values |= self._try(self.cache.get_many, keys[start : start + CHUNK])
        return {key.removeprefix(PREFIX): value for key, value in values.items()}

    def add(self, name: str, value: Any, seconds: float) -> bool:
        """Return True to one of many who add the same: it was new."""
        return self._try(self.cache.add, PREFIX + name, value, seconds)

    def touch(self, name: str, seconds: float) -> bool:
        return self._try(self.cache.touch, PREFIX + name, seconds)

    def put(self, name: str, value: Any, seconds: float, end: float | None = None) -> None:
        """Write until it is written. It goes after so many seconds."""
        for _ in attempts(end):
            self._try(self.cache.set, PREFIX + name, value, seconds)
            # Django's cache in a database says nothing when it has written nothing.
            if database_of(self.cache) is None or self.get(name) == value:
                return

    def drop(self, name: str) -> bool:
        """Return True to one of many who drop the same: it was there."""
        return self._try(self.cache.delete, PREFIX + name)

    def drop_many(self, names: Iterable[str]) -> None:
        if keys := [PREFIX + name for name in names]:
            self._try(self.cache.delete_many, keys)

    @contextmanager
    def locked(self, name: str) -> Iterator[Callable[[str, Any, float], None]]:
        """Hold the lock of this name, and give its holder a `put` that ends with it.

        Raises RuntimeError in a transaction, which might roll back what is written.
        """
        if is_inside(database_of(self.cache)):
            raise RuntimeError("Sessions are not written in a transaction of their database.")
        waiting, lock = attempts(), self._locks[hash(name) % len(self._locks)]
        for _ in waiting:
            if lock.acquire(timeout=PATIENCE):
                break
        try:
            began = time.monotonic()
            while not self.add(f"lock:{name}", 1, LOCK):
                next(waiting)
                began = time.monotonic()
            end = began + LOCK - LAST_OF_LOCK
            try:
                yield partial(self.put, end=end)
            finally:
                # What was done is done, and the lock expires by itself.
                with suppress(Exception):
                    if time.monotonic() < end:
                        self.drop(f"lock:{name}")
        finally:
            lock.release()

    def _try(self, operation: Callable[..., T], *arguments: Any) -> T:
        """Call it again where a database says that others are in the way."""
        waiting = attempts()
        while True:
            next(waiting)
            try:
                return operation(*arguments)
            except Exception as error:
                # What it raises depends on the backend: values are of built-in types, so it is
                # never about them.
                if not isinstance(error, OperationalError) or not is_contention(error):
                    logger.error("The cache of sessions cannot be used: %r", error)
                    raise unavailable("Sessions cannot be used now. Try again later.") from error

"""Principals of the last second, so that most calls ask the database nothing about the caller."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from mcp_django.exposure.generation import Mark
from mcp_django.principal import Principal

#: Seconds. Longer, and a right that was taken away in another process would live on for longer.
LIFETIME = 1.0
SIZE = 1024


def key_of(header: str) -> bytes:
    """What stands for an Authorization header in memory: a memory dump holds no credential."""
    return hashlib.sha256(header.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class Kept:
    principal: Principal
    mark: Mark
    until: float


class PrincipalCache:
    """By header. The user object inside keeps the permissions that Django reads onto it."""

    def __init__(self, *, size: int = SIZE, clock: Callable[[], float] = time.monotonic) -> None:
        self.size = size
        self.clock = clock
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: bytes) -> bool:
        return key in self._kept

    def get(self, key: bytes, *, mark: Mark) -> Principal | None:
        """The principal of this header, if nothing that matters happened since it was kept."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            if kept.mark == mark and self.clock() < kept.until and not is_over(kept.principal):
                return kept.principal
            del self._kept[key]
            return None

    def keep(self, key: bytes, principal: Principal, *, mark: Mark) -> None:
        with self._lock:
            self._kept[key] = Kept(principal, mark, self.clock() + LIFETIME)
            self._kept.move_to_end(key)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def is_over(principal: Principal) -> bool:
    return principal.expires_at is not None and principal.expires_at <= timezone.now()

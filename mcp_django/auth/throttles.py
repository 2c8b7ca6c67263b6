"""Counters that keep one caller from taking everything. In the memory of each process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address

from django.http import HttpRequest

from mcp_django.conf import get_config
from mcp_django.principal import Principal

#: Seconds of a window.
MINUTE = 60.0
#: Failed authentications per address and minute.
MOST_FAILURES = 100


@dataclass
class Window:
    ends: float
    count: int = 0


class Windows:
    """Counts per key in fixed windows of a minute. Bounded: the oldest windows go first."""

    def __init__(
        self,
        *,
        limit: Callable[[], int],
        size: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.size = size
        self.clock = clock
        self._windows: OrderedDict[str, Window] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._windows)

    def wait(self, key: str) -> float | None:
        """Seconds until this key may go on. None: now."""
        with self._lock:
            return self._wait(key)

    def add(self, key: str) -> None:
        with self._lock:
            self._add(key)

    def take(self, key: str, *, limit: int | None = None) -> float | None:
        """Count one, unless that would be too many: then the seconds to wait.

        `limit` is that of the key, where not all keys have the same.
        """
        with self._lock:
            seconds = self._wait(key, limit)
            if seconds is None:
                self._add(key)
            return seconds

    def clear(self) -> None:
        with self._lock:
            self._windows.clear()

    def _wait(self, key: str, limit: int | None = None) -> float | None:
        window, now = self._windows.get(key), self.clock()
        most = self.limit() if limit is None else limit
        if window is None or window.ends <= now:
            return None if most else MINUTE
        return None if window.count < most else window.ends - now

    def _add(self, key: str) -> None:
        window, now = self._windows.get(key), self.clock()
        if window is None or window.ends <= now:
            window = self._windows[key] = Window(now + MINUTE)
            self._windows.move_to_end(key)
            while len(self._windows) > self.size:
                self._windows.popitem(last=False)
        window.count += 1


calls = Windows(limit=lambda: get_config().calls_per_minute)
#: Of one tool, whose limit staff may have set.
tool_calls = Windows(limit=lambda: get_config().calls_per_minute)
completions = Windows(limit=lambda: get_config().completions_per_minute)
#: Calls whose arguments were of no use.
failed_calls = Windows(limit=lambda: get_config().failures_per_minute)
#: Refusals that are recorded: the first of a minute tells it all, and a flood stays cheap.
told = Windows(limit=lambda: 1)
failures = Windows(limit=lambda: MOST_FAILURES)


def clear() -> None:
    """Forget what was counted, for tests."""
    for windows in (calls, tool_calls, completions, failed_calls, told, failures):
        windows.clear()


def retry_after(principal: Principal) -> float | None:
    """Count one call of this principal. None: go on; else the seconds after which to come back."""
    return calls.take(principal.key)


def is_first_refusal(principal: Principal) -> bool:
    """Whether a call now would be refused, and none was within the minute."""
    key = principal.key
    return calls.wait(key) is not None and told.wait(key) is None


def tool_retry_after(principal: Principal, tool: str, *, limit: int | None) -> float | None:
    """The same for one tool, which may have a limit of its own. None: it has none."""
    return None if limit is None else tool_calls.take(f"{tool} {principal.key}", limit=limit)


def client_address(request: HttpRequest) -> str:
    """The other end of the connection; of IPv6 the /64, since a host may use all of that."""
    text: str = request.META.get("REMOTE_ADDR", "")
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False))

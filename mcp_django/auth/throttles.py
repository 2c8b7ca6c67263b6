"""How often one caller may do what. Each process counts in its own memory."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from types import SimpleNamespace
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from mcp_django.auth.authenticators import imported
from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Limited
from mcp_django.exposure.registry import registry
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.results import ToolResult

#: Seconds of a window.
MINUTE = 60.0
#: Failed authentications per address and minute.
MOST_FAILURES = 100
#: Clients that one address may register in a minute.
MOST_REGISTRATIONS = 10


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
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._windows)

    def wait(self, key: str, *, limit: int | None = None) -> float | None:
        """Seconds until this key may go on. None: now.

        `limit` is that of the key, where not all keys have the same.
        """
        most = self.limit() if limit is None else limit
        with self._lock:
            window, now = self._windows.get(key), self.clock()
            if window is None or window.ends <= now:
                return None if most else MINUTE
            return None if window.count < most else window.ends - now

    def add(self, key: str, count: int = 1) -> None:
        with self._lock:
            window, now = self._windows.get(key), self.clock()
            if window is None or window.ends <= now:
                window = self._windows[key] = Window(now + MINUTE)
                self._windows.move_to_end(key)
                while len(self._windows) > self.size:
                    self._windows.popitem(last=False)
            window.count = max(0, window.count + count)

    def take(self, key: str, *, limit: int | None = None) -> float | None:
        """Count one, unless that would be too many: then the seconds to wait."""
        with self._lock:
            seconds = self.wait(key, limit=limit)
            if seconds is None:
                self.add(key)
            return seconds

    def clear(self) -> None:
        with self._lock:
            self._windows.clear()


calls = Windows(limit=lambda: get_config().calls_per_minute)
#: Of one tool, whose limit staff may have set.
tool_calls = Windows(limit=lambda: get_config().calls_per_minute)
dry_runs = Windows(limit=lambda: get_config().dry_runs_per_minute)
completions = Windows(limit=lambda: get_config().completions_per_minute)
#: Calls whose arguments were of no use.
failed_calls = Windows(limit=lambda: get_config().failures_per_minute)
#: Refusals that are recorded: the first of a minute, so that a flood stays cheap.
refusals = Windows(limit=lambda: 1)
failures = Windows(limit=lambda: MOST_FAILURES)
#: Clients that register themselves with mcp_django.oauth, per address.
registrations = Windows(limit=lambda: MOST_REGISTRATIONS)

ALL = (calls, tool_calls, dry_runs, completions, failed_calls, refusals, failures, registrations)


def clear() -> None:
    """Forget what was counted, for tests."""
    for windows in ALL:
        windows.clear()


def retry_after(principal: Principal) -> float | None:
    """Count one call of this principal. None: go on; else the seconds after which to come back."""
    return calls.take(principal.key)


def wait_of(principal: Principal) -> float | None:
    """The same, and counts nothing."""
    return calls.wait(principal.key)


def is_first_refusal(principal: Principal) -> bool:
    """Whether a call now would be refused, and none was within the minute."""
    key = principal.key
    return calls.wait(key) is not None and refusals.wait(key) is None


# Limits of tools, of completion and of failing.

#: Methods whose calls take arguments that may be of no use.
GUESSABLE = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})


def exceeded(context: CallContext, request: Request) -> ToolResult | None:
    """What to answer in place of the call. None: go on. Raises ProtocolError."""
    if request.method not in GUESSABLE:
        return None
    key = context.principal.key
    wait, sentence = failed_calls.wait(f"{request.method} {key}"), "Too many calls have failed."
    if wait is None and request.method == "completion/complete":
        wait, sentence = completions.take(key), "Too many completions."
    if wait is None:
        return None
    error = Limited(f"{sentence} {come_back(wait)}")
    if request.method == "tools/call":
        # A model reads it. Other methods have an error and nothing else.
        return ToolResult.of_error(error)
    raise ProtocolError(INTERNAL_ERROR, str(error), {"retryAfter": math.ceil(wait)}) from error


def count_failure(context: CallContext, request: Request) -> None:
    if request.method in GUESSABLE:
        failed_calls.add(f"{request.method} {context.principal.key}")


def check_tool(context: CallContext, tool: str, *, limit: int | None) -> None:
    """Count a call of a tool that has a limit of its own.

    Raises Limited when there were too many within the minute.
    """
    if limit is None:
        return
    key = f"{tool} {context.principal.key}"
    wait = tool_calls.take(key, limit=limit)
    if wait is not None:
        raise Limited(f"{tool} may be called {limit} times in a minute. {come_back(wait)}")
    context.counted_as = key


def is_dry_run(tool: str, arguments: Mapping[str, Any]) -> bool:
    # A function of the project may mean anything by an argument of that name.
    return bool(arguments.get("dry_run")) and tool not in registry.tools


def check_dry_run(context: CallContext) -> None:
    """Count a dry run. Raises Limited when there were too many within the minute.

    One answers as the write would, and leaves no trace where people look: whoever guesses at
    unique values of records that they may not see would guess by dry runs.
    """
    wait = dry_runs.take(context.principal.key)
    if wait is not None:
        raise Limited(f"Too many dry runs. {come_back(wait)}")


def come_back(wait: float) -> str:
    return f"Try again in {math.ceil(wait)} seconds."


# The address of a caller.

#: Characters of what a proxy said in place of an address: it is remembered.
LONGEST_ADDRESS = 64


def client_address(request: HttpRequest) -> str:
    """The other end of the connection; of IPv6 the /64, since a host may use all of that."""
    return network_of(request.META.get("REMOTE_ADDR", ""))


def network_of(text: str) -> str:
    """The address of one host. What is no address stays as it is."""
    try:
        address = ip_address(text)
    except ValueError:
        return text[:LONGEST_ADDRESS]
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False))


# Throttles that the site has already: classes of Django REST framework, or such as those.


logger = logging.getLogger("mcp_django")

#: Seconds to wait for a throttle that does not say.
DEFAULT_WAIT = 60.0


def site_retry_after(request: HttpRequest, principal: Principal, *, method: str) -> float | None:
    """Count one call in each throttle of THROTTLES. None: go on; else the seconds to wait."""
    paths = get_config().throttles
    if not paths:
        return None
    request.user = principal.user
    # What throttles ask of a view: the scope has its rate in DRF's settings.
    view = SimpleNamespace(action=method, throttle_scope="mcp")
    # All of them count, as in REST framework.
    waits = [seconds_until(throttle_class(path), request, view) for path in paths]
    return max((wait for wait in waits if wait is not None), default=None)


def seconds_until(throttle: Any, request: HttpRequest, view: object) -> float | None:
    try:
        # One for each question: they keep what they have found out.
        asked, known = throttle(), request
        if any(base.__module__.startswith("rest_framework.") for base in throttle.__mro__):
            # REST framework's own throttles expect its class of request.
            from rest_framework.request import Request  # type: ignore[import-untyped]  # no types

            known = Request(request)
            known.user, known.auth = request.user, None
        return None if asked.allow_request(known, view) else float(asked.wait() or DEFAULT_WAIT)
    except Exception:
        # The cache is away. A limit is no right, and our own count goes on.
        logger.exception("%s cannot count.", throttle.__name__)
        return None


def throttle_class(path: str) -> Any:
    """A class of the setting. Raises ImproperlyConfigured."""
    found = imported(path)
    if not all(callable(getattr(found, name, None)) for name in ("allow_request", "wait")):
        raise ImproperlyConfigured(
            f"{path!r} is no throttle: it needs allow_request() and wait()."
        )
    return found

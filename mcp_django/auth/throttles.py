"""How often one caller may do what."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv6Address, IPv6Network
from types import SimpleNamespace
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from mcp_django.auth.authenticators import imported, parse_address
from mcp_django.auth.windows import Windows, shared_counts
from mcp_django.conf import get_config
from mcp_django.context import CallContext
from mcp_django.exceptions import Limited, ToolError, ValuesRefused
from mcp_django.exposure.registry import registry
from mcp_django.principal import Principal
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.results import ToolResult

logger = logging.getLogger("mcp_django")

#: Failed authentications per address and minute.
MOST_FAILURES = 100

counted = partial(Windows, shared=shared_counts)
calls = counted("calls", limit=lambda: get_config().calls_per_minute)
#: Of one tool, whose limit staff may have set.
tool_calls = counted("tool calls", limit=lambda: get_config().calls_per_minute)
dry_runs = counted("dry runs", limit=lambda: get_config().dry_runs_per_minute)
dry_run_seconds = counted("dry run seconds", limit=lambda: get_config().dry_run_seconds_per_minute)
completions = counted("completions", limit=lambda: get_config().completions_per_minute)
#: Calls whose arguments were of no use.
failed_calls = counted("failed calls", limit=lambda: get_config().failures_per_minute)
#: Refusals that are recorded: the first of a minute, so that a flood stays cheap.
refusals = counted("refusals", limit=lambda: 1)
failures = counted("failures", limit=lambda: MOST_FAILURES, is_of_strangers=True)
#: Clients that register themselves with mcp_django.oauth, per address.
registrations = counted("registrations", limit=lambda: 10, is_of_strangers=True)


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


#: Seconds of one dry run that can be foreseen. Others wait for SQLite's lock for five.
LONGEST_DRY_RUN = 4.0
#: The principals of whom a dry run goes on.
trying_now: dict[str, object] = {}


@contextmanager
def dry_running(context: CallContext) -> Iterator[None]:
    """Count a dry run, and behind it its seconds. Raises Limited when there were too many within
    the minute, when they took too long, and for a second one at once.

    One answers as the write would, and leaves no trace where people look: whoever guesses at
    unique values of records that they may not see would guess by dry runs. Meanwhile it has locks
    that others wait for, on SQLite the one of the database.
    """
    key, mine = context.principal.key, object()
    if trying_now.setdefault(key, mine) is not mine:
        raise Limited("You have another dry run that goes on. Wait for its answer first.")
    began = time.monotonic()
    try:
        if (wait := dry_run_seconds.wait(key)) is not None:
            raise Limited(f"Your dry runs took too long. {come_back(wait)}")
        count_dry_run(context)
        context.dry_run_ends = began + min(dry_run_seconds.left(key), LONGEST_DRY_RUN)
        try:
            yield
        finally:
            dry_run_seconds.add(key, time.monotonic() - began)
    finally:
        del trying_now[key]


def count_dry_run(context: CallContext) -> None:
    """Raise Limited when there were too many within the minute."""
    wait = dry_runs.take(context.principal.key)
    if wait is not None:
        raise Limited(f"Too many dry runs, or writes that were refused. {come_back(wait)}")


def count_refused_write(context: CallContext, error: ToolError) -> ToolError:
    """Count a write whose values were refused as a dry run: it tells as much of unique values.

    Return the error, or Limited in its place when there were too many within the minute.
    """
    refused = any(isinstance(each, ValuesRefused) for each in (error, error.__cause__))
    # Where no dry run is allowed, the limit of failed calls holds alone: people learn what is
    # wrong with a write.
    if refused and get_config().dry_runs_per_minute:
        try:
            count_dry_run(context)
        except Limited as limited:
            return limited
    return error


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
    address = parse_address(text)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), 64), strict=False))
    return text[:LONGEST_ADDRESS] if address is None else str(address)


# Throttles that the site has already: classes of Django REST framework, or such as those.


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
        # A throttle need not say for how long.
        return None if asked.allow_request(known, view) else float(asked.wait() or 60)
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

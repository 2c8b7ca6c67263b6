"""How often one principal may do what: the limits of tools, of completion and of failing."""

from __future__ import annotations

import math
from typing import NoReturn

from mcp_django.auth import throttles
from mcp_django.context import CallContext
from mcp_django.exceptions import Limited
from mcp_django.exposure.tools import Outcome
from mcp_django.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.results import ToolResult

#: Methods whose calls take arguments that may be of no use.
GUESSABLE = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})


def exceeded(context: CallContext, request: Request) -> Outcome | None:
    """What to answer in place of the call. None: go on. Raises ProtocolError."""
    if request.method not in GUESSABLE:
        return None
    key = context.principal.key
    wait = throttles.failed_calls.wait(f"{request.method} {key}")
    if wait is not None:
        return refused(context, request, "Too many calls have failed.", wait)
    if request.method == "completion/complete":
        wait = throttles.completions.take(key)
        if wait is not None:
            return refused(context, request, "Too many completions.", wait)
    return None


def count_failure(context: CallContext, request: Request) -> None:
    if request.method in GUESSABLE:
        throttles.failed_calls.add(f"{request.method} {context.principal.key}")


def check_tool(context: CallContext, tool: str, *, limit: int | None) -> None:
    """Count a call of a tool. Raises Limited when there were too many within the minute."""
    wait = throttles.tool_retry_after(context.principal, tool, limit=limit)
    if wait is not None:
        raise Limited(f"{tool} may be called {limit} times in a minute. {come_back(wait)}")


def refused(context: CallContext, request: Request, sentence: str, wait: float) -> ToolResult:
    """A tool's refusal is read by a model. Other methods have an error and nothing else."""
    error = context.facts.refusal = Limited(f"{sentence} {come_back(wait)}")
    if request.method == "tools/call":
        return ToolResult.error(str(error))
    raise_limited(error, wait)


def raise_limited(error: Limited, wait: float) -> NoReturn:
    raise ProtocolError(INTERNAL_ERROR, str(error), {"retryAfter": math.ceil(wait)})


def come_back(wait: float) -> str:
    return f"Try again in {math.ceil(wait)} seconds."

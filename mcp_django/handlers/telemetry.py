"""The span and the metric of one call, by OpenTelemetry.

Names are those of the semantic conventions for MCP (open-telemetry/semantic-conventions-genai,
docs/gen-ai/mcp.md). Neither has arguments or records.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from mcp_django.context import CallContext
from mcp_django.models import CallRecord
from mcp_django.protocol.errors import INTERNAL_ERROR
from mcp_django.protocol.jsonrpc import Request
from mcp_django.protocol.methods import METHODS
from mcp_django.protocol.negotiation import meta_of
from mcp_django.tracing import SCOPE

#: What of `_meta` says which trace a call belongs to (W3C Trace Context). Not the baggage: code of
#: the site would pass on to other services what a client made up.
TRACE_CONTEXT = ("traceparent", "tracestate")
#: In place of a method that does not exist.
UNKNOWN_METHOD = "_OTHER"
#: Upper bounds of the histogram in seconds, as the conventions have them.
DURATION_BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
#: The attribute that names the target of a method.
TARGET_NAMES = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
#: Attributes of a span that its metric has not: they are too many.
UNMEASURED = ("jsonrpc.request.id", "mcp.session.id")

Outcome = CallRecord.Outcome
#: Ends that are no errors, and ends of calls whose target may be made up.
GOOD = (Outcome.DONE, Outcome.ASKED)
MADE_UP = (Outcome.DENIED, Outcome.INVALID, Outcome.LIMITED)


class CallSpan:
    """The span of one request, in as many threads as that takes. Made where `is_traced` only."""

    def __init__(self, request: Request, context: CallContext) -> None:
        from opentelemetry import propagate, trace

        self._request = request
        self._attributes: dict[str, Any] = {
            # Each value is a series of the metric. What peers make up is one of them.
            "mcp.method.name": request.method if request.method in METHODS else UNKNOWN_METHOD,
            "mcp.protocol.version": context.revision.value,
            "jsonrpc.request.id": str(request.id),
        }
        if context.session:
            # Of the id nobody may learn who reads traces. It is a credential's better half.
            self._attributes["mcp.session.id"] = context.session
        if request.method == "tools/call":
            self._attributes["gen_ai.operation.name"] = "execute_tool"
        meta = meta_of(request)
        carrier = {name: meta[name] for name in TRACE_CONTEXT if isinstance(meta.get(name), str)}
        ambient = trace.get_current_span().get_span_context()
        self._span = trace.get_tracer(SCOPE).start_span(
            self._attributes["mcp.method.name"],
            context=propagate.extract(carrier) if carrier else None,
            kind=trace.SpanKind.SERVER,
            attributes=self._attributes,
            # The span of the HTTP request, where that is not the parent.
            links=[trace.Link(ambient)] if carrier and ambient.is_valid else (),
        )
        self._started = time.perf_counter()

    def active(self) -> AbstractContextManager[Any]:
        """Return what makes spans that begin inside belong to this one."""
        from opentelemetry import trace

        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)

    def end(self, outcome: Outcome, code: int | None) -> None:
        """End it. `code` is that of a JSON-RPC error."""
        from opentelemetry import metrics, trace

        facts: dict[str, Any] = {}
        name = self._request.params.get("name")
        if (
            self._request.method in TARGET_NAMES
            and outcome not in MADE_UP
            and isinstance(name, str)
        ):
            facts[TARGET_NAMES[self._request.method]] = name
            self._span.update_name(f"{self._request.method} {name}")
        if outcome is Outcome.CRASHED:
            code = INTERNAL_ERROR
        if code is not None:
            facts["error.type"] = facts["rpc.response.status_code"] = str(code)
        elif outcome not in GOOD:
            facts["error.type"] = "cancelled" if outcome is Outcome.CANCELLED else "tool_error"
        if "error.type" in facts:
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.set_attributes(facts)
        self._span.end()
        own = {key: value for key, value in self._attributes.items() if key not in UNMEASURED}
        seconds = time.perf_counter() - self._started
        durations(metrics.get_meter_provider()).record(seconds, own | facts)


@cache
def durations(provider: Any) -> Any:
    """Return the histogram of this provider, which makes one of a name."""
    return provider.get_meter(SCOPE).create_histogram(
        "mcp.server.operation.duration",
        unit="s",
        description="Seconds from the receipt of a request until its answer was made.",
        explicit_bucket_boundaries_advisory=DURATION_BOUNDS,
    )


class ActiveAwaitable:
    """An awaitable inside a span. Whatever closes it closes what it awaits."""

    def __init__(self, span: CallSpan, awaitable: Any) -> None:
        self.span = span
        self.awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        with self.span.active():
            return (yield from self.awaitable.__await__())

    def close(self) -> None:
        getattr(self.awaitable, "close", bool)()

"""Traces of this process, where the site has set up OpenTelemetry: the extra `otel`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

try:
    from opentelemetry import metrics, trace

    IS_INSTALLED = True
except ImportError:
    IS_INSTALLED = False

#: The name of our spans' and metrics' scope.
SCOPE = "mcp_django"


def is_traced() -> bool:
    """Return whether anybody collects traces or metrics of this process."""
    return IS_INSTALLED and not (
        isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
        and type(metrics.get_meter_provider()).__name__ == "_ProxyMeterProvider"
    )


def span_of(name: str, attributes: dict[str, Any]) -> AbstractContextManager[Any]:
    """Return a span inside of the current one, to be entered."""
    if not is_traced():
        return nullcontext()
    return trace.get_tracer(SCOPE).start_as_current_span(name, attributes=attributes)

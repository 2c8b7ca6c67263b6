"""Spans and metrics of calls, as a site with the SDK of OpenTelemetry collects them."""

from __future__ import annotations

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from mcp_django.protocol.revisions import LATEST_LEGACY
from tests.shop.models import Order

pytestmark = pytest.mark.django_db

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736


@pytest.fixture
def reader(monkeypatch):
    reader = InMemoryMetricReader()
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    provider = MeterProvider([reader])
    yield reader
    provider.shutdown()


@pytest.fixture
def exporter(monkeypatch, reader):
    """The spans of this test. The provider of a process can be set once."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


def points(reader):
    data = reader.get_metrics_data()
    return {
        point.attributes["mcp.method.name"]: (metric.name, metric.unit, point.count, point)
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


#: A call, the name of its span, what is said about its end, and whether that is an error.
ENDS = [
    ("find_records", {"model": "shop.order"}, "tools/call find_records", {}),
    ("fail", {"kind": "tool"}, "tools/call fail", {"error.type": "tool_error"}),
    (
        "fail",
        {"kind": "x"},
        "tools/call fail",
        {"error.type": "-32603", "rpc.response.status_code": "-32603"},
    ),
    # Strangers make up no time series.
    (
        "made_up",
        {},
        "tools/call",
        {"error.type": "-32602", "rpc.response.status_code": "-32602"},
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "name", "said"), ENDS)
def test_a_call_is_one_span_with_its_end_and_without_arguments(
    client, exporter, reader, tool, arguments, name, said
):
    client.post_request("tools/call", {"name": tool, "arguments": arguments})

    [span] = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.SERVER]
    facts = dict(span.attributes)
    assert span.name == name
    assert (span.status.status_code is StatusCode.ERROR) is bool(said)
    assert facts.pop("jsonrpc.request.id")
    assert facts.pop("gen_ai.tool.name", None) == (tool if name.endswith(tool) else None)
    assert facts == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": client.revision.value,
        "gen_ai.operation.name": "execute_tool",
        **said,
    }
    name, unit, count, point = points(reader)["tools/call"]
    assert (name, unit, count) == ("mcp.server.operation.duration", "s", 1)
    assert point.attributes.get("error.type") == said.get("error.type")
    assert "jsonrpc.request.id" not in point.attributes


def test_a_call_belongs_to_the_trace_that_its_client_names_and_passes_on_no_baggage(
    client, exporter, add_tool
):
    seen = []

    def look() -> str:
        """Look into the context of the call."""
        from opentelemetry import baggage

        seen.append((trace.get_current_span().get_span_context().trace_id, baggage.get_all()))
        return "looked"

    add_tool(look)
    meta = {"traceparent": PARENT, "tracestate": 7, "baggage": "user=root"}
    client.request("tools/call", {"name": "look", "arguments": {}, "_meta": meta})

    [span] = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.SERVER]
    assert span.context.trace_id == TRACE
    assert span.parent.span_id == 0x00F067AA0BA902B7
    assert [(trace_id, dict(held)) for trace_id, held in seen] == [(TRACE, {})]


@pytest.mark.client(revision=LATEST_LEGACY)
@pytest.mark.parametrize("method", ["made/up", "x" * 500])
def test_a_method_that_does_not_exist_is_one_series_of_the_metric(
    client, exporter, reader, method
):
    client.post_request(method, {})

    assert [span.name for span in exporter.get_finished_spans()] == ["_OTHER"]
    assert list(points(reader)) == ["_OTHER"]


def test_a_call_without_a_trace_of_its_client_lies_inside_of_the_span_around_it(client, exporter):
    with trace.get_tracer("site").start_as_current_span("GET /mcp") as around:
        client.call_tool("echo", text="x")

    [span] = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.SERVER]
    assert span.parent.span_id == around.get_span_context().span_id
    assert not span.links


def test_queries_and_what_an_async_tool_does_lie_inside_of_the_span_of_the_call(
    client, exporter, add_tool
):
    async def ask() -> int:
        """Have spans of its own."""
        with trace.get_tracer("site").start_as_current_span("inner"):
            return await Order.objects.acount()

    add_tool(ask)
    client.call_tool("find_records", model="shop.order")
    client.call_tool("ask")

    spans = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans}
    inside = {span.name: names.get(span.parent and span.parent.span_id) for span in spans}
    assert inside["query"] == "tools/call find_records"
    assert inside["inner"] == "tools/call ask"

"""Real servers in processes of their own. A client reads each body to its end, which comes though
the connection stays open.
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection

import pytest

from mcp_django.protocol.revisions import MODERN, Revision
from mcp_django.testing import HTTPAnswer
from tests.served import SocketClient
from tests.transports.live_servers import Reader, Servers
from tests.transports.wire import PING
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.live
JSON = {"Content-Type": "application/json"}


@dataclass
class Live:
    process: subprocess.Popen[str]
    port: int

    def call(self, tool: str, revision: Revision = MODERN[-1], **arguments: object) -> HTTPAnswer:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        return SocketClient(self.port, revision=revision).post_request("tools/call", params)

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)


@pytest.fixture(scope="module")
def servers():
    with Servers(LIVE_TOOL_TIMEOUT="4") as servers:
        yield servers


@pytest.fixture(params=[pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"])
def live(servers, request):
    return Live(*servers.start(request.param))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("verb", "path", "body", "headers", "status"),
    [
        ("POST", "/mcp", PING, {}, 200),
        ("GET", "/nothing", b"", {}, 404),
        ("POST", "/mcp", b"[" + PING + b"," + PING.replace(b"7", b"8") + b"]", {}, 200),
        ("POST", "/mcp", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', {}, 202),
        ("GET", "/mcp", b"", {}, 405),
        ("GET", "/mcp", b"", {"MCP-Protocol-Version": "2026-07-28"}, 405),
        ("POST", "/mcp", b"{", {}, 400),
        ("POST", "/mcp", b" " * 20_001, {}, 413),
        ("POST", "/mcp", PING, {"Origin": "https://evil.example"}, 403),
        ("POST", "/mcp", PING, {"X-Long": "x" * 9000}, 431),
    ],
)
def test_every_way_out_ends_the_body(live, verb, path, body, headers, status):
    client = SocketClient(live.port, path=path)

    assert client.http(verb, body, headers=headers).status == status


@pytest.mark.thorough
@pytest.mark.parametrize("tool", ["report", "report_later"])
@pytest.mark.parametrize("then", ["end", "raise", "linger"])
def test_every_end_of_a_stream_ends_the_body(live, tool, then):
    assert live.call(tool, then=then).is_stream


def test_a_stream_carries_progress_and_then_the_answer_in_both_eras(live):
    for revision in (Revision.V2025_06_18, Revision.V2026_07_28):
        answer = live.call("report", revision, then="end")

        assert answer.is_stream
        assert answer.headers["x-accel-buffering"] == "no"
        assert [message.get("method") for message in answer.messages] == [
            "notifications/progress",
            None,
        ]


@pytest.mark.thorough
def test_one_connection_carries_many_requests_whose_bodies_fill_the_servers_buffers(live):
    with closing(live.connect()) as connection:
        for length in (0, 8192, 16384):
            for body in (PING.ljust(length), b"{"):
                connection.request("POST", "/mcp", body, JSON)
                with connection.getresponse() as response:
                    assert (b'"result":{}' in response.read()) is (body != b"{")
                assert connection.sock is not None


@pytest.mark.thorough
@pytest.mark.needs("daphne")
def test_daphne_lets_go_of_requests_after_tools_have_raised_in_the_middle_of_streams(servers):
    daphne = Live(*servers.start("daphne"))
    for _ in range(50):
        assert daphne.call("report", then="raise").is_stream

    def has_let_go():
        answer = daphne.call("requests_alive")
        return answer.messages[-1]["result"]["structuredContent"]["result"] <= 5

    # It looks for finished requests once a second, and calls are counted.
    wait_until(has_let_go, pause=0.2)


@pytest.mark.thorough
@pytest.mark.parametrize("times", [1, 300])
def test_a_server_that_is_told_to_stop_however_often_ends_its_streams_in_good_order(live, times):
    """Each signal interrupts the handler of the one before it."""
    with Reader(live.port, toolsListChanged=True) as reader, closing(live.connect()) as connection:
        acknowledged = reader.message()
        connection.request("GET", "/mcp/sse", headers={"Accept": "text/event-stream"})
        with connection.getresponse() as response:
            assert response.readline() == b"event: endpoint\n"

            for _ in range(times):
                live.process.terminate()

            last = reader.message()
            assert reader.message() is None
            live.process.wait(PATIENCE)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert last["result"]["resultType"] == "complete"
    subscription = "io.modelcontextprotocol/subscriptionId"
    assert last["result"]["_meta"][subscription] == last["id"]

"""Real servers in processes of their own, looked at through raw sockets."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec
import pytest

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client, HTTPAnswer
from tests.transports.live_servers import Reader, Servers
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.live


@dataclass
class Live:
    process: subprocess.Popen[str]
    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def exchange(self, raw: bytes) -> HTTPAnswer:
        """One request on a connection that stays open, so that only an ended body is an end."""
        with self.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(raw)
            return read_answer(stream)

    def call(self, tool: str, **arguments: object) -> HTTPAnswer:
        return self.exchange(calling(tool, **arguments))


def read_answer(stream) -> HTTPAnswer:
    status = int(stream.readline().split()[1])
    headers = {}
    while line := stream.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    if "content-length" in headers:
        body = stream.read(int(headers["content-length"]))
    else:
        assert headers["transfer-encoding"] == "chunked"
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        assert stream.readline() == b"\r\n"
    return HTTPAnswer(status=status, headers=headers, body=body)


def raw(body: bytes, *, verb: str = "POST", path: str = "/mcp", **headers: str) -> bytes:
    lines = [f"{verb} {path} HTTP/1.1", "Host: 127.0.0.1"]
    given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def calling(tool: str, revision: Revision = Revision.V2026_07_28, **arguments: object) -> bytes:
    client = Client(revision=revision)
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
    message = client.message("tools/call", params)
    return raw(msgspec.json.encode(message), **client.routing_headers(message))


@pytest.fixture(scope="module")
def servers():
    with Servers() as servers:
        yield servers


@pytest.fixture
def daphne(servers):
    return Live(*servers.start("daphne"))


@pytest.fixture
def uvicorn(servers):
    return Live(*servers.start("uvicorn"))


@pytest.fixture(params=[pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"])
def live(request):
    return request.getfixturevalue(request.param)


PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
BATCH = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
EXITS = {
    "json": (raw(PING), 200),
    "slash": (raw(PING, path="/mcp/"), 200),
    "other path": (raw(b"", verb="GET", path="/nothing"), 404),
    "batch": (raw(BATCH), 200),
    "notification": (raw(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'), 202),
    "get": (raw(b"", verb="GET"), 400),
    "modern get": (raw(b"", verb="GET", MCP_Protocol_Version="2026-07-28"), 405),
    "get in no session": (raw(b"", verb="GET", Mcp_Session_Id="x"), 404),
    "garbage": (raw(b"{"), 400),
    "oversize": (raw(b" " * 20_001), 413),
    "strange host": (raw(PING, Origin="https://evil.example"), 403),
    "long header": (raw(PING, X_Long="x" * 9000), 431),
    "stream": (calling("report", then="end"), 200),
    "raise in a stream": (calling("report", then="raise"), 200),
    "async stream": (calling("report_later", then="end"), 200),
    "raise in an async stream": (calling("report_later", then="raise"), 200),
    "unknown tool": (calling("nonsense"), 200),
}


@pytest.mark.thorough
@pytest.mark.parametrize("exit_path", EXITS)
def test_every_way_out_ends_the_body(live, exit_path):
    request, status = EXITS[exit_path]

    answer = live.exchange(request)

    assert answer.status == status


@pytest.mark.thorough
@pytest.mark.parametrize("tool", ["report", "report_later"])
@pytest.mark.parametrize("server", ["daphne", "uvicorn"])
def test_a_tool_that_takes_too_long_in_a_stream_ends_the_body(servers, server, tool):
    live = Live(*servers.start(server, LIVE_TOOL_TIMEOUT="3"))

    assert live.call(tool, then="linger").is_stream


def test_a_stream_carries_progress_and_then_the_answer_in_both_eras(live):
    for revision in (Revision.V2025_06_18, Revision.V2026_07_28):
        answer = live.exchange(calling("report", revision, then="end"))

        assert answer.is_stream
        assert answer.headers["x-accel-buffering"] == "no"
        assert [message.get("method") for message in answer.messages] == [
            "notifications/progress",
            None,
        ]


@pytest.mark.thorough
def test_one_connection_carries_many_requests_whose_bodies_fill_the_servers_buffers(live):
    with live.connect() as connection, connection.makefile("rb") as stream:
        for length in (0, 8192, 16384):
            connection.sendall(raw(PING.ljust(length)))
            assert read_answer(stream).messages[0]["result"] == {}
            connection.sendall(calling("report", then="raise"))
            assert read_answer(stream).is_stream


@pytest.fixture
def hasty(uvicorn):
    """A server that does not wait for bodies, as long as this test runs."""
    before = uvicorn.call("wait_for_bodies", seconds=0.5)
    yield uvicorn
    seconds = before.messages[-1]["result"]["structuredContent"]["result"]
    uvicorn.call("wait_for_bodies", seconds=seconds)


@pytest.mark.thorough
def test_bodies_that_stop_give_their_connections_back(hasty):
    with ExitStack() as stack:
        connections = [stack.enter_context(hasty.connect()) for _ in range(20)]
        for connection in connections:
            connection.sendall(raw(PING)[:-10])

        for connection in connections:
            with connection.makefile("rb") as stream:
                answer = read_answer(stream)

                assert (answer.status, answer.headers["connection"]) == (408, "close")
                assert stream.read() == b""


@pytest.mark.thorough
def test_clients_that_leave_anywhere_do_no_harm(live):
    with live.connect() as connection:
        connection.sendall(raw(PING)[:-10])
    with live.connect() as connection:
        connection.sendall(calling("report_later", then="linger"))
        assert connection.recv(10)

    assert live.exchange(raw(PING)).status == 200


@pytest.mark.thorough
def test_daphne_lets_go_of_requests_after_tools_have_raised_in_the_middle_of_streams(daphne):
    for _ in range(50):
        assert daphne.call("report", then="raise").is_stream

    # It looks for finished requests once a second, and calls are counted.
    wait_until(lambda: alive_in(daphne) <= 5, pause=0.2)


def alive_in(live: Live) -> int:
    answer = live.call("requests_alive")
    return answer.messages[-1]["result"]["structuredContent"]["result"]


@pytest.mark.thorough
def test_a_server_that_is_told_to_stop_ends_its_streams_in_good_order(live):
    with Reader(live.port, toolsListChanged=True) as reader:
        acknowledged = reader.message()

        live.process.send_signal(signal.SIGTERM)

        last = reader.message()
        assert reader.message() is None
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert last["result"]["resultType"] == "complete"
    subscription = "io.modelcontextprotocol/subscriptionId"
    assert last["result"]["_meta"][subscription] == last["id"]
    live.process.wait(PATIENCE)

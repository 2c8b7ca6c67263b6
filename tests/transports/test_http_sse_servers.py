"""HTTP+SSE behind real servers, through raw connections."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http.client import HTTPConnection

import msgspec
import pytest

from tests.transports.test_servers import PATIENCE, serve

HELLO = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "old", "version": "1"},
}


@pytest.fixture(scope="module")
def daphne():
    yield from serve("daphne")


@pytest.fixture(scope="module")
def uvicorn():
    yield from serve("uvicorn")


@pytest.fixture(params=[pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"])
def live(request):
    return request.getfixturevalue(request.param)


class Session:
    def __init__(self, live, response):
        self.live = live
        self.response = response
        self.endpoint = self.event("endpoint")

    def event(self, name="message"):
        """The data of the next event."""
        while (line := self.response.readline()).startswith(b":") or line == b"\n":
            continue
        assert line == b"event: " + name.encode() + b"\n"
        return self.response.readline().removeprefix(b"data: ").rstrip(b"\n").decode()

    def message(self):
        return msgspec.json.decode(self.event())

    def post(self, method, number=None, params=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        message |= {} if number is None else {"id": number}
        with connection(self.live) as posting:
            posting.request(
                "POST",
                self.endpoint,
                msgspec.json.encode(message),
                {"Content-Type": "application/json"},
            )
            return posting.getresponse().status


@contextmanager
def connection(live):
    made = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def connect(live):
    with connection(live) as stream:
        stream.request("GET", "/mcp/sse", headers={"Accept": "text/event-stream"})
        with stream.getresponse() as response:
            assert response.status == 200
            yield Session(live, response)


def test_a_session_over_a_real_server(live):
    with connect(live) as session:
        assert session.post("initialize", 1, HELLO) == 202
        assert session.message()["result"]["protocolVersion"] == "2024-11-05"
        assert session.post("notifications/initialized") == 202
        params = {
            "name": "report",
            "arguments": {"then": "done"},
            "_meta": {"progressToken": "t"},
        }
        assert session.post("tools/call", 2, params) == 202
        assert session.message()["method"] == "notifications/progress"
        assert session.message()["result"]["content"][0]["text"] == "done"


def test_who_hangs_up_ends_the_session(live):
    with connect(live) as session:
        pass

    until = time.monotonic() + PATIENCE
    while (status := session.post("ping", 1)) == 202:
        assert time.monotonic() < until

    assert status == 404


@pytest.mark.parametrize(
    "server", [pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"]
)
def test_a_server_that_stops_ends_the_stream_in_good_order(server):
    serving = serve(server)
    with connect(next(serving)) as session:
        session.post("initialize", 1, HELLO)
        session.message()

        # It is told to stop, and has stopped.
        next(serving, None)

        # A body that is cut off raises IncompleteRead.
        assert session.response.read() == b"\n"

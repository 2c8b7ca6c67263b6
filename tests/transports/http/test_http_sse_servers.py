"""HTTP+SSE behind real servers, through raw connections."""

from __future__ import annotations

import itertools
import socket
from contextlib import contextmanager
from http.client import HTTPConnection

import msgspec
import pytest

from tests.transports.live_servers import Servers
from tests.transports.test_servers import Live
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.live, pytest.mark.thorough]


HELLO = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "old", "version": "1"},
}


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
        """The next one, but for news of lists: a server that has just begun may say that they have
        changed.
        """
        while True:
            message = msgspec.json.decode(self.event())
            if not message.get("method", "").endswith("list_changed"):
                return message

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
def connection(live, *, buffer=None):
    """`buffer`: bytes that the kernel receives before the client reads any."""
    made = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
    if buffer is not None:
        made.sock = socket.socket()
        made.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.sock.settimeout(PATIENCE)
        made.sock.connect(("127.0.0.1", live.port))
    try:
        yield made
    finally:
        made.close()


@contextmanager
def connect(live, **options):
    with connection(live, **options) as stream:
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

    # The id of a call that still runs is refused with another status.
    ids = itertools.count(1)
    wait_until(lambda: session.post("ping", next(ids)) == 404)


@pytest.mark.parametrize(
    "server", [pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"]
)
def test_a_server_that_stops_ends_the_stream_in_good_order(server):
    with Servers() as own, connect(live := Live(*own.start(server))) as session:
        session.post("initialize", 1, HELLO)
        session.message()

        live.process.terminate()
        live.process.wait(PATIENCE)

        # A body that is cut off raises IncompleteRead.
        assert session.response.read() == b"\n"


@pytest.mark.parametrize(
    "server", [pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"]
)
def test_a_server_that_is_told_to_stop_again_and_again_stops(server):
    """Each signal interrupts the handler of the one before it."""
    with Servers() as own, connect(live := Live(*own.start(server))):
        for _ in range(300):
            live.process.terminate()

        live.process.wait(PATIENCE)


LETTERS = 200_000


def test_a_client_that_does_not_read_is_answered_no_further_until_it_reads(live):
    """Kernels hold some megabytes of their own, so the client takes as few as it may."""
    with connect(live, buffer=4096) as session:
        assert session.post("initialize", 1, HELLO) == 202
        session.message()
        session.post("notifications/initialized")
        call = {"name": "spell", "arguments": {"size": LETTERS}}

        accepted = 0
        while (status := session.post("tools/call", accepted + 2, call)) == 202:
            accepted += 1
            assert accepted < 150, "nothing stops the client"
        answered = {session.message()["id"] for _ in range(accepted)}

        assert status == 503
        assert answered == set(range(2, accepted + 2))
        assert session.post("ping", 999) == 202
        assert session.message()["id"] == 999

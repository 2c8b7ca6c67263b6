"""`manage.py mcp_serve` in processes of its own, and what any server does when it is stopped."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import IncompleteRead
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from urllib.request import urlopen

import msgspec
import pytest

from mcp_django.protocol.revisions import LATEST_LEGACY, Revision
from tests.children import finished, start
from tests.docs.pages import blocks
from tests.served import SocketClient
from tests.transports.live_servers import (
    Answer,
    Reader,
    free_port,
    live_server,
    make_database,
    nginx,
)
from tests.transports.test_layer import PUBSUB
from tests.transports.wire import hello
from tests.waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.live, pytest.mark.needs("daphne")]
COMMAND = ("-m", "django", "mcp_serve", "--settings", "tests.transports.serve_settings")


@contextmanager
def mcp_serve(*options, unix=None, **environ):
    """The process, and its port unless it has a Unix socket, once it answers."""
    port = None if unix else free_port()
    where = f"--unix={unix}" if unix else f"--bind=127.0.0.1:{port}"
    with TemporaryFile("w+") as log:
        process = start(
            [sys.executable, "-W", "ignore", *COMMAND, where, *options],
            stdout=log,
            stderr=log,
            env={**os.environ, **environ},
        )
        try:
            wait_until(lambda: process.poll() is not None or is_open(unix or port))
            if process.poll() is not None:
                log.seek(0)
                pytest.fail(log.read())
            yield process, port
        finally:
            process.kill()
            process.wait()


def is_open(where):
    """Whether somebody listens at a port, or at the path of a Unix socket."""
    is_port = isinstance(where, int)
    with socket.socket(socket.AF_INET if is_port else socket.AF_UNIX) as probe:
        return probe.connect_ex(("127.0.0.1", where) if is_port else str(where)) == 0


def page(port, name):
    with urlopen(f"http://127.0.0.1:{port}/{name}", timeout=PATIENCE) as answer:
        return int(answer.read())


def begin(port, **capabilities):
    """A client in a session."""
    client = SocketClient(port, revision=LATEST_LEGACY, capabilities=capabilities)
    client.initialize()
    return client


@pytest.fixture
def opened():
    """Open a response in a session, which is read as it comes: of this message, or of GET."""
    with ExitStack() as stack:

        def open_response(client, message=None):
            own = {"MCP-Protocol-Version": client.revision.value, **client.session_headers()}
            answer = Answer(client.port, "POST" if message else "GET", message, **own)
            return stack.enter_context(closing(answer))

        yield open_response


def call_of(client, tool, **arguments):
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
    return client.message("tools/call", params)


def result_of(answer):
    """The result at the end of a stream."""
    *_, last = iter(answer.message, None)
    return last["result"]


class OldStream(Answer):
    """A session of HTTP+SSE, where answers come on the stream."""

    def __init__(self, port):
        super().__init__(port, "GET", path="/mcp/sse")
        self.port = port
        self.address = self.lines()[-1].removeprefix("data: ")
        client = SocketClient(port, revision=Revision.V2024_11_05)
        self.post(client.message("initialize", hello(Revision.V2024_11_05, "old")))
        self.message()

    def post(self, message):
        with closing(Answer(self.port, "POST", message, path=self.address)) as answer:
            assert answer.status == 202


# The end


@pytest.fixture(params=["mcp_serve", "uvicorn"])
def server(request):
    serving = live_server("uvicorn") if request.param == "uvicorn" else mcp_serve()
    with serving as (process, port):
        yield process, port


def test_a_server_that_is_told_to_stop_answers_what_runs_and_ends_what_is_idle(
    server, opened, tmp_path
):
    process, port = server
    client = begin(port, elicitation={})
    files = [tmp_path / name for name in ("heard", "left", "old")]
    with Reader(port, toolsListChanged=True) as idle, closing(OldStream(port)) as old:
        idle.message()
        asking = opened(client, call_of(client, "greet"))
        asking.message("elicitation/create")
        calls = [call_of(client, "wait_for", file=str(file)) for file in files]
        heard, left = [opened(client, message) for message in calls[:2]]
        old.post(calls[2])
        for answer in (heard, left, old):
            answer.message("notifications/progress")
        left.close()

        process.terminate()

        results = [result_of(answer) for answer in (idle, asking)]
        # Now it accepts no more, and waits for calls only.
        wait_until(lambda: not is_open(port))
        for file in files:
            assert process.poll() is None
            file.touch()
        results += [result_of(answer) for answer in (heard, old)]
        process.wait(PATIENCE)
    complete, *called = results
    assert complete["resultType"] == "complete"
    stopping, *gone = [result["content"][0]["text"] for result in called]
    assert "The server stops" in stopping
    assert gone == ["gone", "gone"]
    # Also the call whose client has left.
    assert not any(file.exists() for file in files)


@pytest.mark.thorough
@pytest.mark.parametrize(("grace", "signals"), [("0.1", 1), ("600", 2)])
def test_what_does_not_end_within_the_grace_or_before_a_second_signal_is_cut_off(
    grace, signals, opened, tmp_path
):
    with mcp_serve(f"--grace={grace}") as (process, port):
        client = begin(port)
        running = opened(client, call_of(client, "wait_for", file=str(tmp_path / "never")))
        running.message()
        with Reader(port, toolsListChanged=True) as idle:
            idle.message()
            for _ in range(signals):
                process.terminate()
                while idle.message() is not None:
                    continue

        assert process.wait(PATIENCE) == 0
        # Its stream has an end, and the client may ask another process for the answer.
        assert running.message() is None


# What comes in


def answer_to(port, *parts):
    """All that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
        received = b""
        while more := connection.recv(65_536):
            received += more
    return received


def post(*headers):
    lines = ["POST /length HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.fixture(scope="module")
def served():
    with mcp_serve() as (_, port):
        yield port


LIMIT = 1_000_000
CHUNKED = "Transfer-Encoding: chunked"
CHUNK = b"186A0\r\n" + b"x" * 100_000 + b"\r\n"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("parts", "status", "end"),
    [
        ([post(f"Content-Length: {LIMIT}"), b"x" * LIMIT], 200, str(LIMIT)),
        ([post(CHUNKED), *[CHUNK] * 10, b"0\r\n\r\n"], 200, str(LIMIT)),
        ([post(f"Content-Length: {LIMIT + 1}")], 413, ""),
        ([post(f"Content-Length: {LIMIT + 1}"), b"x" * (LIMIT + 1)], 413, ""),
        ([post(f"Content-Length: {LIMIT + 1}", "Expect: 100-continue")], 413, ""),
        ([post(CHUNKED), *[CHUNK] * 10, b"1\r\nx\r\n"], 413, ""),
        ([post(CHUNKED), *[CHUNK] * 11, b"0\r\n\r\n"], 413, ""),
        ([post("Content-Length: 2", "Expect: 100-continue"), b"xx"], 100, "2"),
    ],
)
def test_a_body_that_is_too_long_is_refused_before_it_has_come(served, parts, status, end):
    answer = answer_to(served, *parts)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.partition(b"chunked\r\n\r\n")[2].partition(b"\r\n")[2].startswith(end.encode())


@pytest.mark.thorough
def test_a_request_that_does_not_come_in_time_is_refused():
    with mcp_serve(LIVE_READING="0.5") as (_, port):
        for part in (b"POST / HTTP/1.1\r\nHost: localhost\r\n", post("Content-Length: 2")):
            assert answer_to(port, part).startswith(b"HTTP/1.1 408 ")


@pytest.mark.thorough
def test_a_client_does_not_choose_the_root_path(served):
    answer = answer_to(served, post("Content-Length: 0", "Daphne-Root-Path: /evil"))

    assert b"Root-Path: \r\n" in answer


@pytest.mark.thorough
def test_clients_that_come_while_the_server_is_busy_wait_for_their_turn():
    with mcp_serve() as (process, port):
        process.send_signal(signal.SIGSTOP)
        waiting = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(300)]
        process.send_signal(signal.SIGCONT)

        for connection in waiting:
            with connection:
                connection.sendall(post("Content-Length: 0"))
                assert connection.recv(12) == b"HTTP/1.1 200"


# What goes out


@pytest.mark.thorough
def test_a_page_of_the_site_waits_for_a_client_that_does_not_read_it(served):
    with socket.create_connection(("127.0.0.1", served), timeout=PATIENCE) as connection:
        connection.sendall(b"GET /long HTTP/1.0\r\n\r\n")
        connection.recv(1)
        before = -1
        while before != (before := page(served, "sent")):
            continue
        assert 0 < before < 1600
        received = 0
        while more := connection.recv(1 << 20):
            received += len(more)

    assert page(served, "sent") == 1600
    assert received > 1600 * 65_536


@pytest.mark.thorough
def test_errors_in_the_middle_of_responses_end_them_and_leave_nothing_behind(served):
    for _ in range(5):
        with pytest.raises(IncompleteRead):
            page(served, "broken")
    client = SocketClient(served)
    wait_until(lambda: client.data("requests_alive")["result"] <= 3, pause=0.2)


# Several processes


@pytest.mark.thorough
def test_a_worker_that_ends_is_replaced_and_none_outlives_the_first_process(tmp_path):
    with mcp_serve("--workers=2", LIVE_DB=str(tmp_path / "site.sqlite3")) as (process, port):

        def seen(number):
            pids = set()
            wait_until(lambda: len(pids.add(page(port, "process")) or pids) == number)
            return pids

        before = seen(2)
        os.kill(min(before), signal.SIGKILL)
        wait_until(lambda: seen(2) - before)
        process.kill()
        wait_until(lambda: not is_open(port))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shares", "sentences"),
    [
        (False, ["CommandError: What one process keeps of a session in SESSION_CACHE"]),
        (True, ["No channel layer links", "has no table", "CommandError: Cannot listen"]),
    ],
)
def test_workers_need_a_cache_that_they_share_and_should_have_more(shares, sentences, tmp_path):
    environ = {"LIVE_DB": str(tmp_path / "site.sqlite3")} if shares else {}

    done = finished(*COMMAND, "--workers=2", "--bind=nowhere", **environ)

    assert done.returncode == 1
    for sentence in sentences:
        assert sentence in done.stderr


CALLERS = 6
REPORT = {"name": "report", "arguments": {"then": "end"}}


def until_refused(client, statuses):
    """Call until a proxy says that nobody answers."""
    while not statuses or statuses[-1] == 200:
        message = client.message("tools/call", REPORT)
        body, headers = msgspec.json.encode(message), client.routing_headers(message)
        statuses.append(client.http("POST", body, headers=headers).status)


@pytest.mark.needs("nginx", "redis", "channels_redis")
def test_two_workers_behind_nginx_as_the_page_has_it(tmp_path, opened):
    (block, _) = (block.text for block in blocks("nginx"))
    database = tmp_path / "site.sqlite3"
    make_database(database)
    environ = {"LIVE_DB": str(database), "LIVE_LAYER": PUBSUB, "LIVE_PREFIX": secrets.token_hex(8)}
    with ExitStack() as stack:
        # It waits for its threads, which go on until the server has ended.
        pool = stack.enter_context(ThreadPoolExecutor(CALLERS))
        # The path of a Unix socket has to be short.
        folder = Path(stack.enter_context(TemporaryDirectory()))
        folder.chmod(0o755)
        unix = folder / "serve.sock"
        for old, new in (("443 ssl", "PORT"), ("/run/shop/serve.sock", str(unix))):
            assert old in block
            block = block.replace(old, new)
        process, _ = stack.enter_context(
            mcp_serve("--workers=2", "--proxy-headers", unix=unix, **environ)
        )
        port = stack.enter_context(nginx(folder, block))
        client = begin(port)
        text = secrets.token_hex(4)
        uri = client.data("make_memo", text=text)["uri"]
        client.request("resources/subscribe", {"uri": uri})

        # Each may be in another process. The newest one has the stream.
        lost, stream = [opened(client) for _ in range(2)]
        assert lost.message("nothing but the end") is None
        assert stream.lines() == [": open"]
        client.call_tool("change_memo", text=text)
        assert stream.message("notifications/resources/updated")["params"]["uri"] == uri

        # The first is too long for the server, the second for nginx.
        for length in (2_000_000, 5_000_000):
            assert client.http("POST", b" " * length).status == 413

        callers = [SocketClient(port) for _ in range(CALLERS)]
        statuses = [[] for _ in callers]
        ended = pool.map(until_refused, callers, statuses)
        wait_until(lambda: all(statuses))
        running = opened(client, call_of(client, "count_slowly", number=5))
        running.message()
        process.terminate()
        assert result_of(running)["content"][0]["text"] == "counted"
        assert stream.message("nothing but the end") is None
        assert process.wait(PATIENCE) == 0
        assert len([*ended]) == len(callers)
    assert {of_one[-1] for of_one in statuses} <= {502, 503}

"""`manage.py mcp_serve` in processes of its own, and what any server does when it is stopped."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing, contextmanager
from tempfile import TemporaryFile
from urllib.request import urlopen

import pytest

from mcp_django.protocol.revisions import LATEST_LEGACY, Revision
from tests.children import start
from tests.served import SocketClient
from tests.transports.live_servers import Answer, Reader, free_port, live_server
from tests.transports.wire import hello
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.live
COMMAND = ("-m", "django", "mcp_serve", "--settings", "tests.transports.serve_settings")
needs_daphne = pytest.mark.needs("daphne")


@contextmanager
def mcp_serve(*options, **environ):
    """The process and its port, once it answers."""
    port = free_port()
    with TemporaryFile("w+") as log:
        process = start(
            [sys.executable, "-W", "ignore", *COMMAND, f"--bind=127.0.0.1:{port}", *options],
            stdout=log,
            stderr=log,
            env={**os.environ, **environ},
        )
        try:
            wait_until(lambda: process.poll() is not None or is_open(port))
            if process.poll() is not None:
                log.seek(0)
                pytest.fail(log.read())
            page(port, "process")
            yield process, port
        finally:
            process.kill()
            process.wait()


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def page(port, name):
    with urlopen(f"http://127.0.0.1:{port}/{name}", timeout=PATIENCE) as answer:
        return int(answer.read())


def begin(port, **capabilities):
    client = SocketClient(port, revision=LATEST_LEGACY, capabilities=capabilities)
    client.initialize()
    return client


@pytest.fixture
def call():
    """Call a tool in a session, with an answer that is read as it comes."""
    answers = []

    def call(client, tool, **arguments):
        message = call_of(client, tool, **arguments)
        own = {"MCP-Protocol-Version": client.revision.value, **client.session_headers()}
        answers.append(Answer(client.port, "POST", message, **own))
        return answers[-1]

    yield call
    for answer in answers:
        answer.close()


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


@pytest.fixture(params=[pytest.param("mcp_serve", marks=needs_daphne), "uvicorn"])
def server(request):
    serving = live_server("uvicorn") if request.param == "uvicorn" else mcp_serve()
    with serving as (process, port):
        yield process, port


def test_a_server_that_is_told_to_stop_answers_what_runs_and_ends_what_is_idle(
    server, call, tmp_path
):
    process, port = server
    client = begin(port, elicitation={})
    files = [tmp_path / name for name in ("heard", "left", "old")]
    with Reader(port, toolsListChanged=True) as idle, closing(OldStream(port)) as old:
        idle.message()
        asking = call(client, "greet")
        asking.message("elicitation/create")
        heard, left = [call(client, "wait_for", file=str(file)) for file in files[:2]]
        old.post(call_of(client, "wait_for", file=str(files[2])))
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

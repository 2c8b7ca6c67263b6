"""Two processes of one site: what begins in one goes on in the other."""

from __future__ import annotations

import os
import secrets
import signal
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile

import pytest

from mcp_django.protocol.revisions import Revision
from mcp_django.testing import Client
from tests.children import start
from tests.services import path_of
from tests.transports.live_servers import (
    Answer,
    free_port,
    live_server,
    make_database,
    wait_for,
)

# The servers get a copy of the database of the tests.
pytestmark = [
    pytest.mark.needs("redis", "channels_redis"),
    pytest.mark.django_db,
    pytest.mark.live,
    pytest.mark.thorough,
]
CORE = "channels_redis.core.RedisChannelLayer"
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
REVISION = Revision.V2025_11_25
VERSION = {"MCP-Protocol-Version": REVISION.value}
UPDATED = "notifications/resources/updated"


class Site:
    """Servers over one database and one channel layer."""

    def __init__(self, database, backend):
        self.environ = {
            **os.environ,
            "LIVE_LAYER": backend,
            "LIVE_PREFIX": f"test-{secrets.token_hex(8)}",
            "LIVE_DB": str(database),
            "LIVE_LEASE": "4",
        }
        self.client = Client(revision=REVISION)
        self.answers = []
        self.running = ExitStack()
        self.processes = []
        self.ports = []

    def start(self, server):
        """The index of one more server."""
        process, port = self.running.enter_context(live_server(server, **self.environ))
        self.processes.append(process)
        self.ports.append(port)
        return len(self.ports) - 1

    def stop(self):
        for answer in self.answers:
            answer.close()
        self.running.close()

    def send(self, index, verb, message=None, **headers):
        self.answers.append(Answer(self.ports[index], verb, message, **VERSION, **headers))
        return self.answers[-1]

    def begin(self, index, **capabilities):
        params = {
            "protocolVersion": REVISION.value,
            "capabilities": capabilities,
            "clientInfo": {"name": "x", "version": "1"},
        }
        answer = self.send(index, "POST", self.client.message("initialize", params))
        assert answer.status == 200, answer.response.read()
        session = answer.response.headers["mcp-session-id"]
        answer.json()
        return {"Mcp_Session_Id": session}

    def call(self, index, session, tool, **arguments):
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        message = self.client.message("tools/call", params)
        self.last_id = message["id"]
        return self.send(index, "POST", message, **session)

    def make_memo(self, index, session, text):
        """The URI of a new record."""
        made = self.call(index, session, "make_memo", text=text).json()
        return made["result"]["structuredContent"]["uri"]

    def subscribe(self, index, session, uri):
        message = self.client.message("resources/subscribe", {"uri": uri})
        assert self.send(index, "POST", message, **session).json()["result"] == {}

    def notify(self, index, session, method, **params):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        return self.send(index, "POST", message, **session)


@pytest.fixture(scope="module", params=[CORE, PUBSUB], ids=["core", "pubsub"])
def site(request, tmp_path_factory, django_db_setup, django_db_blocker):
    """Two servers, which all tests share."""
    database = tmp_path_factory.mktemp("site") / "site.sqlite3"
    with django_db_blocker.unblock():
        make_database(database)
    site = Site(database, request.param)
    try:
        for server in ("uvicorn", "daphne"):
            site.start(server)
        yield site
    finally:
        site.stop()


def test_a_session_that_began_in_one_process_goes_on_in_the_other(site):
    session = site.begin(0)

    during = site.send(1, "POST", site.client.message("tools/list"), **session).json()
    ended = site.send(1, "DELETE", **session).status
    after = site.send(0, "POST", site.client.message("tools/list"), **session).status

    assert "tools" in during["result"]
    assert (ended, after) == (204, 404)


def test_what_is_saved_in_one_process_is_heard_in_the_other(site):
    session = site.begin(0)
    uri = site.make_memo(0, session, "a")
    stream = site.send(1, "GET", **session)
    site.subscribe(0, session, uri)

    site.call(0, session, "change_memo", text="a").json()

    assert stream.message(UPDATED)["params"]["uri"] == uri


NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_set_header Host $host;
        }}
    }}
}}
"""


@contextmanager
def nginx(folder, upstream):
    """A proxy as it is out of the box, and its port."""
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    command = [path_of("nginx"), "-c", str(folder / "nginx.conf")]
    with TemporaryFile("w+") as log:
        process = start(command, stdout=log, stderr=log)
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


@pytest.mark.needs("nginx")
@pytest.mark.parametrize("index", [0, 1], ids=["uvicorn", "daphne"])
def test_a_proxy_with_its_defaults_passes_each_event_on_at_once(site, index, tmp_path):
    session = site.begin(index)
    code = f"nginx-{index}-{secrets.token_hex(4)}"
    uri = site.make_memo(index, session, code)
    with nginx(tmp_path, site.ports[index]) as port:
        wait_for(port)
        site.subscribe(index, session, uri)
        stream = Answer(port, "GET", **VERSION, **session)
        opened = stream.lines()

        site.call(index, session, "change_memo", text=code).json()

        assert opened == [": open"]
        assert stream.message(UPDATED)["params"]["uri"] == uri
        stream.close()


def test_a_session_has_one_standalone_stream_in_all_processes(site):
    session = site.begin(0)
    first = site.send(0, "GET", **session)

    second = site.send(1, "GET", **session)

    assert (first.status, second.status) == (200, 409)


def test_a_question_of_one_process_is_answered_in_the_other(site):
    session = site.begin(0, elicitation={})
    site.notify(0, session, "notifications/initialized")
    call = site.call(0, session, "greet")
    asked = call.message()

    said = {"action": "accept", "content": {"name": "Ada"}}
    answered = site.send(
        1, "POST", {"jsonrpc": "2.0", "id": asked["id"], "result": said}, **session
    )

    assert answered.status == 202
    assert call.message()["result"]["content"][0]["text"] == "Hello Ada"


def test_a_call_of_one_process_is_taken_back_in_the_other(site):
    session = site.begin(0)
    call = site.call(0, session, "wait_to_be_stopped")
    call.message()

    site.notify(1, session, "notifications/cancelled", requestId=site.last_id)

    assert call.message() is None


def test_a_stream_is_resumed_in_the_other_process(site):
    session = site.begin(0)
    call = site.call(0, session, "count_slowly", number=3)
    event = call.event()
    call.close()

    again = site.send(1, "GET", **session, Last_Event_ID=event.id)

    *_, answer = iter(again.message, None)
    assert answer["result"]["content"][0]["text"] == "counted"


def test_a_session_that_is_ended_in_one_process_ends_its_streams_in_the_other(site):
    session = site.begin(0)
    stream = site.send(0, "GET", **session)
    stream.lines()

    site.send(1, "DELETE", **session)

    assert stream.message("nothing but the end") is None


@pytest.mark.parametrize("site", [CORE], indirect=True, ids=["core"])
def test_the_calls_of_a_process_that_is_killed_end_with_an_error(site):
    killed = site.start("uvicorn")
    session = site.begin(killed)
    call = site.call(killed, session, "wait_to_be_stopped")
    event = call.event()

    site.processes[killed].send_signal(signal.SIGKILL)
    again = site.send(1, "GET", **session, Last_Event_ID=event.id)

    error = again.message()
    assert error["error"]["code"] == -32603
    assert error["id"] == site.last_id
    assert again.message() is None

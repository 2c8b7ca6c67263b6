"""Two processes of one site: what begins in one goes on in the other."""

from __future__ import annotations

import secrets
import signal
from contextlib import contextmanager
from tempfile import TemporaryFile

import pytest

from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.testing import ProtocolFailure
from tests.children import start
from tests.served import SocketClient
from tests.services import path_of
from tests.transports.live_servers import Answer, Servers, free_port, make_database, wait_for

# The servers get a copy of the database of the tests.
pytestmark = [
    pytest.mark.needs("redis", "channels_redis"),
    pytest.mark.django_db,
    pytest.mark.live,
    pytest.mark.thorough,
]
CORE = "channels_redis.core.RedisChannelLayer"
PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
UPDATED = "notifications/resources/updated"


class Site:
    """Clients of servers over one database and one channel layer."""

    def __init__(self, ports):
        self.ports = ports
        self.answers = []

    def begin(self, index, **capabilities):
        """A client in a session that begins in one process."""
        client = SocketClient(self.ports[index], revision=LATEST_LEGACY, capabilities=capabilities)
        client.initialize()
        return client

    def moved(self, client, index):
        """The same client, as another process meets it."""
        other = SocketClient(self.ports[index], revision=LATEST_LEGACY)
        other.session = client.session
        return other

    def open(self, client, verb="GET", message=None, *, port=0, **headers):
        """A response that is read as it comes."""
        own = {"MCP-Protocol-Version": client.revision.value, **client.session_headers()}
        self.answers.append(Answer(port or client.port, verb, message, **own, **headers))
        return self.answers[-1]

    def call(self, client, tool, **arguments):
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        message = client.message("tools/call", params)
        self.last_id = message["id"]
        return self.open(client, "POST", message)


def subscribe(client):
    """The text and the URI of a new record that the client subscribes to."""
    text = secrets.token_hex(4)
    uri = client.data("make_memo", text=text)["uri"]
    client.request("resources/subscribe", {"uri": uri})
    return text, uri


@pytest.fixture(scope="module", params=[CORE, PUBSUB], ids=["core", "pubsub"])
def servers(request, tmp_path_factory, django_db_setup, django_db_blocker):
    """Shared by all tests."""
    database = tmp_path_factory.mktemp("site") / "site.sqlite3"
    with django_db_blocker.unblock():
        make_database(database)
    prefix = f"test-{secrets.token_hex(8)}"
    environ = {"LIVE_PREFIX": prefix, "LIVE_DB": str(database), "LIVE_LEASE": "4"}
    with Servers(LIVE_LAYER=request.param, **environ) as servers:
        yield servers


@pytest.fixture
def site(servers):
    site = Site([servers.start(name)[1] for name in ("uvicorn", "daphne")])
    yield site
    for answer in site.answers:
        answer.close()


def test_a_session_that_began_in_one_process_goes_on_in_the_other(site):
    client = site.begin(0)
    moved = site.moved(client, 1)

    assert moved.list_tools()
    moved.end_session()

    with pytest.raises(ProtocolFailure, match="HTTP 404"):
        client.list_tools()


def test_what_is_saved_in_one_process_is_heard_in_the_other(site):
    client = site.begin(0)
    stream = site.open(site.moved(client, 1))
    text, uri = subscribe(client)

    client.call_tool("change_memo", text=text)

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
    client = site.begin(index)
    with nginx(tmp_path, client.port) as port:
        wait_for(port)
        text, uri = subscribe(client)
        stream = site.open(client, port=port)
        opened = stream.lines()

        client.call_tool("change_memo", text=text)

        assert opened == [": open"]
        assert stream.message(UPDATED)["params"]["uri"] == uri
        stream.close()


def test_a_session_has_one_standalone_stream_in_all_processes(site):
    client = site.begin(0)

    first, second = site.open(client), site.open(site.moved(client, 1))

    assert (first.status, second.status) == (200, 409)


def test_a_question_of_one_process_is_answered_in_the_other(site):
    client = site.begin(0, elicitation={})
    call = site.call(client, "greet")
    asked = call.message()

    said = {"action": "accept", "content": {"name": "Ada"}}
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": said}
    answered = site.open(site.moved(client, 1), "POST", answer)

    assert answered.status == 202
    assert call.message()["result"]["content"][0]["text"] == "Hello Ada"


def test_a_call_of_one_process_is_taken_back_in_the_other(site):
    client = site.begin(0)
    call = site.call(client, "report", then="linger")
    call.message()

    site.moved(client, 1).notify("notifications/cancelled", {"requestId": site.last_id})

    assert call.message() is None


def test_a_stream_is_resumed_in_the_other_process(site):
    client = site.begin(0)
    call = site.call(client, "count_slowly", number=3)
    event = call.event()
    call.close()

    again = site.open(site.moved(client, 1), Last_Event_ID=event.id)

    *_, answer = iter(again.message, None)
    assert answer["result"]["content"][0]["text"] == "counted"


def test_a_session_that_is_ended_in_one_process_ends_its_streams_in_the_other(site):
    client = site.begin(0)
    stream = site.open(client)
    stream.lines()

    site.moved(client, 1).end_session()

    assert stream.message("nothing but the end") is None


@pytest.mark.parametrize("servers", [CORE], indirect=True, ids=["core"])
def test_the_calls_of_a_process_that_is_killed_end_with_an_error(servers, site):
    process, port = servers.start("uvicorn", LIVE_TOOL_TIMEOUT="60")
    site.ports.append(port)
    client = site.begin(2)
    call = site.call(client, "report", then="linger")
    event = call.event()

    process.send_signal(signal.SIGKILL)
    again = site.open(site.moved(client, 1), Last_Event_ID=event.id)

    error = again.message()
    assert error["error"]["code"] == -32603
    assert error["id"] == site.last_id
    assert again.message() is None

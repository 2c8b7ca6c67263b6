"""Two processes of one site: what begins in one goes on in the other."""

from __future__ import annotations

import secrets

import pytest

from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.testing import ProtocolFailure
from tests.served import SocketClient
from tests.transports.live_servers import Answer, Servers, make_database, nginx
from tests.transports.test_layer import CORE, PUBSUB

# A test that needs Redis is thorough.
pytestmark = [pytest.mark.needs("redis", "channels_redis"), pytest.mark.live]
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


@pytest.fixture(
    scope="module",
    params=[(CORE, "database"), (PUBSUB, "redis")],
    ids=["core and database", "pubsub and redis"],
)
def servers(request, tmp_path_factory):
    """Shared by all tests."""
    database = tmp_path_factory.mktemp("site") / "site.sqlite3"
    make_database(database)
    prefix = f"test-{secrets.token_hex(8)}"
    layer, cache = request.param
    environ = {"LIVE_PREFIX": prefix, "LIVE_DB": str(database)}
    with Servers(LIVE_LAYER=layer, LIVE_CACHE=cache, **environ) as servers:
        yield servers


@pytest.fixture
def site(servers):
    site = Site([servers.start(name)[1] for name in ("uvicorn", "daphne")])
    yield site
    for answer in site.answers:
        answer.close()


def test_a_session_of_one_process_is_the_same_in_the_other_until_it_is_ended_in_either(site):
    client = site.begin(0)
    moved = site.moved(client, 1)
    first, stream = site.open(client), site.open(moved)
    text, uri = subscribe(client)

    # A proxy may hide for long that a client has lost its stream.
    assert first.message("nothing but the end") is None
    client.call_tool("change_memo", text=text)
    heard = stream.message(UPDATED)
    client.end_session()

    assert (first.status, stream.status) == (200, 200)
    assert heard["params"]["uri"] == uri
    assert stream.message("nothing but the end") is None
    with pytest.raises(ProtocolFailure, match="HTTP 404"):
        moved.list_tools()


@pytest.mark.needs("nginx")
@pytest.mark.parametrize("index", [0, 1], ids=["uvicorn", "daphne"])
def test_a_proxy_with_its_defaults_passes_each_event_on_at_once(site, index, tmp_path):
    client = site.begin(index)
    passed = f"proxy_pass http://127.0.0.1:{client.port}; proxy_set_header Host $host;"
    with nginx(tmp_path, f"server {{ listen PORT; location / {{ {passed} }} }}") as port:
        text, uri = subscribe(client)
        stream = site.open(client, port=port)
        opened = stream.lines()

        client.call_tool("change_memo", text=text)

        assert opened == [": open"]
        assert stream.message(UPDATED)["params"]["uri"] == uri
        stream.close()


def test_a_call_of_one_process_is_answered_taken_back_and_resumed_in_the_other(site):
    client = site.begin(0, elicitation={})
    moved = site.moved(client, 1)

    asking = site.call(client, "greet")
    said = {"action": "accept", "content": {"name": "Ada"}}
    answer = {"jsonrpc": "2.0", "id": asking.message()["id"], "result": said}
    answered = site.open(moved, "POST", answer)
    greeted = asking.message()
    lingering = site.call(client, "report", then="linger")
    lingering.message()
    moved.notify("notifications/cancelled", {"requestId": site.last_id})
    counting = site.call(client, "count_slowly", number=3)
    event = counting.event()
    counting.close()
    *_, counted = iter(site.open(moved, Last_Event_ID=event.id).message, None)

    assert answered.status == 202
    assert greeted["result"]["content"][0]["text"] == "Hello Ada"
    assert lingering.message() is None
    assert counted["result"]["content"][0]["text"] == "counted"

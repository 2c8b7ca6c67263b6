"""HTTP+SSE behind real servers. The official client meets them in tests/official."""

from __future__ import annotations

from http.client import HTTPConnection

import pytest

from tests.transports.live_servers import Servers
from tests.transports.test_servers import Live
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.live, pytest.mark.thorough]


@pytest.mark.parametrize(
    "server", [pytest.param("daphne", marks=pytest.mark.needs("daphne")), "uvicorn"]
)
def test_a_server_that_is_told_to_stop_again_and_again_ends_its_streams_and_stops(server):
    """Each signal interrupts the handler of the one before it."""
    with Servers() as servers:
        live = Live(*servers.start(server))
        connection = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
        connection.request("GET", "/mcp/sse", headers={"Accept": "text/event-stream"})
        with connection.getresponse() as response:
            assert response.readline() == b"event: endpoint\n"

            for _ in range(300):
                live.process.terminate()

            live.process.wait(PATIENCE)
        connection.close()

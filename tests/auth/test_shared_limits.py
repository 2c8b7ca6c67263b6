"""Two processes of one site: what one of them counts holds in the other."""

from __future__ import annotations

from functools import partial

import pytest
from django.conf import settings
from django.core.cache import caches

from mcp_django.protocol.revisions import LATEST_LEGACY
from mcp_django.testing import ProtocolFailure
from tests.served import SocketClient, served
from tests.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.live, pytest.mark.thorough]
MOST = 30


@pytest.fixture(params=["database", pytest.param("redis", marks=pytest.mark.needs("redis"))])
def ports(request):
    """Those of two servers that share a cache, in a minute that does not end."""
    caches[request.param].clear()
    start = partial(
        served,
        "asgi",
        audit=False,
        session_cache=request.param,
        settings_of_site={"CALLS_PER_MINUTE": MOST},
        SERVED_MINUTE="0",
        SERVED_SESSIONS="2",
        SERVED_PREFIX=settings.CACHES["redis"]["KEY_PREFIX"],
    )
    with start() as here, start() as there:
        yield here, there


def status_of(client):
    return client.post_request("resources/list").status


def test_the_calls_of_a_minute_are_those_of_all_processes(staff, ports):
    here, there = [SocketClient(port, user=staff) for port in ports]
    first = [status_of(here) for _ in range(MOST + 1)]
    others = []

    def is_refused():
        others.append(status_of(there))
        return others[-1] == 429

    wait_until(is_refused, pause=0.2)

    assert first == [200] * MOST + [429]
    # It learned of the calls of the other one before it counted as many itself.
    assert others.count(200) < MOST
    assert status_of(here) == status_of(there) == 429


def test_the_sessions_of_a_caller_are_those_of_all_processes(staff, ports):
    clients = [
        SocketClient(port, user=staff, revision=LATEST_LEGACY) for port in (ports[0], *ports)
    ]

    for client in clients:
        client.initialize()

    with pytest.raises(ProtocolFailure, match="HTTP 404"):
        clients[0].list_tools()
    assert all(client.list_tools() for client in clients[1:])

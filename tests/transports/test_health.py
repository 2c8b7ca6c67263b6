from __future__ import annotations

import asyncio
from threading import Event

import pytest
from django.db import OperationalError, connection
from django.test import Client

from mcp_django.asgi import get_mcp_application
from mcp_django.exposure.primitives import Lane
from mcp_django.transports.threads import OutOfTime
from tests.clients import CheckedClient
from tests.transports.wire import Connection

pytestmark = pytest.mark.django_db(transaction=True)


def refuse(execute, sql, params, many, context):
    raise OperationalError("the database of the site is gone")


def asked(verb="GET"):
    """The status and the body of the answer over ASGI."""
    client = CheckedClient(application=get_mcp_application(), path="/mcp/health")
    call = Connection(client, b"", verb=verb)
    return call.whole()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("is_open", "verb", "status", "word"),
    [(True, "GET", 200, "ok"), (True, "POST", 404, "not found"), (False, "GET", 404, "not found")],
)
async def test_a_process_says_that_it_can_answer_calls_where_the_setting_lets_it(
    configure, is_open, verb, status, word
):
    configure(HEALTH=is_open)

    answer = await asked(verb)

    assert (answer.status, answer.json) == (status, {"status": word})


@pytest.mark.asyncio
async def test_a_process_whose_threads_are_lost_says_that_it_cannot(configure, fresh_lanes, gate):
    configure(HEALTH=True)
    lane = fresh_lanes[Lane.QUERY]
    for _ in range(lane.size // 2):
        with pytest.raises(OutOfTime):
            await lane.start(gate.wait, seconds=0.01, cancelled=Event())

    answer = await asked()
    gate.open()

    assert (answer.status, answer.json) == (503, {"status": "unavailable"})
    await asyncio.to_thread(lane.close)


def test_the_view_says_the_same(configure):
    client = Client()
    hidden = client.get("/mcp/health")
    configure(HEALTH=True)
    fine = client.get("/mcp/health")
    with connection.execute_wrapper(refuse):
        broken = client.get("/mcp/health")

    assert [answer.status_code for answer in (hidden, fine, broken)] == [404, 200, 503]
    assert (fine.json(), broken.json()) == ({"status": "ok"}, {"status": "unavailable"})
    assert "gone" not in broken.content.decode()

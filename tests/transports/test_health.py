from __future__ import annotations

import asyncio
import importlib
from threading import Event

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import include, path

from mcp_django import urls
from mcp_django.asgi import get_mcp_application
from mcp_django.transports.health import health_log
from mcp_django.transports.threads import Lane, OutOfTime
from tests.clients import CheckedClient
from tests.transports.wire import Connection

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def well():
    yield
    health_log.was_well = True


def refuse(execute, sql, params, many, context):
    raise OperationalError("the database of the site is gone")


def asked(application, verb="GET"):
    """The status and the body of the answer over ASGI."""
    client = CheckedClient(application=application, path="/mcp/health")
    call = Connection(client, b"", verb=verb)
    return call.whole()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("verb", "status", "word"), [("GET", 200, "ok"), ("POST", 404, "not found")]
)
async def test_a_process_says_that_it_can_answer_calls(configure, verb, status, word):
    configure(HEALTH=True)

    answer = await asked(get_mcp_application(), verb)

    assert (answer.status, answer.json) == (status, {"status": word})


@pytest.mark.asyncio
async def test_without_the_setting_the_address_is_the_site_s():
    async def site(scope, receive, send):
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b"the site's own page"})

    answer = await asked(get_mcp_application(http=site))

    assert (answer.status, answer.body) == (418, b"the site's own page")


@pytest.mark.asyncio
async def test_a_process_whose_threads_are_lost_says_that_it_cannot(
    configure, fresh_lanes, gate, caplog
):
    configure(HEALTH=True)
    lane = fresh_lanes[Lane.QUERY]
    for number in range(lane.size):
        with pytest.raises(OutOfTime):
            await lane.start(gate.wait, seconds=0.01, cancelled=Event(), caller=str(number))

    answers = await asyncio.gather(*(asked(get_mcp_application()) for _ in range(3)))
    gate.open()

    assert {answer.status for answer in answers} == {503}
    assert [answer.json for answer in answers] == [{"status": "unavailable"}] * 3
    # A monitor asks every few seconds, and the log says it once.
    assert caplog.text.count("This process cannot answer calls: ") == 1
    await asyncio.to_thread(lane.close)


@pytest.mark.asyncio
async def test_the_database_is_asked_once_however_many_ask(configure, monkeypatch):
    configure(HEALTH=True)
    questions = []
    monkeypatch.setattr(
        "mcp_django.transports.health.ask_database", lambda: questions.append("SELECT 1")
    )
    application = get_mcp_application()

    answers = await asyncio.gather(*(asked(application) for _ in range(20)))

    assert {answer.status for answer in answers} == {200}
    assert questions == ["SELECT 1"]


@pytest.fixture
def routed(configure, settings):
    """Read the URLconf anew with these settings."""

    def route(**options):
        configure(**options)
        settings.ROOT_URLCONF = (path("mcp", include(importlib.reload(urls))),)
        return Client()

    yield route
    configure()
    importlib.reload(urls)


def test_the_view_says_the_same(routed):
    client = routed()
    hidden = client.get("/mcp/health")
    client = routed(HEALTH=True)
    fine = client.get("/mcp/health")
    with connection.execute_wrapper(refuse):
        broken = client.get("/mcp/health")

    assert [answer.status_code for answer in (hidden, fine, broken)] == [404, 200, 503]
    assert (fine.json(), broken.json()) == ({"status": "ok"}, {"status": "unavailable"})
    assert "gone" not in broken.content.decode()

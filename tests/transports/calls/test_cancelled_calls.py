"""Requests that a client takes back."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from django import forms
from django.db import OperationalError, connection

import mcp_django as mcp
from mcp_django.audit.records import Gathered, records
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports.calls.running import RunningCall, async_calls
from mcp_django.transports.exchanges import Exchange, Reply
from tests.databases import VENDOR
from tests.shop.models import Order
from tests.spec import requirement
from tests.transports.calls.test_statements import Connections
from tests.transports.session_client import SessionClient, id_of, text_of
from tests.transports.wire import Connection, finished, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True), pytest.mark.database]

LATEST = Revision.V2025_11_25
POSTGRESQL = pytest.mark.skipif(
    VENDOR != "postgresql", reason="Only PostgreSQL stops a statement that runs."
)


class NumberForm(forms.Form):
    number = forms.CharField()


@pytest.fixture
def party(client):
    return partial(SessionClient.begin, client)


@pytest.fixture
def gathered():
    gathered = Gathered()
    with records.using(gathered):
        yield gathered


def ends(gathered):
    return [one.outcome for one in gathered.ends if one.method == "tools/call"]


@pytest.fixture
def work(add_tool, gate):
    seen = {}

    def work(ctx: mcp.Context, how: str = "check") -> str:
        """Work, and look whether anybody waits."""
        gate.wait()
        seen["cancelled"] = ctx.cancelled.is_set()
        if how == "check":
            ctx.check()
        elif how == "progress":
            ctx.progress(1)
        elif how == "fail":
            raise mcp.ToolError("It cannot be done.")
        elif how in ("interrupted", "disk I/O error"):
            raise OperationalError(how)
        return "done"

    add_tool(work)
    return seen


async def running(party, gate, **arguments):
    """A call whose tool has begun."""
    call = party.call("work", **arguments)
    call.start()
    await gate.until_reached()
    return call


@requirement("cancellation:cancelled", "cancellation:alias")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda one: one.value)
@pytest.mark.parametrize(
    ("method", "member"), [("notifications/cancelled", "requestId"), ("$/cancelRequest", "id")]
)
async def test_a_request_that_is_taken_back_stops_and_gets_no_answer(
    party, work, gate, gathered, revision, method, member
):
    person = await party(revision)
    call = await running(person, gate)

    told = await person.notify(method, **{member: id_of(call)})
    await call.end()
    gate.open()
    await finished(Lane.WORK)

    assert (told.status, told.body) == (202, b"")
    assert work == {"cancelled": True}
    assert (call.status, call.body) == (200, b": open\n\n")
    assert ends(gathered) == ["cancelled"]


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("progress", "cancelled"),
        ("fail", "cancelled"),
        ("interrupted", "cancelled"),
        ("disk I/O error", "crashed"),
        ("go on", "done"),
    ],
)
async def test_the_record_says_how_a_call_that_was_taken_back_ended(
    party, work, gate, gathered, how, end
):
    person = await party(LATEST)
    call = await running(person, gate, token="t", how=how)

    await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()
    gate.open()
    await finished(Lane.WORK)

    assert ends(gathered) == [end]
    assert call.messages == []


@requirement("cancellation:cancelled")
async def test_what_takes_no_request_of_this_session_back_is_ignored(party, work, gate):
    person, other = await party(LATEST), await party(LATEST)
    call = await running(person, gate)
    own = id_of(call)

    wrong = [str(own), own + 1, None, True, [own], {"id": own}, 0.5, "x" * 10_000]
    statuses = [
        (await person.notify("notifications/cancelled", requestId=one)).status for one in wrong
    ]
    statuses.append((await person.notify("notifications/cancelled")).status)
    statuses.append((await person.notify("$/cancelRequest", requestId=own)).status)
    statuses.append((await other.notify("notifications/cancelled", requestId=own)).status)
    nobody = SessionClient(person.client)
    statuses.append((await nobody.notify("notifications/cancelled", requestId=own)).status)
    gate.open()
    await call.end()

    assert set(statuses) == {202}
    assert text_of(call.messages[-1]) == "done"


@requirement("cancellation:initialize")
async def test_a_handshake_cannot_be_taken_back(party):
    person = await party(LATEST)
    call = person.ask(
        "initialize",
        protocolVersion=LATEST.value,
        capabilities={},
        clientInfo={"name": "x", "version": "1"},
    )
    call.start()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()

    assert call.json["result"]["protocolVersion"] == LATEST.value


async def test_an_async_tool_that_is_taken_back_is_cancelled(party, add_tool, gathered):
    started = asyncio.Event()

    async def sleep() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.get_running_loop().create_future()
        return ""

    add_tool(sleep)
    person = await party(LATEST)
    call = person.call("sleep")
    call.start()
    async with asyncio.timeout(PATIENCE):
        await started.wait()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()
    await asyncio.gather(*async_calls, return_exceptions=True)
    await asyncio.to_thread(int)

    assert (call.status, call.body) == (200, b": open\n\n")
    assert ends(gathered) == ["cancelled"]


async def test_a_call_that_asks_is_taken_back_with_its_question(party, add_tool):
    def create(ctx: mcp.Context) -> str:
        """Make an order, and ask for its number."""
        Order.objects.create(number="?")
        return ctx.ask("number", NumberForm)["number"]

    add_tool(create, read_only=False, asks=True)
    person = await party(LATEST)
    call = await person.called("create")
    question = await call.message()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    rest = await call.rest()
    late = await person.accept(question, number="A-7")

    assert [one["method"] for one in rest] == ["notifications/cancelled"]
    assert rest[0]["params"]["requestId"] == question["id"]
    assert late.status == 202
    assert not await Order.objects.aexists()
    await call.end()


async def test_a_client_that_comes_back_for_what_it_took_back_finds_the_end(party, add_tool, gate):
    def report(ctx: mcp.Context) -> str:
        """Report, and wait."""
        ctx.progress(1)
        gate.wait()
        return "done"

    add_tool(report)
    person = await party(LATEST)
    call = await person.called("report", token="t")
    priming, _ = await call.event(), await call.message()
    await call.left()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    again = await person.get(priming.id)

    assert [one["method"] for one in await again.rest()] == ["notifications/progress"]
    gate.open()


async def test_what_is_over_cannot_be_taken_back():
    """Its answer is there, and nobody has sent it yet."""
    call = RunningCall(Exchange(), make=dict)
    hop = asyncio.get_running_loop().create_future()
    hop.set_result(Reply(status=204))
    call._worked(hop)

    call.cancel()

    assert not call.cancelled.is_set()
    assert not call.is_cancelled


# Ids


async def test_the_id_of_a_request_that_runs_is_refused_and_free_behind_it(party, work, gate):
    person = await party(LATEST)
    call = await running(person, gate)
    again = {"id": id_of(call), "method": "tools/list"}

    during = await person.post(**again)
    other = await (await party(LATEST)).post(**again)
    text = await person.post(id=str(id_of(call)), method="tools/list")
    gate.open()
    await call.end()
    after = await person.post(**again)

    assert (during.status, during.json["error"]["code"]) == (400, -32600)
    assert during.json["id"] == id_of(call)
    assert "tools" in other.json["result"]
    assert "tools" in text.json["result"]
    assert "tools" in after.json["result"]
    assert text_of(call.messages[-1]) == "done"


async def test_the_id_of_a_request_that_was_taken_back_is_free(party, work, gate):
    person = await party(LATEST)
    call = await running(person, gate)

    await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()
    after = await person.post(id=id_of(call), method="tools/list")

    assert "tools" in after.json["result"]
    gate.open()


# What the database does for it


async def test_whatever_the_driver_a_call_that_is_taken_back_has_its_statement_stopped(
    party, work, gate, monkeypatch
):
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Driver:
        def cancel(self):
            loop.call_soon_threadsafe(stopped.set)

    found = Connections()
    found.add(Driver())
    monkeypatch.setattr("mcp_django.transports.calls.running.connections", found)
    person = await party(LATEST)
    call = await running(person, gate)

    await person.notify("notifications/cancelled", requestId=id_of(call))

    async with asyncio.timeout(PATIENCE):
        await stopped.wait()
    gate.open()
    await call.end()


@pytest.fixture
def query(add_tool, gate):
    def query(atomic: bool = False) -> str:
        """Have the database work for a long time."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            gate.reached.set()
            cursor.execute("SELECT pg_sleep(30)")
        return "done"

    add_tool(query)
    return gate


async def until_asleep():
    """Until a statement runs."""
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(is_asleep):
            continue


def is_asleep():
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE query = 'SELECT pg_sleep(30)' AND state = 'active'"
            )
            return cursor.fetchone()[0] > 0
    finally:
        connection.close()


@POSTGRESQL
async def test_a_statement_of_a_call_that_is_taken_back_is_stopped(party, query, gathered):
    person = await party(LATEST)
    call = person.call("query")
    call.start()
    await query.until_reached()
    await until_asleep()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()
    await finished(Lane.WORK)

    assert (call.status, call.body) == (200, b": open\n\n")
    assert ends(gathered) == ["cancelled"]
    assert not await asyncio.to_thread(is_asleep)


@POSTGRESQL
async def test_a_statement_of_a_modern_client_that_leaves_is_stopped(client, query, gathered):
    call = Connection.calling(speaking(client, Revision.V2026_07_28), "query")
    call.start()
    await query.until_reached()
    await until_asleep()

    call.hang_up()
    await call.end()
    await finished(Lane.WORK)

    assert ends(gathered) == ["cancelled"]


@POSTGRESQL
async def test_the_next_call_of_the_thread_is_not_stopped(
    party, query, configure, fresh_lanes, gathered
):
    configure(WORK_THREADS=1)
    person = await party(LATEST)
    call = person.call("query")
    call.start()
    await query.until_reached()
    await until_asleep()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    echo = await person.call("echo", text="x").whole()

    assert not echo.json["result"]["isError"]
    await call.end()

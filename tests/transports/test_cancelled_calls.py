"""Requests that a client takes back."""

from __future__ import annotations

import asyncio
from threading import Event, Thread, Timer
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection

import mcp_django as mcp
from mcp_django.exposure.primitives import Lane
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports.call import Statements
from tests.databases import VENDOR
from tests.spec import requirement
from tests.transports.session_client import SessionClient, id_of, text_of
from tests.transports.wire import Connection, finished, hello
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True), pytest.mark.database]

LATEST = Revision.V2025_11_25


def ends(gathered):
    return [entry.outcome for entry in gathered.ends if entry.method == "tools/call"]


@pytest.fixture
def running(party, add_tool, gate):
    """The client of a session, and a call whose tool has begun and waits at the gate."""

    def work(ctx: mcp.Context, how: str = "check") -> str:
        """Work, and look whether anybody waits."""
        gate.wait()
        if how == "check":
            ctx.check()
        elif how == "progress":
            ctx.progress(1)
        elif how == "fail":
            raise mcp.ToolError("It cannot be done.")
        elif how in ("interrupted", "disk I/O error"):
            raise OperationalError(how)
        return "done"

    async def begin(revision=LATEST, **arguments):
        add_tool(work)
        person = await party(revision)
        call = await gate.held(person.call("work", **arguments))
        return person, call

    return begin


@requirement("cancellation:cancelled", "cancellation:alias")
@pytest.mark.parametrize("revision", LEGACY, ids=lambda revision: revision.value)
@pytest.mark.parametrize(
    ("method", "member", "how", "end"),
    [
        ("$/cancelRequest", "id", "check", "cancelled"),
        ("notifications/cancelled", "requestId", "check", "cancelled"),
        ("notifications/cancelled", "requestId", "progress", "cancelled"),
        ("notifications/cancelled", "requestId", "fail", "cancelled"),
        ("notifications/cancelled", "requestId", "interrupted", "cancelled"),
        ("notifications/cancelled", "requestId", "disk I/O error", "crashed"),
        ("notifications/cancelled", "requestId", "go on", "done"),
    ],
)
async def test_a_request_that_is_taken_back_gets_no_answer_and_its_record_says_how_it_ended(
    running, gate, gathered, revision, method, member, how, end
):
    person, call = await running(revision, how=how, token="t")

    answered = await person.notify(method, **{member: id_of(call)})
    await call.end()
    gate.open()
    await finished(Lane.WORK)

    assert (answered.status, answered.body) == (202, b"")
    assert call.status == 200
    assert call.messages == []
    assert ends(gathered) == [end]


@requirement("cancellation:cancelled")
async def test_what_takes_no_request_of_this_session_back_is_ignored(running, party, gate):
    person, call = await running()
    other, nobody = await party(LATEST), SessionClient(person.client)
    own = id_of(call)

    wrong = [str(own), own + 1, None, True, [own], {"id": own}, 0.5, "x" * 10_000]
    answers = [await person.notify("notifications/cancelled", requestId=value) for value in wrong]
    answers += [await person.notify("notifications/cancelled")]
    answers += [await person.notify("$/cancelRequest", requestId=own)]
    for stranger in (other, nobody):
        answers += [await stranger.notify("notifications/cancelled", requestId=own)]
    gate.open()
    await call.end()

    assert {answer.status for answer in answers} == {202}
    assert text_of(call.messages[-1]) == "done"


@requirement("cancellation:initialize")
async def test_a_handshake_cannot_be_taken_back(party):
    person = await party(LATEST)
    call = person.ask("initialize", **hello(LATEST))
    call.start()

    await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()

    assert call.json["result"]["protocolVersion"] == LATEST.value


async def test_the_id_of_a_request_that_runs_is_refused_and_free_behind_it(running, party, gate):
    person, call = await running()
    again = {"id": id_of(call), "method": "tools/list"}

    during = await person.post(**again)
    other = await (await party(LATEST)).post(**again)
    text = await person.post(id=str(id_of(call)), method="tools/list")
    gate.open()
    await call.end()
    after = await person.post(**again)

    assert (during.status, during.json["error"]["code"]) == (400, -32600)
    assert during.json["id"] == id_of(call)
    for answer in (other, text, after):
        assert "tools" in answer.json["result"]
    assert text_of(call.messages[-1]) == "done"


# What the database does for it


class Connections(dict):
    """As Django keeps them: by alias, made at first need."""

    def __init__(self):
        self.settings = {}

    def __missing__(self, alias):
        raise ImproperlyConfigured(f"{alias} has no driver.")

    def add(self, raw, *, engine="django.db.backends.postgresql"):
        alias = str(len(self.settings))
        self.settings[alias] = {"ENGINE": engine}
        self[alias] = SimpleNamespace(connection=raw)


@pytest.fixture
def fakes(monkeypatch):
    """Connections of drivers, each of which has its own way to stop a statement."""
    fakes = Connections()
    monkeypatch.setattr("mcp_django.transports.call.connections", fakes)
    return fakes


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("django.contrib.gis.db.backends.postgis", ["safely", "as of old"]),
        ("django.db.backends.sqlite3", []),
    ],
)
async def test_a_job_on_postgresql_can_be_stopped_in_the_way_of_its_driver_until_it_ends(
    fakes, engine, expected
):
    stopped, may_run = [], []
    psycopg = SimpleNamespace(cancel_safe=lambda *, timeout: stopped.append("safely"))
    psycopg2 = SimpleNamespace(cancel=lambda: stopped.append("as of old"))
    closed = SimpleNamespace(cancel=lambda: 1 / 0)
    for raw in (psycopg, None, closed, psycopg2):
        fakes.add(raw, engine=engine)
    # Of a driver that is not there.
    fakes.settings["old"] = {"ENGINE": engine}
    job = Statements()

    with pytest.raises(ZeroDivisionError):
        job.run(lambda: (may_run.append(job.may_run), job.stop(), 1 / 0))
    job.stop()

    assert (may_run, job.may_run) == ([bool(expected)], False)
    assert stopped == expected


async def test_the_thread_goes_on_only_when_nobody_is_about_to_stop_it(fakes):
    """A stop that came late would hit the next job of the thread."""
    stopped, begun, go_on = [], Event(), Event()

    def cancel():
        begun.set()
        assert go_on.wait(PATIENCE)
        stopped.append("in time")

    fakes.add(SimpleNamespace(cancel=cancel))
    job = Statements()
    stopping = Thread(target=job.stop)

    def work():
        stopping.start()
        assert begun.wait(PATIENCE)
        Timer(0.05, go_on.set).start()

    job.run(work)

    assert stopped == ["in time"]
    stopping.join(PATIENCE)


async def test_a_call_that_is_taken_back_has_its_statement_stopped(running, gate, fakes):
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    fakes.add(SimpleNamespace(cancel=lambda: loop.call_soon_threadsafe(stopped.set)))
    person, call = await running()

    await person.notify("notifications/cancelled", requestId=id_of(call))

    async with asyncio.timeout(PATIENCE):
        await stopped.wait()
    gate.open()
    await call.end()


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


@pytest.mark.skipif(VENDOR != "postgresql", reason="Only PostgreSQL stops a statement that runs.")
@pytest.mark.parametrize("leaves", [True, False], ids=["modern client that leaves", "taken back"])
async def test_a_statement_that_nobody_waits_for_any_more_is_stopped_and_no_other(
    client, party, add_tool, configure, fresh_lanes, gathered, leaves
):
    def query() -> str:
        """Have the database work for a long time."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")
        return "done"

    configure(WORK_THREADS=1)
    add_tool(query)
    person = await party(LATEST)
    call = Connection.calling(client, "query") if leaves else person.call("query")
    call.start()
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(is_asleep):
            continue

    if leaves:
        call.hang_up()
    else:
        await person.notify("notifications/cancelled", requestId=id_of(call))
    await call.end()
    # The next call of the thread.
    echo = await person.call("echo", text="x").whole()

    assert ends(gathered) == ["cancelled", "done"]
    assert not await asyncio.to_thread(is_asleep)
    assert not echo.json["result"]["isError"]

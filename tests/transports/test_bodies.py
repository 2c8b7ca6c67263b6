"""Bodies of strangers: what is read of them, where, for how long, and what is answered before."""

from __future__ import annotations

import asyncio
import threading

import pytest
from django.db import connections

import mcp_django as mcp
from mcp_django.auth import Anonymous
from mcp_django.protocol.headers import LONGEST_VALUE
from mcp_django.protocol.revisions import Revision
from mcp_django.transports import bodies, endpoint, http_sse
from mcp_django.transports import call as running
from mcp_django.transports.endpoint import LONGEST_AT_ONCE
from mcp_django.transports.threads import Lane
from tests.clients import CheckedClient, WSGIClient
from tests.transports.session_client import NumberForm, SessionClient, text_of
from tests.transports.wire import PING, Connection, finished, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]

LONG = "x" * LONGEST_AT_ONCE
WRONG = "mcp_" + "a" * 43


@pytest.fixture
def readers(monkeypatch):
    """The threads that decode a body, in order."""
    threads = []
    for module in (endpoint, http_sse):
        decode = module.decode

        def noted(body, decode=decode, **limits):
            threads.append(threading.current_thread())
            return decode(body, **limits)

        monkeypatch.setattr(module, "decode", noted)
    return threads


async def in_thread(function, *arguments):
    """In one that leaves no connection of its own behind."""

    def run():
        try:
            return function(*arguments)
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)


# Who reads a body


@pytest.mark.parametrize(("text", "is_here"), [("x", True), (LONG, False)], ids=["short", "long"])
async def test_a_short_body_is_read_on_the_event_loop_and_a_long_one_in_the_thread_that_answers(
    client, readers, revision, text, is_here
):
    call = await Connection.calling(client, "echo", text=text).whole()

    assert call.json["id"] == 1
    assert text in call.json["result"]["content"][0]["text"]
    [reader] = readers
    assert (reader is threading.current_thread()) is is_here


@pytest.mark.parametrize("kind", [CheckedClient, WSGIClient])
@pytest.mark.parametrize("token", [None, WRONG])
async def test_a_long_body_is_read_once_the_caller_is_known(client, readers, kind, token):
    body = PING.ljust(len(LONG) + 1)

    refused = await in_thread(kind(token=token).post, body)
    answered = await in_thread(kind(token=client.token).post, body)

    assert (refused.status, answered.status) == (401, 200)
    assert len(readers) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{" + b" " * len(LONG), 400),
        (b"[" + b"7," * len(LONG) + b"7]", 400),
        (PING.replace(b"ping", b"none").ljust(len(LONG) + 1), 200),
        (b'{"jsonrpc":"2.0","method":"notifications/none"}'.ljust(len(LONG) + 1), 202),
    ],
    ids=["no json", "too many", "unknown method", "notification"],
)
async def test_what_is_wrong_with_a_long_body_is_told_as_of_a_short_one(client, body, status):
    legacy = {"MCP-Protocol-Version": "2025-03-26"}

    call = await Connection(client, body, headers=legacy).whole()

    assert call.status == status
    assert status == 202 or "error" in call.json


async def test_a_long_body_counts_as_a_call_and_is_not_read_behind_the_last_one(
    client, configure, readers
):
    configure(CALLS_PER_MINUTE=1)
    body = b"{".ljust(len(LONG) + 1)

    first, second = [await Connection(client, body).whole() for _ in range(2)]

    assert (first.status, second.status) == (400, 429)
    assert int(second.headers["retry-after"]) > 0
    assert len(readers) == 1


async def test_a_long_call_that_asks_goes_on_with_the_answer(client, add_tool):
    def measure(ctx: mcp.Context, text: str) -> str:
        """Ask for the number of a text."""
        return f"{ctx.ask('number', NumberForm, 'Which?')['number']}: {len(text)}"

    add_tool(measure, read_only=False, asks=True)
    person = await SessionClient.begin(client, Revision.V2025_11_25)
    call = await person.called("measure", text=LONG)

    question = await call.message()
    await person.accept(question, number="A-7")

    assert text_of(await call.message()) == f"A-7: {len(LONG)}"
    await call.end()


@pytest.mark.parametrize(
    ("version", "ran"), [(Revision.V2026_07_28, []), (Revision.V2025_11_25, [len(LONG)])]
)
async def test_to_leave_before_a_long_call_was_read_cancels_it_where_that_is_the_rule(
    client, add_tool, patient, gate, fresh_lanes, configure, version, ran
):
    measured = []

    def measure(text: str) -> str:
        """Say how long a text is."""
        measured.append(len(text))
        return "done"

    add_tool(measure)
    configure(WORK_THREADS=1)
    await asyncio.to_thread(fresh_lanes.close)
    first = await gate.held(Connection.calling(client, "patient"))

    waiting = Connection.calling(speaking(client, version), "measure", text=LONG)
    waiting.start()
    waiting.hang_up()
    await waiting.end()
    gate.open()
    await first.end()
    await finished(Lane.WORK)

    assert measured == ran


# Who is asked for a body


class Unsent(Connection):
    """Headers that declare a body, of which nothing has come yet."""

    def __init__(self, client, *, length="100", headers=None, **options):
        super().__init__(client, headers={"Content-Length": length, **(headers or {})}, **options)

    def give(self, body, *, more):
        self.inbox.put_nowait({"type": "http.request", "body": body, "more_body": more})

    async def answered(self):
        """The status and the text of an answer that comes before the body does."""
        self.start()
        start, body = [await self.next() for _ in range(2)]
        assert int(self.headers["content-length"]) == len(body["body"])
        return start["status"], body["body"]


LONG_HEADER = {"X-Long": "x" * (LONGEST_VALUE + 1)}


@pytest.mark.parametrize(
    ("verb", "headers", "version", "status"),
    [
        ("POST", {}, "1.1", 401),
        ("GET", {}, "1.1", 401),
        ("POST", LONG_HEADER, "1.1", 431),
        # Later versions of HTTP close no connection.
        ("POST", {}, "2", 401),
    ],
)
@pytest.mark.parametrize("comes", [True, False])
async def test_nobody_waits_for_the_body_of_a_request_that_is_refused_by_its_headers(
    only_tokens, monkeypatch, verb, headers, version, status, comes
):
    monkeypatch.setattr(bodies, "LONGEST_PAUSE", 0.01)
    call = Unsent(CheckedClient(), verb=verb, headers=headers)
    call.scope["http_version"] = version

    answered, text = await call.answered()
    if comes:
        call.give(b"x" * 100, more=False)
    await call.end()

    assert answered == status
    assert call.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    assert (b"Authorization: Bearer <personal token>" in text) is (status == 401)
    assert call.headers.get("connection") == ("close" if version == "1.1" else None)
    assert call.is_whole()


class Careless(Anonymous):
    """Breaks its promise."""

    header_only = True


@pytest.mark.parametrize(
    ("authenticators", "status", "request_id"),
    [
        (["mcp_django.auth.PersonalTokens", "mcp_django.auth.Anonymous"], 200, 7),
        ([], 503, 7),
        ([Careless()], 401, None),
    ],
)
async def test_a_site_that_may_know_callers_without_the_header_reads_bodies_and_runs_middleware(
    configure, authenticators, status, request_id
):
    configure(AUTHENTICATORS=authenticators)

    call = await Connection(CheckedClient(), PING).whole()
    configure(RUN_MIDDLEWARE=["tests.transports.middlewares.Header"])
    again = await Connection(CheckedClient(), PING).whole()

    assert (call.status, call.json.get("id")) == (status, request_id)
    assert (again.status, again.headers["x-site"]) == (status, "shop")


# How long a body may take


@pytest.mark.parametrize(
    ("limit", "more"), [("LONGEST_PAUSE", 0), ("LONGEST_PAUSE", 1), ("LONGEST_READING", None)]
)
async def test_a_body_is_waited_for_so_long_and_no_longer(monkeypatch, limit, more):
    monkeypatch.setattr(bodies, limit, 0.02)
    call = Unsent(CheckedClient(token=WRONG), length="1000000")
    for _ in range(more or 0):
        call.give(b"x", more=True)

    async def dribble():
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"x", "more_body": True}

    if more is None:
        call.inbox.get = dribble
    status, text = await call.answered()
    await call.end()

    assert status == 408
    assert b"did not come in time" in text
    assert call.headers["connection"] == "close"
    assert call.is_whole()


async def test_a_refused_client_is_heard_out_up_to_the_length_of_a_body(configure, monkeypatch):
    configure(MAX_BODY=100)
    # Who watches the connection of a call that takes longer reads what comes.
    monkeypatch.setattr(running, "QUICK", PATIENCE)
    call = Unsent(CheckedClient(), length="1000")
    for _ in range(10):
        call.give(b"x" * 40, more=True)

    await call.whole()

    assert call.status == 401
    assert call.inbox.qsize() == 7

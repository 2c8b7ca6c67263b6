"""Requests that a client takes back."""

from __future__ import annotations

import pytest
from django.db import OperationalError

import mcp_django as mcp
from mcp_django.protocol.revisions import LEGACY, Revision
from mcp_django.transports.threads import Lane
from tests.spec import requirement
from tests.transports.session_client import SessionClient, id_of, text_of
from tests.transports.wire import finished, hello

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

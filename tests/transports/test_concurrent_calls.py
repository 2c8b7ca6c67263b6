"""One call beside another, and one caller beside another."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone

import mcp_django as mcp
from mcp_django.auth import throttles
from mcp_django.auth.authenticate import cache, caller_of
from mcp_django.models import PersonalToken
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.revisions import Revision
from mcp_django.transports.endpoint import LONGEST_AT_ONCE
from tests.clients import CheckedClient
from tests.spec import requirement
from tests.transports.wire import Connection, speaking
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True)]
ADDRESS = "192.0.2.7"


@requirement(
    "http:one-stream", "http:related-messages", "http:concurrent-requests", "security:equal-ids"
)
@pytest.mark.parametrize("second", ["staff", "eve"])
async def test_calls_at_the_same_time_have_each_their_own_messages_whatever_their_ids(
    client, eve, revision, add_tool, second
):
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()

    def meet(ctx: mcp.Context, word: str) -> str:
        """Report while another call is here, and answer behind its report."""
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        ctx.progress(1)
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        return f"{word} of {ctx.request.user.get_username()}"

    add_tool(meet)
    other = client if second == "staff" else speaking(eve, revision)
    calls = [
        Connection.calling(caller, "meet", token=word, word=word)
        for caller, word in ((client, "a"), (other, "b"))
    ]
    await asyncio.gather(*(call.whole() for call in calls))

    ids = [call.messages[-1]["id"] for call in calls]
    assert ids == ([1, 2] if second == "staff" else [1, 1])
    for call, word, name in zip(calls, "ab", ("staff", second), strict=True):
        *reports, answer = call.messages
        assert [report["params"]["progressToken"] for report in reports] == [word]
        assert answer["result"]["content"][0]["text"] == f"{word} of {name}"


# Shares


@pytest.fixture
def other(client, eve):
    """A second caller. Both have called before."""
    for caller in (client, eve):
        caller.discover()
    return eve


@pytest.fixture
def notes(add_tool):
    """A tool that writes down in which order calls were answered."""
    written = []

    def note(word: str) -> str:
        """Write a word down."""
        written.append(word)
        return word

    add_tool(note)
    return written


def noting(client, word):
    return Connection.calling(client, "note", word=word)


@pytest_asyncio.fixture
async def answer_all(configure, fresh_lanes, client, other, patient, gate):
    """Have calls wait in this order for the one thread, and end them."""
    # So the order of calls is the order of their turns.
    configure(WORK_THREADS=1, MAX_WAITING=80)
    blocking = await gate.held(Connection.calling(client, "patient"))

    async def answer_all(*calls):
        for call in calls:
            call.start()
            await asyncio.sleep(0)
        gate.open()
        await asyncio.gather(*(call.end() for call in (blocking, *calls)))

    return answer_all


async def test_a_flood_of_one_user_is_refused_and_delays_the_call_of_another_by_one_turn(
    answer_all, client, staff, other, notes
):
    # Several tokens of one user share what the user has.
    second = await sync_to_async(lambda: CheckedClient(user=staff))()
    await sync_to_async(second.discover)()
    flood = [noting(client, "flood") for _ in range(15)]
    flood += [noting(second, "flood") for _ in range(15)]
    victim = noting(other, "victim")

    await answer_all(*flood, victim)

    assert sorted(call.status for call in flood) == [200] * 20 + [503] * 10
    assert victim.status == 200
    assert notes.index("victim") <= 1


async def test_async_tools_are_shared_as_threads_are(configure, client, other, add_tool, gathered):
    configure(MAX_WAITING=4)
    begun, opened = asyncio.Queue(), asyncio.Event()

    async def linger() -> str:
        """Wait."""
        begun.put_nowait("begun")
        await opened.wait()
        return "done"

    add_tool(linger)
    first, second, victim = (
        Connection.calling(caller, "linger") for caller in (client, client, other)
    )
    for call in (first, victim):
        call.start()
        async with asyncio.timeout(PATIENCE):
            await begun.get()
    await second.whole()
    opened.set()
    await asyncio.gather(first.end(), victim.end())

    outcomes = [entry.outcome for entry in gathered.ends if entry.method == "tools/call"]
    assert (first.status, second.status, victim.status) == (200, 503, 200)
    assert outcomes == ["cancelled", "done", "done"]


# Whose turn it is, before anybody is identified


@pytest.mark.parametrize(("most", "status"), [(100, 401), (0, 429)])
async def test_a_credential_shares_with_its_address_before_it_is_accepted_and_after_its_refusal(
    client, monkeypatch, most, status
):
    sent = Headers(client.scope("POST")["headers"])
    before = caller_of(sent, ADDRESS)
    await sync_to_async(client.discover)()
    accepted = caller_of(sent, ADDRESS)
    await PersonalToken.objects.aupdate(revoked_at=timezone.now())
    cache.clear()
    monkeypatch.setattr(throttles, "MOST_FAILURES", most)

    refused = await sync_to_async(client.post)(client.message("server/discover"))

    assert refused.status == status
    assert before == caller_of(sent, ADDRESS) == f"address {ADDRESS}"
    assert accepted != before
    for headers in ([], [(b"authorization", b"B" * 5000)]):
        assert caller_of(Headers(headers), ADDRESS) == before


# Batches


@pytest.mark.parametrize("length", [0, LONGEST_AT_ONCE + 1], ids=["short", "long"])
async def test_a_batch_leaves_a_thread_to_another_user_and_each_of_its_calls_is_counted_once(
    configure, fresh_lanes, client, other, patient, gate, notes, length
):
    # With what its caller asked before.
    configure(WORK_THREADS=2, CALLS_PER_MINUTE=4)
    batching = speaking(client, Revision.V2025_03_26)
    messages = [
        batching.message("tools/call", {"name": name, "arguments": arguments})
        for name, arguments in [("patient", {}), ("note", {"word": "a"}), ("note", {"word": "b"})]
    ]
    batch = Connection(batching, msgspec.json.encode(messages).ljust(length))

    await gate.held(batch)
    victim = await noting(other, "victim").whole()
    gate.open()
    await batch.end()

    assert victim.status == 200
    assert notes == ["victim", "a", "b"]
    assert [answer["id"] for answer in batch.json] == [message["id"] for message in messages]

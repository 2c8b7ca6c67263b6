from __future__ import annotations

import asyncio

import msgspec
import pytest
from django.utils import timezone

import mcp_django as mcp
from mcp_django.auth import throttles
from mcp_django.auth.authenticate import cache, caller_of, share_name
from mcp_django.cached import Recent
from mcp_django.models import PersonalToken
from mcp_django.principal import Principal
from mcp_django.protocol.headers import Headers
from mcp_django.protocol.revisions import Revision
from mcp_django.transports import serving
from mcp_django.transports.http.endpoint import LONGEST_AT_ONCE
from tests.clients import CheckedClient
from tests.spec import requirement
from tests.transports.wire import Connection, speaking
from tests.waiting import PATIENCE


@requirement("http:one-stream", "http:related-messages", "http:concurrent-requests")
@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_calls_of_one_client_at_the_same_time_have_each_their_own_messages(
    client, revision, add_tool
):
    both = asyncio.Barrier(2)
    loop = asyncio.get_running_loop()

    def meet(ctx: mcp.Context, word: str) -> str:
        """Report while another call is here, and answer behind its report."""
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        ctx.progress(1)
        asyncio.run_coroutine_threadsafe(both.wait(), loop).result(PATIENCE)
        return word

    add_tool(meet)
    client = speaking(client, revision)
    first, second = (Connection.calling(client, "meet", token=one, word=one) for one in "ab")
    await asyncio.gather(first.whole(), second.whole())

    assert first.messages[-1]["id"] != second.messages[-1]["id"]
    for call, word in ((first, "a"), (second, "b")):
        *reports, answer = call.messages
        assert [report["params"]["progressToken"] for report in reports] == [word]
        assert answer["result"]["content"][0]["text"] == word


# One caller beside another


@pytest.fixture
def narrow(configure, fresh_lanes):
    """A single thread for tools, so that the order of calls is the order of their turns."""
    configure(WORK_THREADS=1, MAX_WAITING=80)


@pytest.fixture
def other(client, make_user):
    """A second caller. Both have called before."""
    other = CheckedClient(user=make_user("other", is_staff=True))
    for caller in (client, other):
        caller.discover()
    return other


@pytest.fixture
def second(client, staff):
    """The same user, with another token."""
    second = CheckedClient(user=staff)
    for caller in (client, second):
        caller.discover()
    return second


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


async def flood(client, number, **options):
    """So many calls of one client that wait."""
    calls = [Connection.calling(client, "note", word="flood", **options) for _ in range(number)]
    for call in calls:
        call.start()
    await asyncio.sleep(0)
    return calls


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_flood_of_one_user_delays_the_call_of_another_by_one_turn(
    narrow, client, other, patient, gate, notes
):
    blocking = Connection.calling(client, "patient")
    blocking.start()
    await gate.until_reached()
    calls = await flood(client, 15)
    victim = Connection.calling(other, "note", word="victim")
    victim.start()
    await asyncio.sleep(0)

    gate.open()
    await asyncio.gather(*(call.end() for call in [blocking, victim, *calls]))

    assert notes.index("victim") <= 1
    assert len(notes) == 16


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_who_floods_is_told_that_the_server_is_busy_and_nobody_else(
    narrow, client, other, patient, gate, notes
):
    blocking = Connection.calling(client, "patient")
    blocking.start()
    await gate.until_reached()
    calls = await flood(client, 30)
    victim = Connection.calling(other, "note", word="victim")
    victim.start()
    await asyncio.sleep(0)

    gate.open()
    await asyncio.gather(*(call.end() for call in [blocking, victim, *calls]))

    assert sorted(call.status for call in calls) == [200] * 20 + [503] * 10
    assert victim.status == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_several_tokens_of_one_user_share_what_the_user_has(
    narrow, client, second, patient, gate, notes
):
    blocking = Connection.calling(client, "patient")
    blocking.start()
    await gate.until_reached()
    calls = [*await flood(client, 15), *await flood(second, 15)]

    gate.open()
    await asyncio.gather(*(call.end() for call in [blocking, *calls]))

    assert sorted(call.status for call in calls) == [200] * 20 + [503] * 10


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_async_tools_are_shared_as_threads_are(configure, client, other, add_tool):
    configure(MAX_WAITING=4)
    loop, begun, opened = asyncio.get_running_loop(), asyncio.Queue(), asyncio.Event()

    async def linger() -> str:
        """Wait."""
        begun.put_nowait("begun")
        await opened.wait()
        return "done"

    add_tool(linger)
    first = Connection.calling(client, "linger")
    first.start()
    async with asyncio.timeout(PATIENCE):
        await begun.get()
    second = await Connection.calling(client, "linger").whole()
    victim = Connection.calling(other, "linger")
    victim.start()
    async with asyncio.timeout(PATIENCE):
        await begun.get()
    loop.call_soon(opened.set)
    await asyncio.gather(first.end(), victim.end())

    assert (first.status, second.status, victim.status) == (200, 503, 200)


# Whose turn it is, before anybody is identified


def sent_by(client):
    return Headers(client.scope("POST")["headers"])


@pytest.mark.django_db
def test_a_credential_that_was_never_accepted_shares_with_its_address(client):
    before = caller_of(sent_by(client), "192.0.2.7")
    client.discover()

    assert before == "address 192.0.2.7"
    assert caller_of(sent_by(client), "192.0.2.7") != before
    assert caller_of(Headers([]), "192.0.2.7") == before
    assert caller_of(Headers([(b"authorization", b"B" * 5000)]), "192.0.2.7") == before


@pytest.mark.django_db
@pytest.mark.parametrize(("most", "status"), [(100, 401), (0, 429)])
def test_a_credential_that_is_refused_shares_with_its_address_from_then_on(
    client, monkeypatch, most, status
):
    client.discover()
    PersonalToken.objects.update(revoked_at=timezone.now())
    cache.clear()
    monkeypatch.setattr(throttles, "MOST_FAILURES", most)

    refused = client.post(client.message("server/discover"))

    assert refused.status == status
    assert caller_of(sent_by(client), "192.0.2.7") == "address 192.0.2.7"


@pytest.mark.thorough
@pytest.mark.django_db
def test_two_users_never_share_and_a_refused_credential_is_nobodys(client, make_user):
    other = CheckedClient(user=make_user("other", is_staff=True))
    stranger = CheckedClient(token="mcp_wrong")
    for caller in (client, other):
        caller.discover()
    stranger.post(stranger.message("server/discover"))

    names = {caller_of(sent_by(caller), "192.0.2.7") for caller in (client, other, stranger)}

    assert len(names) == 3
    assert "address 192.0.2.7" in names


@pytest.mark.django_db
def test_a_bounded_number_of_credentials_is_remembered(make_user):
    users: Recent[bytes, str] = Recent(size=2)
    principal = Principal(user=make_user(), scopes=frozenset(), method="test")

    for key in (b"1", b"2", b"3"):
        users.put(key, share_name(principal))

    assert (users.get(b"1"), len(users)) == (None, 2)
    assert users.get(b"3") == users.get(b"2") != None  # noqa: E711


# Batches


@pytest.fixture
def restless(monkeypatch):
    """A batch makes room behind each of its messages."""
    monkeypatch.setattr(serving, "BATCH_TURN", 0)


def batch_of(client, *words, length=0):
    """A batch of calls in a body of that many bytes at least."""
    batch = [
        client.message("tools/call", {"name": "note", "arguments": {"word": word}})
        for word in words
    ]
    return Connection(client, msgspec.json.encode(batch).ljust(length))


@pytest.fixture
def batching(client):
    return speaking(client, Revision.V2025_03_26)


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
@pytest.mark.parametrize("length", [0, LONGEST_AT_ONCE + 1], ids=["short", "long"])
async def test_a_batch_is_not_ahead_of_the_call_of_another_user(
    narrow, restless, client, batching, other, patient, gate, notes, length
):
    blocking = Connection.calling(client, "patient")
    blocking.start()
    await gate.until_reached()
    batch = batch_of(batching, *"abcde", length=length)
    batch.start()
    await asyncio.sleep(0)
    victim = Connection.calling(other, "note", word="victim")
    victim.start()
    await asyncio.sleep(0)

    gate.open()
    await asyncio.gather(*(call.end() for call in [blocking, batch, victim]))

    assert notes.index("victim") <= 1
    assert [answer["result"]["content"][0]["text"] for answer in batch.json] == [*"abcde"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_batch_in_several_turns_is_counted_once(
    narrow, restless, batching, notes, configure
):
    configure(CALLS_PER_MINUTE=3)

    call = await batch_of(batching, *"abc").whole()

    assert call.status == 200
    assert notes == [*"abc"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.asyncio
async def test_a_batch_whose_caller_is_refused_between_turns_answers_what_was_done(
    narrow, restless, batching, add_tool
):
    def revoke() -> str:
        """End the token that calls."""
        PersonalToken.objects.update(revoked_at=timezone.now())
        cache.clear()
        return "revoked"

    add_tool(revoke)
    messages = [batching.message("tools/call", {"name": "revoke"}) for _ in range(3)]

    call = await Connection(batching, msgspec.json.encode([*messages, 1])).whole()

    first, *rest, malformed = call.json
    assert first["result"]["content"][0]["text"] == "revoked"
    assert [answer["id"] for answer in rest] == [message["id"] for message in messages[1:]]
    assert {answer["error"]["code"] for answer in rest} == {-32600}
    assert malformed["id"] is None

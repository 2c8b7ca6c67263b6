"""The table of the page about compatibility: what works with each revision, over each transport.

Each test tries one word of the table in every cell. Where the word is missing, it must not work.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from asgiref.sync import sync_to_async
from django.forms import Form

import mcp_django as mcp
from mcp_django.protocol.negotiation import LOG_LEVEL_KEY
from mcp_django.protocol.revisions import LATEST_LEGACY, LEGACY, Revision
from tests.clients import CheckedClient
from tests.docs.drivers import Refused
from tests.docs.http_drivers import WSGI, StreamableHTTP
from tests.docs.pages import ROOT, table
from tests.docs.stream_drivers import HTTPSSE, Stdio
from tests.shop.models import Order
from tests.transports.http_sse_client import HTTPSSEClient
from tests.transports.wire import Gate

pytestmark = [pytest.mark.asyncio, pytest.mark.django_db(transaction=True), pytest.mark.thorough]

PAGE = ROOT / "docs" / "reference" / "compatibility.md"
HEADING = "## Revisions and transports"
DRIVERS = {
    "Streamable HTTP": StreamableHTTP,
    "WSGI view": WSGI,
    "HTTP+SSE": HTTPSSE,
    "stdio": Stdio,
}
ROWS = {row[0]: row[1:] for row in table(PAGE, HEADING)}
WORDS = ["progress", "logs", "subscriptions", "questions", "resuming", "batches"]
NOTHING_MORE, NOT_SERVED = "nothing more", "\u2014"

CELLS = {
    (name, revision): ROWS[revision.value][column]
    for column, name in enumerate(DRIVERS)
    for revision in Revision
}
SERVED = [cell for cell, text in CELLS.items() if text != NOT_SERVED]


def words(text):
    return [] if text == NOTHING_MORE else text.split(", ")


@pytest.fixture(params=SERVED, ids=lambda cell: f"{cell[0]} {cell[1].value}".replace(" ", "-"))
def cell(request):
    return request.param


@pytest.fixture
def peer(cell, staff):
    """A client of this transport and revision, not connected yet."""
    name, revision = cell
    return DRIVERS[name](CheckedClient(user=staff, revision=revision))


@pytest.fixture
def told(cell):
    """What the table says."""
    return words(CELLS[cell])


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.open()


# The table itself


async def test_the_table_has_every_revision_and_transport_and_known_words_in_one_order():
    head = re.search(r"^\| Revision \|.*$", PAGE.read_text(), re.MULTILINE)[0]

    assert [one.strip() for one in head.strip("|").split("|")] == ["Revision", *DRIVERS]
    assert list(ROWS) == [revision.value for revision in Revision]
    for cell in SERVED:
        assert words(CELLS[cell]) == [one for one in WORDS if one in words(CELLS[cell])], cell


@pytest.mark.parametrize("revision", list(Revision), ids=lambda one: one.value)
async def test_where_there_is_a_dash_no_client_agrees_on_the_revision(client, revision):
    session = await HTTPSSEClient(client).begin(revision.value)

    agreed = session.hello["protocolVersion"]

    is_served = CELLS["HTTP+SSE", revision] != NOT_SERVED
    assert agreed == (revision if is_served else LATEST_LEGACY).value
    assert is_served == (revision in LEGACY)
    assert {one for one in CELLS if one not in SERVED} == {("HTTP+SSE", Revision.V2026_07_28)}
    await session.leave()


async def test_what_is_announced_is_what_the_table_says(peer, told):
    async with peer:
        announced = peer.hello["capabilities"]

    expected = {"tools", "resources", "prompts"}
    if peer.revision.features.completions_capability:
        expected.add("completions")
    if "logs" in told:
        expected.add("logging")
    assert set(announced) - {"experimental"} == expected
    lives = {"listChanged": True, "subscribe": True} if "subscriptions" in told else {}
    assert announced["resources"] == lives


# Everywhere


async def test_tools_work_everywhere(peer):
    await sync_to_async(Order.objects.create)(number="A1", total=5)

    async with peer:
        listed = await peer.request("tools/list")
        arguments = {"model": "shop.order", "fields": ["number"]}
        found = await peer.request("tools/call", name="find_records", arguments=arguments)
        later = await peer.request("tools/call", name="echo_later", arguments={"text": "x"})

    assert "find_records" in {one["name"] for one in listed["tools"]}
    assert json.loads(found["content"][0]["text"])["rows"] == [["A1"]]
    assert "staff" in later["content"][0]["text"]


async def test_resources_work_everywhere(peer):
    await sync_to_async(Order.objects.create)(number="A1", total=5)
    uri = "django://objects/shop.order"

    async with peer:
        listed = await peer.request("resources/list")
        read = await peer.request("resources/read", uri=uri)

    assert uri in {one["uri"] for one in listed["resources"]}
    assert '"A1"' in read["contents"][0]["text"]


async def test_prompts_work_everywhere(peer, add_prompt):
    def greeting(name: str) -> str:
        """Greet somebody."""
        return f"Say hello to {name}."

    add_prompt(greeting)
    async with peer:
        listed = await peer.request("prompts/list")
        got = await peer.request("prompts/get", name="greeting", arguments={"name": "Ada"})

    assert "greeting" in {one["name"] for one in listed["prompts"]}
    assert got["messages"][0]["content"]["text"] == "Say hello to Ada."


async def test_completion_works_everywhere(peer):
    async with peer:
        completed = await peer.request(
            "completion/complete",
            ref={"type": "ref/resource", "uri": "django://models/{model}"},
            argument={"name": "model", "value": "shop.ord"},
        )

    assert completed["completion"]["values"] == ["shop.order"]


async def test_the_page_says_what_works_everywhere():
    text = " ".join(PAGE.read_text().partition(HEADING)[2].split())

    assert text.startswith("Tools, resources, prompts and completion work everywhere.")


# In some cells


async def test_progress_is_told_where_the_table_says_so(peer, told):
    arguments, meta = {"number": 3}, {"progressToken": "p"}

    async with peer:
        *before, answer = await peer.exchange(
            "tools/call", name="count_to", arguments=arguments, _meta=meta
        )

    assert answer["result"]["content"][0]["text"] == "Counted to 3."
    methods = {one["method"] for one in before}
    assert methods == ({"notifications/progress"} if "progress" in told else set())


async def test_log_messages_arrive_where_the_table_says_so(peer, told, add_tool):
    def chatter(ctx: mcp.Context) -> str:
        """Say something for developers."""
        ctx.log("debug", "details")
        return "done"

    add_tool(chatter)
    async with peer:
        if peer.is_legacy:
            with suppress(Refused):
                await peer.request("logging/setLevel", level="debug")
        *before, answer = await peer.exchange(
            "tools/call", name="chatter", arguments={}, _meta={LOG_LEVEL_KEY: "debug"}
        )

    assert answer["result"]["content"][0]["text"] == "done"
    messages = [one["params"]["data"] for one in before]
    assert messages == (["details"] if "logs" in told else [])


async def test_a_subscribed_client_hears_of_a_save_where_the_table_says_so(peer, told):
    order = await sync_to_async(Order.objects.create)(number="A1", total=5)
    uri = f"django://objects/shop.order/{order.pk}"
    order.number = "A2"

    async with peer:
        try:
            await peer.subscribe(uri)
            await sync_to_async(order.save)()
            event = await peer.event()
        except Refused:
            event = None

    if "subscriptions" in told:
        assert event["method"] == "notifications/resources/updated"
        assert event["params"]["uri"] == uri
    else:
        assert event is None


async def test_a_person_is_asked_where_the_table_says_so(peer, told, add_tool):
    def decide(ctx: mcp.Context) -> str:
        """Have a person decide."""
        ctx.ask("decision", Form, "Well?")
        return "Decided."

    add_tool(decide, asks=True)
    async with peer:
        result = await peer.request("tools/call", name="decide", arguments={})

    assert result.get("isError", False) == ("questions" not in told)
    assert [one["params"]["message"] for one in peer.asked] == (
        ["Well?"] if "questions" in told else []
    )


async def test_a_lost_call_is_answered_later_where_the_table_says_so(peer, told, add_tool, gate):
    def work(ctx: mcp.Context) -> str:
        """Begin, and end when the connection is lost."""
        ctx.progress(1)
        gate.wait()
        return "done"

    add_tool(work)
    meta = {"progressToken": "p"}
    async with peer:
        await peer.lose("tools/call", name="work", arguments={}, _meta=meta)
        gate.open()
        try:
            heard = await peer.come_back()
        except Refused:
            heard = []

    answers = [one["result"].get("content") for one in heard if "result" in one]
    assert any(answers) == ("resuming" in told)
    assert not any(answers) or answers[0][0]["text"] == "done"


async def test_batches_are_answered_where_the_table_says_so(peer, told):
    async with peer:
        try:
            answers = await peer.batch("tools/list", "prompts/list")
        except Refused:
            answers = None

    assert (answers is not None) == ("batches" in told)
    assert answers is None or [list(one["result"]) for one in answers] == [["tools"], ["prompts"]]
